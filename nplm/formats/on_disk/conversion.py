"""Convert files of n-gram models in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from nplm.formats._words import StoredWords
from nplm.formats.on_disk.outputs import Output, StoredTrie
from nplm.formats.on_disk.sources import arpa_on_disk, limit_memory, trie_on_disk
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.quantized_trie import QuantizedTrie
from nplm.models.training.parallel.threads import Threads

__all__ = ["convert_arpa", "convert_trie"]


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
        source, words = arpa_on_disk(path, scratch, memory, add_unknown=add_unknown)
        output.write(source, words, scratch)


def convert_trie(
    trie: BackoffTrie | QuantizedTrie,
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
    trie : BackoffTrie or QuantizedTrie
        The n-grams, in memory or mapped from a file, which is then unpacked to the
        temporary folder.
    words : StoredWords
        The words, and the id of the boundary.
    output, memory, folder, progress
        As in `convert_arpa`.
    """
    with Scratch(folder, memory, Threads(1), progress) as scratch:
        limit_memory(scratch, memory, words.n_words)
        output.write(StoredTrie(trie_on_disk(trie, scratch), scratch), words, scratch)
