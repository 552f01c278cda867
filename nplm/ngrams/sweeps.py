"""Estimation as sweeps over a tree, from its root to the longest contexts.

The tree may be in memory or on disk, mapped: what is read and written stands side by
side, and what has been done is not looked at again until the next level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _kneser_ney
from nplm.ngrams.tree import ContextTree

__all__ = ["BLOCK_FOLLOWERS", "blocks_of_contexts", "probabilities"]

# Followers of the contexts of a block: an interrupt waits for no more.
BLOCK_FOLLOWERS = 1 << 20


def blocks_of_contexts(
    start: NDArray[np.int32], first: int, last: int, size: int | None = None
) -> Iterator[tuple[int, int]]:
    """Cut contexts `first` to `last` into blocks of about `size` followers.

    Parameters
    ----------
    start : ndarray of int32, shape (n_contexts + 1,)
        The first follower of each.
    first, last : int
        The contexts.
    size : int, optional
        A block has no more, unless it is one context; by default `BLOCK_FOLLOWERS`.

    Yields
    ------
    first, last : int
        The contexts of a block: between two of them an interrupt is heard.
    """
    size = BLOCK_FOLLOWERS if size is None else size
    while first < last:
        # Of the type of the array, or searchsorted would copy that.
        most = np.int32(min(int(start[first]) + size, np.iinfo(np.int32).max))
        end = first + int(np.searchsorted(start[first : last + 1], most, side="right"))
        end = min(max(end - 1, first + 1), last)
        yield first, end
        first = end


def probabilities(
    tree: ContextTree,
    level: int,
    contexts: tuple[int, int],
    counts: NDArray[np.int64],
    discounts: NDArray[np.float64],
    min_counts: NDArray[np.int64],
    lower: NDArray[np.float64],
    prob: NDArray[np.float64],
    bow: NDArray[np.float64],
    *,
    interpolate: bool,
) -> None:
    """Fill the probabilities and weights of some contexts of a level.

    Parameters
    ----------
    tree : ContextTree
        The n-grams.
    level : int
        Words in the contexts; those of one word less are done.
    contexts : (int, int)
        The first of them, and the one after the last.
    counts, discounts, min_counts, lower, prob, bow, interpolate
        As in ``kneser_ney``.
    """
    first, last = contexts
    # Where the parent's children begin: a search of the array's own type.
    parent = int(np.searchsorted(tree.child_start, np.int32(first), side="right")) - 1
    _kneser_ney.kneser_ney(
        tree.arrays,
        level,
        parent,
        first,
        last,
        counts,
        discounts,
        min_counts,
        interpolate,
        lower,
        prob,
        bow,
    )
