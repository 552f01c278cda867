"""Probabilities and back-off weights of a trie, from the root to the longest contexts.

The trie may be in memory or mapped from disk: reads and writes are contiguous, and a
block is not read again until the next level.
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
    tested: NDArray[np.int64],
    min_counts: NDArray[np.int64],
    lower: NDArray[np.float64],
    prob: NDArray[np.float64],
    bow: NDArray[np.float64],
    *,
    interpolate: bool,
    spread: bool,
) -> None:
    """Fill the probabilities and back-off weights of a range of contexts.

    Parameters
    ----------
    trie : ContextTrie
        The n-grams.
    level : int
        Words in the contexts. The contexts one word shorter are already filled.
    contexts : (int, int)
        The first context, and the one after the last.
    counts, discounts, tested, min_counts, lower, prob, bow, interpolate, spread
        As in ``kneser_ney``.
    """
    first, last = contexts
    # int32, the type of the array: otherwise searchsorted would copy the array.
    parent = int(np.searchsorted(trie.child_start, np.int32(first), side="right")) - 1
    _kneser_ney.kneser_ney(
        trie.arrays,
        level,
        parent,
        first,
        last,
        counts,
        discounts,
        tested,
        min_counts,
        interpolate,
        spread,
        lower,
        prob,
        bow,
    )
