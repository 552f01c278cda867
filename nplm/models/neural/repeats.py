"""Windows that repeat, as those of n-best lists do: each is scored once."""

from __future__ import annotations

import numpy as np

from nplm.models.neural.network.array_types import Ids, Index

__all__ = ["distinct_windows"]

# Fewer windows are scored before their repeats are found.
MIN_WINDOWS = 256
# Below this share of distinct windows, scoring them alone is faster than all.
MAX_DISTINCT_SHARE = 0.95
# Odd: a multiplication modulo 2**64 then loses nothing. From SplitMix64.
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


def distinct_windows(X: Ids, y: Ids) -> tuple[Index, Index] | None:
    """Return the first of each group of equal windows, and the group of each window.

    Windows are compared by a hash of their words, and then word by word, in memory that
    does not grow with the length of contexts.

    - `X` (n_samples, n_context): contexts
    - `y` (n_samples,): next words
    - returns `first` (n_distinct,): row of the first window of each group
    - returns `group` (n_samples,): index into `first` for each window. The result is
      None if most windows are distinct, or there are few
    """
    if len(y) < MIN_WINDOWS:
        return None
    words = [y, *X.T]
    hashes = np.zeros(len(y), np.uint64)
    for column in words:
        hashes ^= column.astype(np.uint64)
        hashes *= MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) > MAX_DISTINCT_SHARE * len(y):
        return None
    if not all(np.array_equal(column[first[group]], column) for column in words):
        return None  # two windows have one hash
    # In the order of the text: windows that begin alike share steps of LSTM cells.
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group]
