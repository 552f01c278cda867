"""Convert files of n-gram models in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from nplm.formats._words import StoredWords
from nplm.formats.arpa.arpa_files import check_weights, read_tables
from nplm.formats.on_disk.outputs import Output, StoredTrie, stored
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.external.tables import NgramTables, Table
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie, DuplicateNgramError
from nplm.models.training.parallel.threads import Threads

__all__ = ["convert_arpa", "convert_trie"]

# Memory of Python, the libraries and a chunk of text.
INTERPRETER_BYTES = 230 << 20
# Bytes of a word of the vocabulary: Python's strings and numbers, and arrays.
WORD_BYTES = 400


def convert_arpa(
    path: str | os.PathLike[str],
    output: Output,
    *,
    memory: int,
    add_unknown: bool = True,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> None:
    """Write the model of an ARPA file to another file, in bounded memory.

    The file has the same bytes as one of the model that `read_arpa` returns.

    Parameters
    ----------
    path : path-like
        The ARPA file, with lines in any order.
    output : Output
        The file to write.
    memory : int
        Bytes of memory. Buffers get what remains after the interpreter (240 MB) and
        the words (400 bytes each), and at least a quarter. N-grams whose contexts end
        with the same word are sorted in memory (200 bytes each), as are suffixes that
        n-grams lack (12 bytes each), however little is left.
    add_unknown : bool, default=True
        As in `read_arpa`.
    folder : path-like, optional
        Where to make the temporary folder, which takes about 60 bytes per n-gram.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    ValueError, OSError
        As `read_arpa`. Also if the file has no boundary.
    """
    with Scratch(folder, memory, Threads(1), progress) as scratch:
        scratch.memory = memory // 4
        tables = NgramTables(scratch)
        scratch.stage("reading", 0)

        def take(table: Table) -> None:
            tables.add(table)
            scratch.tell(len(table.ngrams))

        arpa = read_tables(path, take, add_unknown=add_unknown, size=scratch.block)
        words = StoredWords(arpa.words, arpa.boundary)
        used = INTERPRETER_BYTES + WORD_BYTES * words.n_words
        scratch.memory = max(memory - used, memory // 4)
        try:
            levels = tables.levels(arpa.order, arpa.unigrams, arpa.settled)
        except DuplicateNgramError as error:
            ids = arpa.settled(tables.row(error.order, error.row)).ngrams[0]
            raise arpa.twice(error, [arpa.words[w] for w in ids]) from error
        del arpa
        source = stored(levels, scratch)
        check_weights(path, source.trie)
        output.write(source, words, scratch)


def convert_trie(
    trie: BackoffTrie,
    words: StoredWords,
    output: Output,
    *,
    memory: int,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> None:
    """Write the n-grams of a model to a file, in bounded memory.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams, in memory or mapped.
    words : StoredWords
        The words, and the id of the boundary.
    output, memory, folder, progress
        As in `convert_arpa`.
    """
    with Scratch(folder, memory, Threads(1), progress) as scratch:
        used = INTERPRETER_BYTES + WORD_BYTES * words.n_words
        scratch.memory = max(memory - used, memory // 4)
        output.write(StoredTrie(trie.verified(), scratch), words, scratch)
