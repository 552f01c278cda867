"""Estimate probabilities, back-off weights and the hash table on disk, in passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from threading import Event
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashing
from nplm.base.blocks import blocks
from nplm.models.ngrams.discounts import counts_of_counts, find_discounts
from nplm.models.ngrams.external.cutting import CutTrie
from nplm.models.ngrams.external.levels import Levels
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.probabilities import probabilities
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie, blocks_of_contexts
from nplm.models.ngrams.trie.hash_table import (
    BUCKET_BYTES,
    are_full,
    empty_buckets,
    fill_keys,
    fill_window,
    in_order,
    is_hashable,
    n_used_slots,
    sizes_of_levels,
    slots_in_bucket,
)

__all__ = [
    "TableFullError", "buckets_of_levels", "cut_off", "fill_parents", "fill_table",
    "fill_trie",
]  # fmt: skip

PARENTS = "parents"
TESTED = "tested"

# Buckets that a window extends beyond its end, for n-grams that overflow theirs.
SPILL = 1 << 12
# A level with fewer buckets is filled by one thread.
MIN_BUCKETS = 1 << 18
# Slots that `_hashed` leaves free besides a tenth, its N_PUT.
FREE_SLOTS = 64


class TableFullError(Exception):
    """The buckets of a hash table do not suffice: more are needed."""


def fill_trie(
    levels: Levels,
    arrays: Mapping[str, NDArray[Any]],
    scratch: Scratch,
    *,
    interpolate: bool,
    min_counts: NDArray[np.int64],
    of_text: bool,
    kind: Literal["modified", "plain"],
    fallback: tuple[float, float, float] | None,
) -> NDArray[np.float64]:
    """Fill the arrays of a trie: its structure, probabilities and weights.

    Parameters
    ----------
    levels : Levels
        The n-grams and their modified counts, with `of_text` also those in the text.
        Their files are removed.
    arrays : dict of ndarray
        Arrays of a ``BackoffTrie`` by name, on disk.
    scratch : Scratch
        Folder for temporary arrays. The counts that `min_counts` is compared with
        stay there, for `cut_off`.
    interpolate, min_counts, kind, fallback
        As in `KneserNeyLM`, where the last two are `discounts` and `discount_fallback`.
    of_text : bool
        Whether `min_counts` are of the counts in the text.

    Returns
    -------
    discounts : ndarray of float64, shape (order, 3)
    """
    n_ngrams = levels.n_ngrams
    structure = {name: arrays[name] for name in levels.sizes}
    names = ["counts", "raw"] if of_text else ["counts"]
    counted = {
        name: scratch.array(name, np.int64, int(n_ngrams.sum())) for name in names
    }
    levels.fill(structure | counted)
    counts, tested = counted["counts"], counted[names[-1]]
    trie = ContextTrie(levels.n_words, **structure)
    ends = np.cumsum(n_ngrams).tolist()
    discounts = find_discounts(
        [_counts_of_counts(counts[i:j], scratch) for i, j in pairwise([0, *ends])],
        kind,
        interpolate=interpolate,
        fallback=fallback,
    )
    prob = scratch.array("prob", np.float64, len(counts))
    bow = scratch.array("bow", np.float64, int(trie.level_start[-1]))
    lower = np.empty((scratch.threads.n, levels.n_words))
    size = scratch.block
    scratch.stage("estimating", ends[-1])
    for level in range(trie.order):
        first, last = map(int, trie.level_start[level : level + 2])

        def estimate(
            thread: int, contexts: tuple[int, int], level: int = level
        ) -> None:
            probabilities(
                trie,
                level,
                contexts,
                counts,
                discounts,
                tested,
                min_counts,
                lower[thread],
                prob,
                bow,
                interpolate=interpolate,
                spread=of_text,
            )
            n = int(trie.start[contexts[1]] - trie.start[contexts[0]])
            scratch.forget(*structure.values())
            scratch.tell(n)

        scratch.each(estimate, blocks_of_contexts(trie.start, first, last, size))
    for name, own in (("prob", prob), ("bow", bow)):
        for part in blocks(len(own), size):
            arrays[name][part] = own[part]
            scratch.forget(arrays[name])
    for name in ("prob", "bow", *names[:-1]):
        scratch.remove(name)
    scratch.rename(names[-1], TESTED)
    return discounts


def cut_off(
    trie: BackoffTrie, min_counts: NDArray[np.int64], scratch: Scratch
) -> CutTrie:
    """Return the n-grams of a trie of `fill_trie` that reach the minimum counts."""
    counts = scratch.arrays[TESTED]
    keep = scratch.array("keep", np.bool_, len(counts))
    for level, min_count in enumerate(min_counts):
        own = trie.followers(level)
        for part in blocks(own.stop - own.start, scratch.block):
            rows = slice(own.start + part.start, own.start + part.stop)
            keep[rows] = counts[rows] >= min_count
            scratch.forget()
    return CutTrie(trie, keep, scratch)


def _counts_of_counts(counts: NDArray[np.int64], scratch: Scratch) -> NDArray[np.int64]:
    n = np.zeros(6, dtype=np.int64)
    for part in blocks(len(counts), scratch.block):
        n += counts_of_counts(counts[part])
        scratch.forget()
    return n


def buckets_of_levels(
    n_ngrams: NDArray[np.int64], level_start: NDArray[Any]
) -> Iterator[NDArray[np.int64]]:
    """Yield the first bucket of each level of the hash table and the end, ever larger.

    Yields
    ------
    bucket_start : ndarray of int64, shape (order + 1,), or (0,) if there is no table
    """
    if not is_hashable(len(n_ngrams)):
        yield np.empty(0, dtype=np.int64)
        return
    for n_buckets in sizes_of_levels(n_ngrams, level_start):
        yield np.concatenate([[0], np.cumsum(n_buckets)])


def fill_table(
    trie: BackoffTrie,
    buckets: NDArray[np.uint8],
    bucket_start: NDArray[np.int64],
    scratch: Scratch,
) -> bool:
    """Fill the hash table of a trie on disk, one window of buckets at a time.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams.
    buckets : ndarray of uint8
        Buckets on disk.
    bucket_start : ndarray of int64, shape (order + 1,)
        Sizes of `buckets_of_levels`.
    scratch : Scratch
        Folder for temporary arrays.

    Returns
    -------
    closed : bool
        As in `HashTable`.

    Raises
    ------
    TableFullError
        If the slots do not suffice, as may be if n-grams lack their suffixes.

    Notes
    -----
    Suffixes that n-grams lack take 12 bytes of memory each.
    """
    n_contexts = len(trie.context_word)
    own = [getattr(trie, name) for name in ("context_word", "child_start", "start")]
    own += [trie.words, trie.prob, trie.bow, buckets]

    def done() -> None:
        scratch.forget(*own)

    parent = fill_parents(trie, scratch)
    keys = scratch.array("keys", np.uint64, n_contexts)
    fill_keys(trie, parent, keys, done, scratch.block)
    scratch.stage("hashing", int(bucket_start[-1]))
    are_closed: list[bool] = []
    missing = np.empty((3, 0), dtype=np.int32)
    try:
        for level in range(trie.order - 1, 0, -1):
            first, last = bucket_start[level : level + 2] * BUCKET_BYTES
            made: list[NDArray[np.int32]] = []

            def fill(
                window: _hashing.Window,
                level: int = level,
                missing: NDArray[np.int32] = missing,
                made: list[NDArray[np.int32]] = made,
            ) -> None:
                own = trie, parent, keys, level, window, missing, done, scratch.block
                filled = fill_window(*own)
                if filled is None:
                    raise TableFullError
                are_closed.append(filled.closed)
                made.append(filled.missing)

            longest = level + 1 == trie.order
            _fill_level(buckets[first:last], fill, scratch, longest=longest)
            missing = in_order(np.concatenate(made, axis=1))
    finally:
        for name in (PARENTS, "keys"):
            scratch.remove(name)
    return all(are_closed)


def fill_parents(trie: ContextTrie, scratch: Scratch) -> NDArray[np.int32]:
    """Compute ``trie.parents()`` in an array on disk."""
    n_contexts = len(trie.context_word)
    parent = scratch.array(PARENTS, np.int32, n_contexts)
    parent[0] = 0
    children = trie.child_start
    for first, last in blocks_of_contexts(children, 0, n_contexts, scratch.block):
        n_children = np.diff(children[first : last + 1])
        numbers = np.arange(first, last, dtype=np.int32)
        parent[children[first] : children[last]] = np.repeat(numbers, n_children)
        scratch.forget(children)
    return parent


def _fill_level(
    buckets: NDArray[np.uint8],
    fill: Callable[[_hashing.Window], None],
    scratch: Scratch,
    *,
    longest: bool,
) -> None:
    """Fill the buckets of a level, in windows that fit in memory."""
    n_buckets = len(buckets) // BUCKET_BYTES
    n_arcs = scratch.threads.n if n_buckets >= MIN_BUCKETS else 1
    max_buckets = max(scratch.memory * 3 // 4 // n_arcs // BUCKET_BYTES, 4 * SPILL)
    if n_arcs == 1 and n_buckets <= max_buckets:
        window = empty_buckets(n_buckets)
        fill(_hashing.Window(window, n_buckets, 0, longest))
        _put(buckets, 0, window, scratch)
        scratch.tell(n_buckets)
        return
    bounds = [n_buckets * i // n_arcs for i in range(n_arcs + 1)]
    tails: list[tuple[int, NDArray[np.uint8]]] = []
    is_full = Event()

    def fill_next_window(first: int, last: int) -> int:
        """Fill buckets from `first` to at most `last`; return the next to fill."""
        size = min(max_buckets, last - first + SPILL)
        window = empty_buckets(size)
        fill(_hashing.Window(window, n_buckets, first, longest))
        n = last - first
        beyond = window[n * BUCKET_BYTES :]
        if len(free := np.flatnonzero(~are_full(beyond, longest=longest))):
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
        _put(buckets, first, window[: n * BUCKET_BYTES], scratch)
        scratch.tell(n)
        return first + n

    def fill_arc(_: int, arc: tuple[int, int]) -> None:
        first, last = arc
        while first < last:
            first = fill_next_window(first, last)

    scratch.each(fill_arc, pairwise(bounds))
    if is_full.is_set():
        raise TableFullError
    for first, tail in tails:
        _put(buckets, first, tail, scratch)
    n_used = 0
    for part in blocks(n_buckets, SPILL):
        own = buckets[part.start * BUCKET_BYTES : part.stop * BUCKET_BYTES]
        n_used += n_used_slots(own, longest=longest)
        scratch.forget(buckets)
    n_slots = n_buckets * slots_in_bucket(longest=longest)
    if n_used + FREE_SLOTS >= n_slots - n_slots // 10:
        raise TableFullError


def _put(
    buckets: NDArray[np.uint8],
    first: int,
    values: NDArray[np.uint8],
    scratch: Scratch,
) -> None:
    """Write `values` from bucket `first` on, and release their memory."""
    target = buckets[first * BUCKET_BYTES :]
    for part in blocks(len(values), 1 << 20):
        target[part] = values[part]
        scratch.forget(buckets)


def _last_free_bucket(window: NDArray[np.uint8], *, longest: bool) -> int:
    """Return the number of the last bucket that is not full, or -1."""
    # It is near the end: search from there.
    for end in range(len(window) // BUCKET_BYTES, 0, -SPILL):
        first = max(end - SPILL, 0)
        part = window[first * BUCKET_BYTES : end * BUCKET_BYTES]
        free = np.flatnonzero(~are_full(part, longest=longest))
        if len(free):
            return first + int(free[-1])
    return -1
