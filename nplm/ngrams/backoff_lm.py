"""The estimator around a back-off model: what estimation and ARPA files end in."""

from __future__ import annotations

import numbers
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._base import LanguageModel, all_or_nothing
from nplm.ngrams.backoff import BackoffTree
from nplm.ngrams.pruning import pruned_by_entropy

__all__ = ["BackoffLM"]


class BackoffLM(LanguageModel):
    """An n-gram model that backs off, as read from a file.

    Scores, and gives the distribution of the next word, like any other model; it
    cannot be fitted. ``KneserNeyLM`` estimates one.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram.
    n_words : int, optional
        Size of the vocabulary.
    boundary : int, optional
        Id of the mark between sentences, for windows made with this `boundary`.

    Attributes
    ----------
    tree_ : BackoffTree
        The probabilities and back-off weights.
    n_ngrams_ : ndarray of int64, shape (order_,)
        n-grams stored of each order; every word of the vocabulary is a unigram.
    n_parameters_ : int
        Probabilities and back-off weights stored.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Notes
    -----
    Once one window for every 4 n-grams has been scored, `log_prob` puts the n-grams
    into a hash table, and that one call takes longer; ``tree_.hashed`` makes it at
    once. The probabilities are the same bit for bit.

    See Also
    --------
    nplm.formats.read_arpa : Read one from a file of SRILM, KenLM or nplm.

    References
    ----------
    A. Stolcke (1998). Entropy-based pruning of backoff language models. DARPA
    Broadcast News Transcription and Understanding Workshop.
    """

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        boundary: int | None = None,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.boundary = boundary

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Raise an error: there is nothing to estimate.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"{type(self).__name__} is read from a file (nplm.formats.read_arpa) and "
            "not fitted; to estimate a model from windows, use KneserNeyLM."
        )

    @classmethod
    def from_tree(cls, tree: BackoffTree, *, boundary: int | None = None) -> Self:
        """Make a fitted model of a tree.

        Parameters
        ----------
        tree : BackoffTree
            The n-grams.
        boundary : int, optional
            Id of the mark between sentences.

        Returns
        -------
        model : BackoffLM
        """
        model = cls(tree.order, n_words=tree.n_words, boundary=boundary)
        model.order_, model.n_words_ = tree.order, tree.n_words
        model.classes_ = np.arange(tree.n_words)
        model.n_features_in_ = max(tree.order - 1, 1)
        model._set_tree(tree)
        return model

    def prune(self, threshold: float) -> Self:
        r"""Drop the n-grams whose loss raises perplexity the least (Stolcke 1998).

        An n-gram (c, w) is dropped, and its context's back-off weight recomputed,
        if that alone changes the model's own perplexity by less than the fraction
        `threshold`: with P the model and P' the model without it,

        .. math:: \exp D(P \| P') - 1 < threshold,
            \quad D(P \| P') = -P(c) \sum_v P(v|c) [\log P'(v|c) - \log P(v|c)].

        Longer n-grams go first; one that longer ones still begin with stays, and
        so does every unigram. P(c) is the product of the model's own
        probabilities of the words of c.

        Parameters
        ----------
        threshold : float
            0 or more; 1e-8 to 1e-6 are usual. 0 changes nothing.

        Returns
        -------
        self : BackoffLM
            The same model, with fewer n-grams.
        """
        if not isinstance(threshold, numbers.Real) or not 0 <= threshold < np.inf:
            raise ValueError(f"threshold must be 0 or more, got {threshold!r}.")
        if threshold > 0:
            self._set_tree(pruned_by_entropy(self.tree_, float(threshold)))
        return self

    @property
    def n_parameters_(self) -> int:
        """Probabilities and back-off weights stored."""
        # Counted when asked for: a file mapped into memory is not read to load it.
        n_contexts = int(np.count_nonzero(np.diff(self.tree_.start)))
        return int(self.n_ngrams_.sum()) + n_contexts

    def _set_tree(self, tree: BackoffTree) -> None:
        self.tree_ = tree
        self.n_ngrams_ = tree.n_ngrams

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        return self.tree_.distribution(X)

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        prob = self.tree_.next_word_prob(X, y)
        # A file may give a word no probability at all.
        with np.errstate(divide="ignore"):
            return np.log(prob, out=prob)
