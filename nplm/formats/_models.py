"""The n-grams of a model that is to be written, or was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nplm.ngrams.backoff_model import BackoffModel
from nplm.ngrams.kneser_ney import KneserNeyLM

if TYPE_CHECKING:
    from nplm.ngrams.backoff import BackoffTree
    from nplm.ngrams.counts import NgramCounts

__all__ = ["counts_of", "multiplies", "tree_of"]

# log10 of a product that float64 holds.
MOST = 300.0


def tree_of(model: Any) -> BackoffTree:
    """Return the n-grams of a fitted back-off model, or raise."""
    if not isinstance(model, BackoffModel):
        raise TypeError(
            f"{_name(model)} is not made of n-grams with back-off weights, which is "
            "what the file holds; give a KneserNeyLM or a BackoffLM."
        )
    check_is_fitted(model, "tree_")
    return model.tree_


def counts_of(model: Any) -> NgramCounts:
    """Return the n-gram counts of a fitted model, or raise."""
    if not isinstance(model, KneserNeyLM):
        raise TypeError(
            f"{_name(model)} keeps no n-gram counts, which is what the file holds; "
            "give a KneserNeyLM."
        )
    check_is_fitted(model, "counts_")
    return model.counts_


def multiplies(tree: BackoffTree) -> bool:
    """Whether the weights of a context and of all shorter ones have a product."""
    levels = zip(tree.level_start, tree.level_start[1:])
    heaviest = [tree.bow[first:last].max(initial=1) for first, last in levels]
    return bool(np.log10(heaviest, dtype=np.float64).sum() < MOST)


def _name(model: Any) -> str:
    return model.__name__ if isinstance(model, type) else type(model).__name__
