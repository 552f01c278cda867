"""Probabilities and weights of a trie, from its root to the longest contexts.

The trie may be in memory or on disk, mapped: what is read and written stands side by
side, and what has been done is not looked at again until the next level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _kneser_ney
from nplm.models.ngrams.trie.context_trie import ContextTrie

__all__ = ["probabilities"]


def probabilities(
    trie: ContextTrie,
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
    trie : ContextTrie
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
    parent = int(np.searchsorted(trie.child_start, np.int32(first), side="right")) - 1
    _kneser_ney.kneser_ney(
        trie.arrays,
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
