"""Build the hash table of a trie, in windows of buckets that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashed, _hashing
from nplm.base.array_types import AnyArray, Bytes, Counts, Ids, Index
from nplm.base.blocks import blocks
from nplm.base.files.tensors import put
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie, blocks_of_contexts
from nplm.models.ngrams.trie.hash_table import (
    BUCKET_BYTES,
    HashTable,
    empty_buckets,
    used_slots,
)
from nplm.models.ngrams.trie.work import Work

MAX_HASHED_ORDER = _hashed.MAX_ORDER
# Slots per n-gram: fewer make a smaller table, in which more searches need a second
# bucket. Each look-up reads bigrams, and often there is none, which takes the longest
# searches; few look-ups read the longest n-grams.
SLOTS_PER_BIGRAM, SLOTS_PER_NGRAM, SLOTS_PER_LONGEST = 1.5, 1.2, 1.12
# Buckets of a level beyond these.
SPARE_BUCKETS = 32
# Buckets that a window extends beyond its end, for n-grams that overflow theirs.
SPILL = 1 << 12
# A level with fewer buckets is filled by one thread.
MIN_BUCKETS = 1 << 18
# Bytes written at once: those of many large pages.
BLOCK_BYTES = 1 << 25
# Slots that `_hashed` leaves free besides a tenth, its N_PUT.
FREE_SLOTS = 64


class TableFullError(Exception):
    """The buckets of a hash table do not suffice: more are needed."""


def hash_table_of(trie: BackoffTrie) -> HashTable:
    """Build the hash table of a trie in memory; equal tries give the same bytes."""
    for bucket_start in buckets_of_levels(trie.n_ngrams, trie.level_start):
        buckets = empty_buckets(int(bucket_start[-1]))
        with suppress(TableFullError):
            closed = fill_table(trie, buckets, bucket_start, Work())
            # Word w is follower w of the root, and context 1 + w.
            prob, bow = trie.prob[: trie.n_words], trie.bow[1 : trie.n_words + 1]
            return HashTable(prob, bow, buckets, bucket_start, closed)
    raise AssertionError("unreachable: sizes grow until they fit")


def index_of(trie: BackoffTrie) -> HashTable | None:
    """Return the hash table of a trie, or None if its order has none."""
    return hash_table_of(trie) if is_hashable(trie.order) else None


def is_hashable(order: int) -> bool:
    """Whether n-grams of this order have a hash table."""
    return 1 < order <= MAX_HASHED_ORDER


class Filled(NamedTuple):
    """What a window lacks.

    - `missing` (3, n): contexts, words and filters of suffixes one word shorter, which
      the trie may lack
    - `closed`: whether all contexts of this length are also n-grams
    """

    missing: Ids
    closed: bool


def buckets_of_levels(n_ngrams: Counts, level_start: AnyArray) -> Iterator[Counts]:
    """Yield `bucket_start` (order + 1,), the first bucket of each level, ever larger.

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
        yield np.concatenate([[0], np.cumsum(n_buckets)])


def keys_of(trie: ContextTrie, work: Work) -> NDArray[np.uint64]:
    """Return the key of each context: 0 of the root."""
    keys = work.array(np.uint64, len(trie.context_word))
    for level in range(1, trie.order):
        first, last = map(int, trie.level_start[level - 1 : level + 1])
        for begin, end in blocks_of_contexts(trie.child_start, first, last, work.block):
            children = slice(*trie.child_start[[begin, end]].tolist())
            own = np.empty(children.stop - children.start, dtype=np.uint64)
            _hashing.child_keys(trie.arrays, level, begin, end, keys, own)
            work.put(keys[children], own)
            work.release_pages(*trie.every_array)
    return keys


def _fill_window(
    trie: BackoffTrie,
    keys: NDArray[np.uint64],
    level: int,
    window: _hashing.Window,
    missing: Ids,
    work: Work,
) -> Filled:
    """Fill an empty window of the buckets of a level.

    Raises TableFullError if it has all buckets of the level and they do not suffice.
    """
    arrays, levels = trie.arrays, [*trie.level_start.tolist(), trie.level_start[-1]]

    def contexts(level: int) -> Iterator[tuple[int, int]]:
        if level >= trie.order:
            return
        ends = levels[level], levels[level + 1]
        for block in blocks_of_contexts(trie.start, *ends, work.block):
            yield block
            work.release_pages(*trie.every_array)

    filters, parts = np.zeros(trie.n_words, dtype=np.uint16), [missing]
    for first, last in contexts(level):
        longer = trie.start[trie.child_start[[first, last]]]
        lacking = np.empty((3, longer[1] - longer[0]), dtype=np.int32)
        arguments = first, last, window, filters, lacking
        n_lacking = _hashing.put_ngrams(arrays, keys, trie.prob, *arguments)
        if n_lacking < 0:
            raise TableFullError
        parts.insert(-1, lacking[:, :n_lacking].copy())
    n_ngrams = window.n_used
    for block in contexts(level + 1):
        if not _hashing.put_contexts(arrays, keys, trie.bow, *block, window):
            raise TableFullError
    closed = window.n_used == n_ngrams
    lacking = np.concatenate(parts, axis=1)
    added = np.empty_like(lacking)
    n_added = _hashing.put_suffixes(arrays, keys, lacking, window, added)
    if n_added < 0:
        raise TableFullError
    added = added[:, :n_added].copy()
    added[0] = trie.parents_of(added[0])
    return Filled(added, closed)


def _in_order(missing: Ids) -> Ids:
    """Return missing suffixes sorted and distinct: the slots depend on their order."""
    missing = missing[:, np.lexsort(missing[::-1])]
    is_new = np.ones(missing.shape[1], dtype=bool)
    is_new[1:] = (missing[:, 1:] != missing[:, :-1]).any(axis=0)
    return np.ascontiguousarray(missing[:, is_new])


def fill_table(
    trie: BackoffTrie, buckets: Bytes, bucket_start: Counts, work: Work
) -> bool:
    """Fill the hash table of a trie, one window of buckets at a time; return `closed`.

    Equal tries give the same bytes, whatever the windows. Suffixes that n-grams lack
    take 12 bytes of memory each. Raises TableFullError if the slots do not suffice.
    """
    keys = keys_of(trie, work)
    work.stage("hashing", int(bucket_start[-1]))
    closed = True
    missing = np.empty((3, 0), dtype=np.int32)
    try:
        for level in range(trie.order - 1, 0, -1):
            first, last = bucket_start[level : level + 2] * BUCKET_BYTES
            filled: list[Filled] = []

            def fill(
                window: _hashing.Window,
                level: int = level,
                missing: Ids = missing,
                filled: list[Filled] = filled,
            ) -> None:
                arguments = trie, keys, level, window, missing, work
                filled.append(_fill_window(*arguments))
                work.release_pages(buckets)

            longest = level + 1 == trie.order
            _fill_level(buckets[first:last], fill, work, longest=longest)
            missing = np.concatenate([window.missing for window in filled], axis=1)
            missing = _in_order(missing)
            closed = closed and all(window.closed for window in filled)
    finally:
        work.drop(keys)
    return closed


def _fill_level(
    buckets: Bytes,
    fill: Callable[[_hashing.Window], None],
    work: Work,
    *,
    longest: bool,
) -> None:
    """Fill the buckets of a level, in windows that fit in memory."""
    n_buckets = len(buckets) // BUCKET_BYTES
    n_arcs = work.n_threads if n_buckets >= MIN_BUCKETS else 1
    max_buckets = max(work.memory * 3 // 4 // n_arcs // BUCKET_BYTES, 4 * SPILL)
    if n_arcs == 1 and n_buckets <= max_buckets:
        window = empty_buckets(n_buckets) if work.on_disk else buckets
        fill(_hashing.Window(window, n_buckets, 0, longest))
        if work.on_disk:
            _put(buckets, 0, window, work)
        work.advance(n_buckets)
        return
    bounds = [n_buckets * i // n_arcs for i in range(n_arcs + 1)]
    tails: list[tuple[int, Bytes]] = []
    is_full = Event()

    def fill_next_window(first: int, last: int) -> int:
        """Fill buckets from `first` to at most `last`; return the next to fill."""
        size = min(max_buckets, last - first + SPILL)
        window = empty_buckets(size)
        fill(_hashing.Window(window, n_buckets, first, longest))
        n = last - first
        beyond = window[n * BUCKET_BYTES :]
        if len(free := _not_full(beyond, longest=longest)):
            # The n-grams of this arc that overflow into the next one end at the first
            # bucket that is not full.
            tail = beyond[: (int(free[0]) + 1) * BUCKET_BYTES].copy()
            tails.append((last % n_buckets, tail))
        else:
            # n-grams that overflow the window are missing, but only after its last
            # bucket that is not full: the next window begins there.
            n = _last_free_bucket(window, longest=longest) + 1
            if n == 0:
                is_full.set()
                return last
        _put(buckets, first, window[: n * BUCKET_BYTES], work)
        work.advance(n)
        return first + n

    def fill_arc(_: int, arc: tuple[int, int]) -> None:
        first, last = arc
        while first < last:
            first = fill_next_window(first, last)

    work.each(fill_arc, pairwise(bounds))
    if is_full.is_set():
        raise TableFullError
    for first, tail in tails:
        _put(buckets, first, tail, work)
    n_used = n_slots = 0
    for part in blocks(n_buckets, SPILL):
        part_buckets = buckets[part.start * BUCKET_BYTES : part.stop * BUCKET_BYTES]
        used = used_slots(part_buckets, longest=longest)
        n_used, n_slots = n_used + int(np.count_nonzero(used)), n_slots + used.size
        work.release_pages(buckets)
    if n_used + FREE_SLOTS >= n_slots - n_slots // 10:
        raise TableFullError


def _put(buckets: Bytes, first: int, values: Bytes, work: Work) -> None:
    """Write `values` from bucket `first` on, and release their memory."""
    target = buckets[first * BUCKET_BYTES :]
    for part in blocks(len(values), BLOCK_BYTES):
        put(target[part], values[part])
        work.release_pages(buckets)


def _last_free_bucket(window: Bytes, *, longest: bool) -> int:
    """Return the number of the last bucket that is not full, or -1."""
    # It is near the end: search from there.
    for end in range(len(window) // BUCKET_BYTES, 0, -SPILL):
        first = max(end - SPILL, 0)
        part = window[first * BUCKET_BYTES : end * BUCKET_BYTES]
        free = _not_full(part, longest=longest)
        if len(free):
            return first + int(free[-1])
    return -1


def _not_full(buckets: Bytes, *, longest: bool) -> Index:
    """Return the numbers of the buckets whose last slot is empty."""
    return np.flatnonzero(~used_slots(buckets, longest=longest)[:, -1])
