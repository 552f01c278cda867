"""N-gram models of files and memory as tries on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.formats._models import trie_of
from nplm.formats._words import StoredWords, check_words
from nplm.formats.arpa.reading import check_boundary, check_weights, read_tables
from nplm.formats.binary.headers import damaged
from nplm.formats.binary.mapped_trie import MappedTrie
from nplm.formats.binary.unpacking import structure_on_disk, with_values
from nplm.formats.on_disk.outputs import StoredTrie, stored
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.external.tables import NOT_AN_NGRAM, NgramTables, Table
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie, DuplicateNgramError
from nplm.models.ngrams.trie.checks import check_values
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts
from nplm.models.ngrams.trie.quantized_checks import check_numbers
from nplm.models.ngrams.trie.quantized_trie import NO_PROB, NO_WEIGHT, QuantizedTrie
from nplm.text.lm.text_lm import TextLM
from nplm.text.tokenizer import Tokenizer

__all__ = [
    "arpa_lm_on_disk", "arpa_on_disk", "limit_memory", "lm_on_disk", "trie_on_disk",
    "words_of",
]  # fmt: skip

# Memory of Python, the libraries and a chunk of text.
INTERPRETER_BYTES = 230 << 20
# Bytes of a word of the vocabulary: Python's strings and numbers, and arrays.
WORD_BYTES = 400


def limit_memory(scratch: Scratch, memory: int, n_words: int) -> None:
    """Give buffers what the interpreter and the words leave of the memory."""
    used = INTERPRETER_BYTES + WORD_BYTES * n_words
    scratch.memory = max(memory - used, memory // 4)


def arpa_on_disk(
    path: str | os.PathLike[str],
    scratch: Scratch,
    memory: int,
    *,
    add_unknown: bool = True,
) -> tuple[StoredTrie, StoredWords]:
    """Read an ARPA file into a trie on disk.

    Parameters
    ----------
    path : path-like
        The ARPA file, with lines in any order.
    scratch : Scratch
        The temporary folder.
    memory : int
        Bytes of memory, as in `convert_arpa`.
    add_unknown : bool, default=True
        As in `read_arpa`.

    Returns
    -------
    source : StoredTrie
    words : StoredWords

    Raises
    ------
    ValueError, OSError
        As in `read_arpa`.
    """
    scratch.memory = memory // 4
    tables = NgramTables(scratch)
    scratch.stage("reading", 0)

    def take(table: Table) -> None:
        tables.add(table)
        scratch.tell(len(table.ngrams))

    arpa = read_tables(path, take, add_unknown=add_unknown, size=scratch.block)
    words = StoredWords(arpa.words, arpa.boundary)
    limit_memory(scratch, memory, words.n_words)
    try:
        levels = tables.levels(arpa.order, arpa.unigrams, arpa.settled)
    except DuplicateNgramError as error:
        ids = arpa.settled(tables.row(error.order, error.row)).ngrams[0]
        raise arpa.twice(error, [arpa.words[w] for w in ids]) from error
    del arpa
    source = stored(levels, scratch)
    check_weights(path, source.trie)
    return source, words


def trie_on_disk(trie: BackoffTrie | QuantizedTrie, scratch: Scratch) -> BackoffTrie:
    """Return a trie whose arrays can be read in order, unpacked if it is packed.

    Parameters
    ----------
    trie : BackoffTrie or QuantizedTrie
        In memory, or mapped from a file.
    scratch : Scratch
        The temporary folder. The buckets of a hash table are read in windows that fit
        in its memory.

    Returns
    -------
    trie : BackoffTrie
        The same n-grams; of a mapped or quantized file in arrays of `scratch`.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    if isinstance(trie, QuantizedTrie):
        check_numbers(trie)
        return _unquantized(trie, scratch)
    if not isinstance(trie, MappedTrie):
        return trie.verified()
    try:
        structure = structure_on_disk(trie.packed, scratch)
        unpacked = with_values(structure, trie.table, scratch, scratch.memory // 2)
        check_values(unpacked)
    except ValueError as error:
        raise damaged(trie.file, error) from error
    return unpacked


def _unquantized(trie: QuantizedTrie, scratch: Scratch) -> BackoffTrie:
    """Return the n-grams of a quantized trie, with the values of their codes."""
    tables = NgramTables(scratch)
    scratch.stage("reading", 0)
    own: dict[int, NDArray[np.int32]] = {}
    for i, level in enumerate(trie.levels):
        k = i + 2
        own[k] = scratch.array(f"nodes {k}", np.int32, level.n * k).reshape(-1, k)
        for first, offsets in _extensions(trie, i, scratch.block):
            begin, end = int(offsets[0]), int(offsets[-1])
            parents = np.arange(first, first + len(offsets) - 1, dtype=np.int32)
            newer = own[k - 1][parents] if i else parents[:, np.newaxis]
            words, prob_code, bow_code, _ = trie.records(i, begin, end)
            nodes = own[k][begin:end]
            nodes[:, 0] = words
            nodes[:, 1:] = np.repeat(newer, np.diff(offsets), axis=0)
            prob = level.prob[prob_code].astype(np.float64)
            prob[prob == NO_PROB] = NOT_AN_NGRAM
            bow = np.ones(len(prob))
            if k < trie.order:
                bow = level.bow[bow_code].astype(np.float64)
            # Suffixes of n-grams that the model lacks have neither.
            rows = ~np.isnan(prob) | (bow != NO_WEIGHT)
            tables.add(Table(nodes[rows], prob[rows], bow[rows]))
            scratch.tell(end - begin)
            scratch.forget(level.records)
        if i:
            scratch.remove(f"nodes {k - 1}")
            del own[k - 1]
    ids = np.arange(trie.n_words, dtype=np.int32)[:, np.newaxis]
    unigrams = Table(ids, trie.prob.astype(np.float64), trie.bow.astype(np.float64))
    levels = tables.levels(trie.order, unigrams, lambda table: table)
    return stored(levels, scratch).trie


def _extensions(
    trie: QuantizedTrie, i: int, size: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the first node of a block one word shorter, and where extensions begin.

    Level `i` has the extensions. The last of the offsets is the end of the block.
    """
    if i == 0:
        starts: Iterable[NDArray[np.int64]] = (
            trie.start[part] for part in blocks(len(trie.start), size)
        )
    else:
        starts = (offsets for _, offsets in trie.offsets(i - 1))
    first, before = 0, np.empty(0, dtype=np.int64)
    for own in starts:
        offsets = np.concatenate([before, own])
        for begin, end in blocks_of_contexts(offsets, 0, len(offsets) - 1, size):
            yield first + begin, offsets[begin : end + 1]
        first += len(offsets) - 1
        before = offsets[-1:]


def arpa_lm_on_disk(
    path: str | os.PathLike[str], scratch: Scratch, memory: int
) -> TextLM:
    """Read an ARPA file into a text model over a trie on disk.

    Parameters
    ----------
    path, scratch, memory
        As in `arpa_on_disk`.

    Returns
    -------
    lm : TextLM
        Over a `BackoffLM` without a hash table.

    Raises
    ------
    ValueError, OSError
        As in `nplm.load`.
    """
    source, words = arpa_on_disk(path, scratch, memory)
    spelled = words.spelled()
    check_boundary(words.boundary, spelled, path)
    model = BackoffLM.from_trie(source.trie, boundary=words.boundary)
    return TextLM.from_model(model, spelled)


def lm_on_disk(lm: TextLM, scratch: Scratch) -> TextLM:
    """Return a text model over a trie whose arrays can be read in order.

    Parameters
    ----------
    lm : TextLM
        A text model over back-off n-grams, in memory or mapped from a file.
    scratch : Scratch
        As in `trie_on_disk`.

    Returns
    -------
    lm : TextLM
        Over a `BackoffLM` without a hash table.

    Raises
    ------
    TypeError
        If it has no back-off n-grams.
    ValueError
        If the mapped file is damaged.
    """
    own = trie_on_disk(trie_of(lm.estimator_), scratch)
    model = BackoffLM.from_trie(own, boundary=lm.estimator_.boundary)
    return TextLM.from_model(
        model,
        lm.vocabulary_,
        tokenizer=lm.tokenizer_,
        boundary=lm.boundary_,
        predict_boundary=lm.predict_boundary,
    )


def words_of(lm: TextLM) -> StoredWords:
    """Return the words of a text model over n-grams, for a file."""
    assert lm.vocabulary_ is not None
    tokenizer = lm.tokenizer_ if isinstance(lm.tokenizer_, Tokenizer) else None
    words = check_words(lm.vocabulary_.words_.tolist(), lm.n_words_)
    spelling = lm.vocabulary_._spelling
    return StoredWords(
        words, lm.estimator_.boundary, tokenizer=tokenizer, spelling=spelling
    )
