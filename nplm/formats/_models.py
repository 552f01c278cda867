"""The n-grams and counts of fitted models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nplm.models.ngrams.stages.counts import NgramCounts
    from nplm.models.ngrams.trie.backoff_trie import BackoffTrie

__all__ = ["counts_of", "trie_of"]


def trie_of(model: object) -> BackoffTrie:
    """Return the n-grams of a fitted back-off model, or raise."""
    # Imported here: files of n-grams are written without scikit-learn.
    from sklearn.utils.validation import check_is_fitted

    from nplm.models.ngrams.backoff_model import BackoffModel

    if not isinstance(model, BackoffModel):
        raise TypeError(
            f"{_name(model)} has no n-grams with back-off weights, which the file "
            "holds; pass a KneserNeyLM or a BackoffLM."
        )
    check_is_fitted(model, "trie_")
    return model.trie_


def counts_of(model: object) -> NgramCounts:
    """Return the n-gram counts of a fitted model, or raise."""
    from sklearn.utils.validation import check_is_fitted

    from nplm.models.ngrams.kneser_ney import KneserNeyLM

    if not isinstance(model, KneserNeyLM):
        raise TypeError(
            f"{_name(model)} keeps no n-gram counts, which the file holds; pass a "
            "KneserNeyLM."
        )
    check_is_fitted(model, "counts_")
    return model.counts_


def _name(model: object) -> str:
    return model.__name__ if isinstance(model, type) else type(model).__name__
