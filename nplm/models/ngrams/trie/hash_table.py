"""HashTable: the n-grams of a back-off model in a hash table, for fast scoring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashed, _hashing
from nplm.models.ngrams.trie.context_trie import (
    BLOCK_FOLLOWERS,
    ContextTrie,
    WeightedTrie,
    blocks_of_contexts,
)
from nplm.models.ngrams.trie.look_ups import WindowLookUps

__all__ = [
    "BUCKET_BYTES",
    "MAX_HASHED_ORDER",
    "Filled",
    "HashTable",
    "are_full",
    "empty_buckets",
    "fill_keys",
    "fill_window",
    "in_order",
    "index_of",
    "is_hashable",
    "n_used_slots",
    "sizes_of_levels",
    "slots_in_bucket",
]

MAX_HASHED_ORDER = _hashed.MAX_ORDER
BUCKET_BYTES = _hashing.BUCKET_BYTES
# Slots per n-gram: fewer make a smaller table, in which more searches need a second
# bucket. Each look-up reads bigrams, and often there is none, which takes the longest
# searches; few look-ups read the longest n-grams.
SLOTS_PER_BIGRAM, SLOTS_PER_NGRAM, SLOTS_PER_LONGEST = 1.5, 1.2, 1.12
# Buckets of a level beyond these.
SPARE_BUCKETS = 32


@dataclass(frozen=True, eq=False)
class HashTable(WindowLookUps):
    """Index of a trie: its probabilities and weights by the hash of the words.

    Look-ups return the same probabilities as the trie, bit for bit, several times as
    fast. A slot stores 47 bits of the hash, or 40 for the longest n-grams, and its
    bucket implies more: a missing n-gram is mistaken for another one about once in
    10**13 look-ups, or 10**11 of the longest.

    Attributes
    ----------
    prob, bow : ndarray of float32, shape (n_words,)
        Probability of each word as a unigram, and its back-off weight as a context.
    buckets : ndarray of uint8
        The n-grams of all levels, in buckets of 64 bytes.
    bucket_start : ndarray of int64, shape (order + 1,)
        The first bucket of each level.
    closed : bool
        Whether each context c w is also an n-gram: the word w after a context c of the
        trie. If so, the probabilities of the words that follow a text depend only on
        the longest context that ends it. The first words of a stream make contexts
        that are not n-grams, and pruning may make more.
    """

    prob: NDArray[np.float32]
    bow: NDArray[np.float32]
    buckets: NDArray[np.uint8]
    bucket_start: NDArray[np.int64]
    closed: bool

    @classmethod
    def of(cls, trie: WeightedTrie) -> Self:
        """Build the hash table of a trie; equal tries give the same bytes.

        Parameters
        ----------
        trie : WeightedTrie
            A trie of order 2 to ``MAX_HASHED_ORDER``.

        Returns
        -------
        table : HashTable
        """
        parent = trie.parents()
        keys = np.empty(len(trie.context_word), dtype=np.uint64)
        fill_keys(trie, parent, keys)
        for n_buckets in sizes_of_levels(trie.n_ngrams, trie.level_start):
            bucket_start = np.concatenate([[0], np.cumsum(n_buckets)])
            buckets = empty_buckets(int(bucket_start[-1]))
            missing = np.empty((3, 0), dtype=np.int32)
            closed = True
            for level in range(trie.order - 1, 0, -1):
                first, last = bucket_start[level : level + 2] * BUCKET_BYTES
                window = _hashing.Window(
                    buckets[first:last], n_buckets[level], 0, level + 1 == trie.order
                )
                filled = fill_window(trie, parent, keys, level, window, missing)
                if filled is None:
                    break
                missing = in_order(filled.missing)
                closed = closed and filled.closed
            else:
                # Word w is follower w of the root, and context 1 + w.
                prob, bow = trie.prob[: trie.n_words], trie.bow[1 : trie.n_words + 1]
                return cls(prob, bow, buckets, bucket_start, closed)
        raise AssertionError("unreachable: sizes grow until they fit")

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
        own = self.buckets, self.bucket_start, self.prob, self.bow
        return _hashed.Table(*own, self.closed)

    def __reduce__(self) -> Any:
        # Plain arrays: those of a mapped file are copied.
        own = (getattr(self, field.name) for field in fields(self))
        plain = [v.view(np.ndarray) if isinstance(v, np.ndarray) else v for v in own]
        return _unpickled, tuple(plain)


def _unpickled(
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    buckets: NDArray[np.uint8],
    bucket_start: NDArray[np.int64],
    closed: bool,
) -> HashTable:
    """Return a table whose buckets are aligned, as those of a pickle are not."""
    aligned = empty_buckets(len(buckets) // BUCKET_BYTES)
    aligned[:] = buckets
    return HashTable(prob, bow, aligned, bucket_start, closed)


def index_of(trie: WeightedTrie) -> HashTable | None:
    """Return the hash table of a trie, or None if its order has none."""
    return HashTable.of(trie) if is_hashable(trie.order) else None


def is_hashable(order: int) -> bool:
    """Whether n-grams of this order have a hash table."""
    return 1 < order <= MAX_HASHED_ORDER


class Filled(NamedTuple):
    """Return value of `fill_window`.

    Attributes
    ----------
    missing : ndarray of int32, shape (3, n)
        Contexts, words and filters of suffixes one word shorter, which the trie may
        lack.
    closed : bool
        Whether all contexts of this length are also n-grams.
    """

    missing: NDArray[np.int32]
    closed: bool


def sizes_of_levels(
    n_ngrams: NDArray[np.int64], level_start: NDArray[Any]
) -> Iterator[NDArray[np.int64]]:
    """Yield the number of buckets of each level of a trie, in increasing sizes.

    The first sizes may be too small for a pruned trie, which has contexts and suffixes
    that are not n-grams.
    """
    # The buckets of a level hold n-grams of k + 1 words and contexts of this length.
    n_contexts = np.append(np.diff(level_start)[1:], 0)
    # Without n-grams the sizes would stay as they are: a file may be larger.
    n_slots = np.maximum(np.maximum(n_ngrams, n_contexts), 1).astype(np.float64)
    slots = np.full(len(n_slots), _hashing.BUCKET_SLOTS)
    slots[-1] = _hashing.LONG_BUCKET_SLOTS
    growth = np.full(len(n_slots), SLOTS_PER_NGRAM)
    growth[1], growth[-1] = SLOTS_PER_BIGRAM, SLOTS_PER_LONGEST
    while True:
        n_slots *= growth
        n_buckets = (n_slots / slots).astype(np.int64) + SPARE_BUCKETS
        n_buckets[0] = 0
        yield n_buckets


def fill_keys(
    trie: ContextTrie,
    parent: NDArray[np.int32],
    keys: NDArray[np.uint64],
    done: Callable[[], Any] = lambda: None,
    size: int = BLOCK_FOLLOWERS,
) -> None:
    """Fill the key of each context; call `done` after every `size` contexts."""
    for level in range(trie.order):
        first, last = map(int, trie.level_start[level : level + 2])
        for begin in range(first, last, size):
            end = min(begin + size, last)
            _hashing.context_keys(trie.arrays, parent, level, begin, end, keys)
            done()


def fill_window(
    trie: WeightedTrie,
    parent: NDArray[np.int32],
    keys: NDArray[np.uint64],
    level: int,
    window: _hashing.Window,
    missing: NDArray[np.int32],
    done: Callable[[], Any] = lambda: None,
    size: int = BLOCK_FOLLOWERS,
) -> Filled | None:
    """Fill a window of the buckets of a level; equal tries give the same bytes.

    Parameters
    ----------
    trie : WeightedTrie
        The n-grams.
    parent : ndarray of int32, shape (n_contexts,)
        Parent of each context.
    keys : ndarray of uint64, shape (n_contexts,)
        Keys of the contexts, from `fill_keys`.
    level : int
        Words in the contexts of the n-grams.
    window : Window
        Empty buckets.
    missing : ndarray of int32, shape (3, n)
        `missing` of the next longer level, if that had a single window.
    done : callable
        Called after every `size` n-grams.
    size : int
        Number of n-grams in a block.

    Returns
    -------
    filled : Filled or None
        None if the window has all buckets of the level and they do not suffice.
    """
    arrays, levels = trie.arrays, [*trie.level_start.tolist(), trie.level_start[-1]]

    def contexts(level: int) -> Iterator[tuple[int, int]]:
        if level >= trie.order:
            return
        own = levels[level], levels[level + 1]
        for block in blocks_of_contexts(trie.start, *own, size):
            yield block
            done()

    filters, found = np.zeros(trie.n_words, dtype=np.uint16), [missing]
    for first, last in contexts(level):
        longer = trie.start[trie.child_start[[first, last]]]
        lacking = np.empty((3, longer[1] - longer[0]), dtype=np.int32)
        own = first, last, window, filters, lacking
        n_lacking = _hashing.put_ngrams(arrays, keys, trie.prob, *own)
        if n_lacking < 0:
            return None
        found.insert(-1, lacking[:, :n_lacking].copy())
    n_ngrams = window.n_used
    for block in contexts(level + 1):
        if not _hashing.put_contexts(arrays, keys, trie.bow, *block, window):
            return None
    closed = window.n_used == n_ngrams
    lacking = np.concatenate(found, axis=1)
    made = np.empty_like(lacking)
    n_made = _hashing.put_suffixes(arrays, parent, keys, lacking, window, made)
    return None if n_made < 0 else Filled(made[:, :n_made].copy(), closed)


def in_order(missing: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return missing suffixes sorted and distinct, in whatever windows they were found.

    The slots depend on the order in which suffixes are inserted.
    """
    missing = missing[:, np.lexsort(missing[::-1])]
    is_new = np.ones(missing.shape[1], dtype=bool)
    is_new[1:] = (missing[:, 1:] != missing[:, :-1]).any(axis=0)
    return np.ascontiguousarray(missing[:, is_new])


def empty_buckets(n_buckets: int) -> NDArray[np.uint8]:
    """Return empty buckets, aligned to cache lines as they must be."""
    # Not np.zeros: large np.empty arrays get huge pages.
    memory = np.empty((n_buckets + 1) * BUCKET_BYTES, dtype=np.uint8)
    skipped = -memory.ctypes.data % BUCKET_BYTES
    buckets = memory[skipped : skipped + n_buckets * BUCKET_BYTES]
    buckets[:] = 0
    return buckets


def are_full(buckets: NDArray[np.uint8], *, longest: bool) -> NDArray[np.bool_]:
    """Whether each of the buckets of a level has no empty slot.

    Parameters
    ----------
    buckets : ndarray of uint8
        Buckets of one level.
    longest : bool
        Whether the level is that of the longest n-grams.

    Returns
    -------
    full : ndarray of bool, shape (n_buckets,)
    """
    rows = buckets.reshape(-1, BUCKET_BYTES)
    if not longest:
        # One part of the key of the last slot is not 0.
        parts = rows.view("<u4")
        last = _hashing.BUCKET_SLOTS - 1
        return (parts[:, last] | parts[:, last + _hashing.BUCKET_SLOTS]) != 0
    last = _hashing.LONG_BUCKET_SLOTS - 1
    return (rows.view("<u4")[:, last] != 0) | (rows[:, -2] != 0)


def slots_in_bucket(*, longest: bool) -> int:
    """Return the number of n-grams in a bucket that is full."""
    return _hashing.LONG_BUCKET_SLOTS if longest else _hashing.BUCKET_SLOTS


def n_used_slots(buckets: NDArray[np.uint8], *, longest: bool) -> int:
    """Return the number of n-grams in buckets of one level."""
    rows = buckets.reshape(-1, BUCKET_BYTES)
    n = slots_in_bucket(longest=longest)
    if longest:
        used = (rows.view("<u4")[:, :n] != 0) | (rows[:, 8 * n : 9 * n] != 0)
    else:
        parts = rows.view("<u4")
        used = (parts[:, :n] | parts[:, n : 2 * n]) != 0
    return int(np.count_nonzero(used))
