"""HashTable: the n-grams of a back-off model in a hash table, for fast scoring."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashed, _hashing, _trie
from nplm.base.array_types import Bytes, Counts, Floats, Ids, Mask
from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.files.tensors import empty_lines

BUCKET_BYTES = _hashing.BUCKET_BYTES


class WindowLookUps:
    """Mixin of n-grams that a kernel looks windows up in."""

    n_ngrams: Counts  # of each order; every word is a unigram

    @property
    def kernel(self) -> _trie.Ngrams:
        """The n-grams in the form that kernels take."""
        raise NotImplementedError

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return int(self.n_ngrams[0])

    @property
    def order(self) -> int:
        """Number of words in the longest n-gram."""
        return len(self.n_ngrams)

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word; ids are not checked."""
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            windows = np.ascontiguousarray(X[rows]), np.ascontiguousarray(y[rows])
            _trie.windows_prob(self.kernel, *windows, out[rows])
        return out

    def words_prob(self, X: Ids, words: Ids) -> Floats:
        """Return the probability of several words (n_samples, n) after each context."""
        out, n = np.empty(words.shape), words.shape[1]
        for rows in blocks(len(X), max(1, BLOCK_WINDOWS // max(1, n))):
            contexts = np.repeat(X[rows], n, axis=0)
            prob = self.next_word_prob(contexts, words[rows].ravel())
            out[rows] = prob.reshape(-1, n)
        return out

    def next_word_log_prob(self, X: Ids, y: Ids) -> Floats | None:
        """Return the log-probability of each next word, None if an id is invalid."""
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            windows = np.ascontiguousarray(X[rows]), np.ascontiguousarray(y[rows])
            if not _trie.windows_log_prob(self.kernel, *windows, out[rows]):
                return None
        return out


@dataclass(frozen=True, eq=False)
class HashTable(WindowLookUps):
    """Index of a trie: its probabilities and weights by the hash of the words.

    Look-ups return the same probabilities as the trie, bit for bit, several times as
    fast. A slot stores 47 bits of the hash, or 40 for the longest n-grams, and its
    bucket implies more: a missing n-gram is mistaken for another one about once in
    10**13 look-ups, or 10**11 of the longest.

    - `prob`, `bow` (n_words,): probability and back-off weight of each word
    - `buckets`: the n-grams of all levels, in buckets of 64 bytes
    - `bucket_start` (order + 1,): the first bucket of each level
    - `closed`: whether each context c w is also an n-gram. If so, the probabilities of
      the words that follow a text depend only on the longest context that ends it. The
      first words of a stream make contexts that are not n-grams, and pruning may make
      more
    """

    prob: NDArray[np.float32]
    bow: NDArray[np.float32]
    buckets: Bytes
    bucket_start: Counts
    closed: bool

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return len(self.prob)

    @property
    def order(self) -> int:
        """Number of words in the longest n-gram."""
        return len(self.bucket_start) - 1

    @cached_property
    def kernel(self) -> _hashed.Table:
        """The table in the form that kernels take."""
        arrays = self.buckets, self.bucket_start, self.prob, self.bow
        return _hashed.Table(*arrays, self.closed)

    def __reduce__(self) -> Any:
        # Plain arrays: those of a mapped file are copied.
        values = (getattr(self, field.name) for field in fields(self))
        plain = [v.view(np.ndarray) if isinstance(v, np.ndarray) else v for v in values]
        return _unpickled, tuple(plain)


def _unpickled(
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    buckets: Bytes,
    bucket_start: Counts,
    closed: bool,
) -> HashTable:
    """Return a table whose buckets are aligned, as those of a pickle are not."""
    aligned = empty_buckets(len(buckets) // BUCKET_BYTES)
    aligned[:] = buckets
    return HashTable(prob, bow, aligned, bucket_start, closed)


def empty_buckets(n_buckets: int) -> Bytes:
    """Return empty buckets, aligned to cache lines as they must be."""
    buckets = empty_lines(n_buckets * BUCKET_BYTES)
    buckets[:] = 0
    return buckets


def used_slots(buckets: Bytes, *, longest: bool) -> Mask:
    """Return which slots of each bucket of a level are used."""
    rows = buckets.reshape(-1, BUCKET_BYTES)
    parts = rows.view("<u4")
    if longest:
        n = _hashing.LONG_BUCKET_SLOTS
        return (parts[:, :n] != 0) | (rows[:, 8 * n : 9 * n] != 0)
    n = _hashing.BUCKET_SLOTS
    # One of the two parts of a key is not 0.
    return (parts[:, :n] | parts[:, n : 2 * n]) != 0
