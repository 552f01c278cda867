"""Estimate probabilities, back-off weights and the hash table on disk, in passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashed
from nplm.base.blocks import blocks
from nplm.models.ngrams.discounts import counts_of_counts, find_discounts
from nplm.models.ngrams.external.levels import Levels
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.probabilities import probabilities
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie, blocks_of_contexts
from nplm.models.ngrams.trie.hash_table import (
    BUCKET_BYTES,
    BUCKET_SLOTS,
    SLOT_BYTES,
    empty_slots,
    fill_keys,
    fill_window,
    is_hashable,
    sizes_of_levels,
)

__all__ = ["fill_parents", "fill_table", "fill_trie", "slots_of_levels"]

PARENTS = "parents"

# Slots that a window extends beyond its end, for n-grams that overflow their bucket.
SPILL = 1 << 14
# A level with fewer slots is filled by one thread.
MIN_SLOTS = 1 << 20


def fill_trie(
    levels: Levels,
    arrays: dict[str, NDArray[Any]],
    scratch: Scratch,
    *,
    interpolate: bool,
    min_counts: NDArray[np.int64],
    kind: Literal["modified", "plain"],
    fallback: tuple[float, float, float] | None,
) -> NDArray[np.float64]:
    """Fill the arrays of a trie: its structure, probabilities and weights.

    Parameters
    ----------
    levels : Levels
        The n-grams. Their files are removed.
    arrays : dict of ndarray
        Arrays of a ``BackoffTrie`` by name, on disk.
    scratch : Scratch
        Folder for temporary arrays.
    interpolate, min_counts, kind, fallback
        As in `KneserNeyLM`, where the last two are `discounts` and `discount_fallback`.

    Returns
    -------
    discounts : ndarray of float64, shape (order, 3)
    """
    n_ngrams = levels.n_ngrams
    structure = {name: arrays[name] for name in levels.sizes}
    counts = scratch.array("counts", np.int64, int(n_ngrams.sum()))
    levels.fill(structure, counts)
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
                min_counts,
                lower[thread],
                prob,
                bow,
                interpolate=interpolate,
            )
            n = int(trie.start[contexts[1]] - trie.start[contexts[0]])
            scratch.forget(*structure.values())
            scratch.tell(n)

        scratch.each(estimate, blocks_of_contexts(trie.start, first, last, size))
    for name, own in (("prob", prob), ("bow", bow)):
        for part in blocks(len(own), size):
            arrays[name][part] = own[part]
            scratch.forget(arrays[name])
    for name in ("prob", "bow", "counts"):
        scratch.remove(name)
    return discounts


def _counts_of_counts(counts: NDArray[np.int64], scratch: Scratch) -> NDArray[np.int64]:
    n = np.zeros(6, dtype=np.int64)
    for part in blocks(len(counts), scratch.block):
        n += counts_of_counts(counts[part])
        scratch.forget()
    return n


def slots_of_levels(levels: Levels) -> NDArray[np.int64]:
    """Return the first slot of each level of the hash table, and the end.

    Returns
    -------
    slot_start : ndarray of int64, shape (order + 1,), or (0,) if there is no table
    """
    if not is_hashable(len(levels.n_ngrams)):
        return np.empty(0, dtype=np.int64)
    n_slots = next(sizes_of_levels(levels.n_ngrams, levels.level_start))
    return np.concatenate([[0], np.cumsum(n_slots)])


def fill_table(
    trie: BackoffTrie,
    slots: NDArray[np.uint8],
    slot_start: NDArray[np.int64],
    scratch: Scratch,
) -> bool:
    """Fill the hash table of a trie on disk, one window of slots at a time.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams, with all their suffixes.
    slots : ndarray of uint8
        Slots on disk.
    slot_start : ndarray of int64, shape (order + 1,)
        Return value of `slots_of_levels`.
    scratch : Scratch
        Folder for temporary arrays.

    Returns
    -------
    closed : bool
        As in `HashTable`.
    """
    n_contexts = len(trie.context_word)
    own = [getattr(trie, name) for name in ("context_word", "child_start", "start")]
    own += [trie.words, trie.prob, trie.bow, slots]

    def done() -> None:
        scratch.forget(*own)

    parent = fill_parents(trie, scratch)
    keys = scratch.array("keys", np.uint64, n_contexts)
    fill_keys(trie, parent, keys, done, scratch.block)
    scratch.stage("hashing", int(slot_start[-1]))
    are_closed: list[bool] = []
    for level in range(trie.order - 1, 0, -1):
        first, last = slot_start[level : level + 2] * SLOT_BYTES

        def fill(window: _hashed.Window, level: int = level) -> None:
            none = np.empty((3, 0), dtype=np.int32)
            own = trie, parent, keys, level, window, none, done, scratch.block
            filled = fill_window(*own)
            assert filled is not None and not filled.missing.size
            are_closed.append(filled.closed)

        _fill_level(slots[first:last], fill, scratch)
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
    slots: NDArray[np.uint8], fill: Callable[[_hashed.Window], None], scratch: Scratch
) -> None:
    """Fill the slots of a level, in windows that fit in memory."""
    n_slots = len(slots) // SLOT_BYTES
    n_arcs = scratch.threads.n if n_slots >= MIN_SLOTS else 1
    max_slots = max(scratch.memory * 3 // 4 // n_arcs // SLOT_BYTES, 4 * SPILL)
    max_slots -= max_slots % BUCKET_SLOTS
    if n_arcs == 1 and n_slots <= max_slots:
        window = empty_slots(n_slots)
        fill(_hashed.Window(window, n_slots, 0))
        _put(slots, 0, window, scratch)
        scratch.tell(n_slots)
        return
    bounds = [n_slots // BUCKET_SLOTS * i // n_arcs for i in range(n_arcs + 1)]
    bounds = [BUCKET_SLOTS * bound for bound in bounds]
    tails: list[tuple[int, NDArray[np.uint8]]] = []

    def fill_next_window(first: int, last: int) -> int:
        """Fill slots from `first` to at most `last`; return the next one to fill."""
        size = min(max_slots, last - first + SPILL)
        window = empty_slots(size)
        fill(_hashed.Window(window, n_slots, first))
        n = last - first
        beyond = window[n * SLOT_BYTES :]
        if len(free := _free_buckets(beyond)):
            # The n-grams of this arc that overflow into the next one end at the first
            # bucket that is not full.
            tail = beyond[: (int(free[0]) + 1) * BUCKET_BYTES].copy()
            tails.append((last % n_slots, tail))
        else:
            # n-grams that overflow the window are missing, but only after its last
            # bucket that is not full: the next window begins there.
            n = (_last_free_bucket(window) + 1) * BUCKET_SLOTS
        _put(slots, first, window[: n * SLOT_BYTES], scratch)
        scratch.tell(n)
        return first + n

    def fill_arc(_: int, arc: tuple[int, int]) -> None:
        first, last = arc
        while first < last:
            first = fill_next_window(first, last)

    scratch.each(fill_arc, pairwise(bounds))
    for first, tail in tails:
        _put(slots, first, tail, scratch)


def _put(
    slots: NDArray[np.uint8], first: int, values: NDArray[np.uint8], scratch: Scratch
) -> None:
    """Write `values` from slot `first` on, and release their memory."""
    target = slots[first * SLOT_BYTES :]
    for part in blocks(len(values), 1 << 20):
        target[part] = values[part]
        scratch.forget(slots)


def _free_buckets(slots: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the numbers of the buckets that are not full."""
    keys = slots.view("<u8").reshape(-1, BUCKET_SLOTS, SLOT_BYTES // 8)[:, :, 0]
    return np.flatnonzero((keys == 0).any(axis=1))


def _last_free_bucket(window: NDArray[np.uint8]) -> int:
    """Return the number of the last bucket that is not full."""
    # It is near the end: search from there.
    for end in range(len(window) // BUCKET_BYTES, 0, -SPILL):
        first = max(end - SPILL, 0)
        free = _free_buckets(window[first * BUCKET_BYTES : end * BUCKET_BYTES])
        if len(free):
            return first + int(free[-1])
    raise AssertionError("unreachable: there are more slots than n-grams")
