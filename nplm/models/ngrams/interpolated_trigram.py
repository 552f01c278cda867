"""InterpolatedTrigram: a mixture of the relative frequencies of all orders."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from nplm._kernels.ngrams import _interpolation
from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Counts, Floats, Ids, Index
from nplm.base.blocks import BLOCK_WINDOWS, blocks, blocks_of_rows
from nplm.base.estimators.bases import Whole, hyperparameters, non_negative
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import CheapWords
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.ngrams.stages.counts import NgramCounts, taken_counts
from nplm.models.ngrams.trie.trie_checks import arrays_of
from nplm.models.training import em


class RelativeFrequencies:
    """Members of the mixture of the interpolated trigram, for any order.

    p_0 is uniform. p_k is the relative frequency of a word after the nearest ``k - 1``
    words, or p_{k-1} if these were never seen as a context. The ids of `X` (n_samples,
    order - 1), the nearest word last, are not checked.
    """

    def __init__(self, counts: NgramCounts) -> None:
        self.counts = counts
        self.totals = counts.totals()

    @property
    def n_tokens(self) -> int:
        """Number of windows of the training corpus."""
        return int(self.totals[0])

    @cached_property
    def bins(self) -> em.FrequencyBins:
        """Bins of the frequency of contexts of full length."""
        whole = self.totals[self.counts.level_start[-2] :]
        return em.FrequencyBins.of_training(int(whole.max()), self.n_tokens)

    def bin_of(self, X: Ids, bins: em.FrequencyBins | None = None) -> Index:
        """Return the row of each context, among the `bins` of other counts if given."""
        return (bins or self.bins).row(self.frequency(X), self.n_tokens)

    def frequency(self, X: Ids) -> Counts:
        """Return how often each whole context was seen in training."""
        trie = self.counts
        out = np.empty(len(X), dtype=np.int64)
        path = trie.path()
        for rows in blocks(len(X), BLOCK_WINDOWS):
            _interpolation.context_frequencies(
                trie.arrays, self.totals, X[rows], path, out[rows]
            )
        return out

    def prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word under each member, uniform first."""
        out = np.empty((len(y), self.counts.order + 1))
        arrays, path = self._arrays(), self.counts.path()
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _interpolation.relative_frequencies(
                *arrays, X[rows], y[rows], path, out[rows]
            )
        return out

    def mixture(self, X: Ids, weights: Floats) -> Floats:
        """Return the probability of every word by weights (n_samples, order + 1)."""
        out = np.empty((len(X), self.counts.n_words))
        arrays, path = self._arrays(), self.counts.path()
        for rows in blocks_of_rows(len(X), self.counts.n_words):
            _interpolation.mixed_frequencies(
                *arrays, weights[rows], X[rows], path, out[rows]
            )
        return out

    def _arrays(self) -> tuple[Trie, Counts, Counts]:
        return self.counts.arrays, self.counts.counts, self.totals


@hyperparameters
class InterpolatedTrigram(CheapWords):
    r"""Mixture of relative frequencies, weighted by the frequency of the context.

    The first baseline of Bengio et al. (2003), section 4.1, after Jelinek and
    Mercer (1980): a mixture of the uniform distribution and the unigram, bigram and
    trigram relative frequencies,

    .. math:: P(w | c) = \alpha_0(q) / |V| + \sum_k \alpha_k(q) p_k(w | c_k),

    with a set of weights for each bin :math:`q = \lceil -\log((1 + freq(c)) /
    T) \rceil` of the context's frequency, estimated by EM on held-out windows. Each
    bin has one pseudo-sample besides its windows, divided like those of all bins
    together, so that a few windows cannot reduce the weight of a member to 0. If a
    context was never seen, its order falls back on the one below
    (:math:`p_3 := p_2`), so the probabilities always sum to 1.

    Parameters
    ----------
    order : int or None, default=3
        Words in the longest n-gram; 3 is the trigram of the paper. Of wider windows,
        only the nearest ``order - 1`` columns are used. None uses every column.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.
    validation_fraction : float, default=0.1
        Fraction of the training windows, the last ones, to hold out if `X_val` is not
        given. EM runs on it with the counts of the other windows; the final model
        counts all windows.
    max_iter : int, default=1000
        Maximum number of iterations of EM, accelerated by Newton's method.
    tol : float, default=1e-7
        EM stops when no weights gain more than this, in nats per token.

    Attributes
    ----------
    weights_ : ndarray of float64, shape (n_bins, order_ + 1)
        Mixture weights of each bin: uniform, unigram, and so on; rows sum to 1. A
        bin without held-out windows has the weights of the nearest bin with some.
    bins_ : ndarray of int64, shape (n_bins,)
        Bin number q of each row, from the most frequent contexts to unseen ones.
    n_iter_ : int
        Number of iterations of EM run.
    members_ : RelativeFrequencies
        The members of the mixture; its ``counts`` are those of the training windows.
    n_parameters_ : int
        Number of counts stored and of free weights.
    order_, n_words_ : int
        The order and vocabulary size in use.

    References
    ----------
    Y. Bengio, R. Ducharme, P. Vincent and C. Jauvin (2003). A neural
    probabilistic language model. JMLR 3.

    F. Jelinek and R. L. Mercer (1980). Interpolated estimation of Markov source
    parameters from sparse data. Pattern Recognition in Practice.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, windows
    >>> ids = [0, 1, 2, 0, 1, 3] * 20
    >>> X, y = windows(ids, 2)
    >>> model = InterpolatedTrigram().fit(X, y)
    >>> model.predict_proba([[0, 1]]).round(2)
    array([[0. , 0. , 0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Whole(0)],
        "tol": [non_negative()],
    }

    order: int | None = field(default=3, kw_only=False)
    n_words: int | None = None
    validation_fraction: float = 0.1
    max_iter: int = em.MAX_ITER
    tol: float = em.TOL

    def _fit(self, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        members = self._count(X, y)
        # Held-out windows must not be counted, or EM overestimates long contexts.
        em_members = members
        if held_out is None:
            n_kept = self._n_kept(len(y))
            held_out = X[n_kept:], y[n_kept:]
            em_members = self._count(X[:n_kept], y[:n_kept])
        X_val, y_val = held_out
        fit = em.fit_mixture_weights(
            em_members.prob(X_val, y_val),
            em_members.bin_of(X_val, members.bins),
            members.bins.n_bins,
            max_iter=self.max_iter,
            tol=self.tol,
            prior=em.BIN_PRIOR,
        )
        fit.warn_unless_converged(type(self).__name__, self.max_iter, self.tol)
        self._set_fitted(members, fit.weights, fit.n_iter)

    def _set_fitted(
        self, members: RelativeFrequencies, weights: Floats, n_iter: int
    ) -> None:
        self.members_, self.bins_ = members, members.bins.numbers
        self.weights_ = weights
        self.n_iter_ = n_iter
        n_free_weights = weights.size - len(weights)
        n_counts = np.count_nonzero(members.counts.counts)
        self.n_parameters_ = int(n_counts) + n_free_weights

    _saved: ClassVar[dict[str, Item]] = {
        "counts": Item(taken_counts, of=lambda lm: arrays_of(lm.members_.counts)),
        "n_iter": Item(Fitted.whole),
        "weights": Item(Fitted.shares, (None, None)),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        counts, weights = values["counts"], self.weights_
        if self.order_ != counts.order:
            raise invalid_item("order", self.order_)
        members = RelativeFrequencies(counts)
        if weights.shape != (members.bins.n_bins, counts.order + 1):
            raise invalid_item("weights", weights)
        self.n_words_ = counts.n_words
        self._set_fitted(members, weights, self.n_iter_)

    def _n_kept(self, n_samples: int) -> int:
        n_held_out = max(1, round(self.validation_fraction * n_samples))
        if n_held_out >= n_samples:
            raise ValueError(
                f"n_samples={n_samples} windows are too few to hold out "
                f"{n_held_out} of them for EM; pass more windows, or X_val and y_val."
            )
        return n_samples - n_held_out

    def _n_known(self) -> int:
        return self.members_.counts.n_words

    def _count(self, X: Ids, y: Ids) -> RelativeFrequencies:
        return RelativeFrequencies(
            NgramCounts.from_windows(X, y, n_words=self.n_words_)
        )

    def member_weights(self, X: Ids) -> Floats:
        """Return the weights of each context, shape (n_samples, n_members)."""
        return self.weights_[self.members_.bin_of(self._nearest(X))]

    def member_log_probs(self, data: tuple[Ids, Ids]) -> Floats:
        """Return the scores of windows by each order."""
        X, y = data
        with np.errstate(divide="ignore"):  # a word that was never seen after a context
            return np.log(self.members_.prob(self._nearest(X), y))

    def _predict_proba(self, X: Ids) -> Floats:
        return self.members_.mixture(X, self.member_weights(X))

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        prob = np.einsum("ij,ij->i", self.member_weights(X), self.members_.prob(X, y))
        with np.errstate(divide="ignore"):  # the user may have set a weight to 0
            return np.log(prob, out=prob)
