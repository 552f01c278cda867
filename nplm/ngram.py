"""The n-gram models: interpolated relative frequencies, and modified Kneser-Ney."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._base import LanguageModel
from nplm._em import FrequencyBins, fit_mixture_weights
from nplm._kernels import _kneser_ney
from nplm.backoff import BackoffTree
from nplm.counts import NgramCounts
from nplm.frequencies import RelativeFrequencies

__all__ = ["InterpolatedTrigram", "KneserNeyLM"]

# For an order whose counts of counts give none: KenLM's `--discount_fallback`.
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)


class InterpolatedTrigram(LanguageModel):
    r"""Relative frequencies of all orders, mixed by the context's frequency.

    The first baseline of Bengio et al. (2003), section 4.1, after Jelinek and
    Mercer (1980): a mixture of the uniform distribution, the unigram, bigram and
    trigram relative frequencies,

    .. math:: P(w | c) = \alpha_0(q) / |V| + \sum_k \alpha_k(q) p_k(w | c_k),

    with a set of weights for each bin :math:`q = \lceil -\log((1 + freq(c)) /
    T) \rceil` of the context's frequency, estimated by EM on held-out windows.
    Where a context was never seen, its order falls back on the one below
    (:math:`p_3 := p_2`), so the probabilities always sum to 1.

    Parameters
    ----------
    order : int or None, default=3
        Words in the longest n-gram: 3 is the paper's trigram. Wider windows are
        read from their nearest ``order - 1`` columns; None uses every column.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.
    validation_fraction : float, default=0.1
        Without `X_val`, the last part of the training windows to hold out: EM
        runs on it with the counts of the other windows, and then all windows are
        counted.
    max_iter : int, default=100
        The most EM steps.
    tol : float, default=1e-5
        EM stops when a step gains less than this, in nats a token.

    Attributes
    ----------
    weights_ : ndarray of float64, shape (n_bins, order_ + 1)
        Mixture weights of each bin: uniform, unigram, and so on; rows sum to 1. A
        bin without held-out windows has the weights of the nearest bin with some.
    bins_ : ndarray of int64, shape (n_bins,)
        The q of each row, from the most frequent contexts to those never seen.
    n_iter_ : int
        EM steps made.
    members_ : RelativeFrequencies
        The distributions mixed; its ``counts`` are those of the training windows.
    n_parameters_ : int
        Counts stored and free weights.
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

    def __init__(
        self,
        order: int | None = 3,
        *,
        n_words: int | None = None,
        validation_fraction: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-5,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Count the training windows and estimate the weights.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val : array-like of int, shape (n_held_out, n_context), optional
            Held-out contexts for the EM; `validation_fraction` of the training
            windows when absent.
        y_val : array-like of int, shape (n_held_out,), optional
            Their next words.

        Returns
        -------
        self : InterpolatedTrigram

        Raises
        ------
        ValueError
            If ids, the order or a parameter are out of range, or if there are
            too few windows to hold some out.
        """
        X, y = self._start_fit(X, y)
        if self.max_iter < 0 or not self.tol >= 0:
            raise ValueError(
                f"max_iter={self.max_iter!r} and tol={self.tol!r} must not be negative."
            )
        held_out = self._check_held_out(X_val, y_val)
        members = self._count(X, y)
        bins = FrequencyBins.of_training(members.max_frequency, members.n_tokens)
        # What is held out must not be counted, or the EM trusts long contexts.
        em_members = members
        if held_out is None:
            n_kept = self._n_kept(len(y))
            held_out = X[n_kept:], y[n_kept:]
            em_members = self._count(X[:n_kept], y[:n_kept])
        X_val, y_val = held_out
        fit = fit_mixture_weights(
            em_members.prob(X_val, y_val),
            bins.row(em_members.frequency(X_val), em_members.n_tokens),
            bins.n_bins,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self._bins = bins
        self.members_ = members
        self.bins_ = np.arange(bins.first, bins.last + 1)
        self.weights_ = fit.weights
        self.n_iter_ = fit.n_iter
        n_free_weights = self.weights_.size - len(self.weights_)
        n_counts = np.count_nonzero(members.counts.counts)
        self.n_parameters_ = int(n_counts) + n_free_weights
        return self

    def _n_kept(self, n_samples: int) -> int:
        fraction = self.validation_fraction
        if not isinstance(fraction, numbers.Real) or not 0 < fraction < 1:
            raise ValueError(
                f"validation_fraction must be between 0 and 1, got {fraction!r}."
            )
        n_held_out = max(1, round(fraction * n_samples))
        if n_held_out >= n_samples:
            raise ValueError(
                f"n_samples={n_samples} windows are too few to hold out "
                f"{n_held_out} of them for the EM; give more windows, or X_val and "
                "y_val."
            )
        return n_samples - n_held_out

    def _count(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> RelativeFrequencies:
        return RelativeFrequencies(
            NgramCounts.from_windows(X, y, n_words=self.n_words_)
        )

    def _row_weights(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        frequency = self.members_.frequency(X)
        return self.weights_[self._bins.row(frequency, self.members_.n_tokens)]

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        return self.members_.mixture(X, self._row_weights(X))

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        prob = np.einsum("ij,ij->i", self._row_weights(X), self.members_.prob(X, y))
        # Held-out data may leave the uniform member no weight.
        with np.errstate(divide="ignore"):
            return np.log(prob)


class KneserNeyLM(LanguageModel):
    r"""Modified Kneser-Ney smoothing, interpolated or back-off.

    Chen and Goodman (1999): absolute discounts :math:`D_1, D_2, D_{3+}` of each
    order, and lower orders estimated from the number of distinct words before an
    n-gram instead of its count (Kneser and Ney 1995),

    .. math:: P(w | c) = \frac{a(c, w) - D(a(c, w))}{\sum_v a(c, v)}
        + \gamma(c) P(w | c'),

    c' being the context without its oldest word. Back-off uses the first term
    alone for words seen after c, and the second for the others. Below the
    unigrams stands the uniform distribution, so every word of the vocabulary has
    probability; the back-off model gives the mass taken off the unigrams to the
    words never seen.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram; by default every column of the windows and
        the next word.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.
    interpolate : bool, default=True
        Interpolate all orders, or back off to the lower ones.
    min_counts : sequence of int, optional
        The least (modified) count that keeps an n-gram of each order, the last
        number serving all higher orders; every n-gram is kept by default.
        ``(1, 1, 2)`` is what SRILM does by default. The mass of the n-grams cut
        goes to the lower order.
    boundary : int, optional
        Id of a mark between sentences: a context ends at the nearest one, and
        n-grams that begin with it keep raw counts. For windows made with the same
        `boundary`.

    Attributes
    ----------
    discounts_ : ndarray of float64, shape (order_, 3)
        The discounts of n-grams seen once, twice, and more often.
    n_ngrams_ : ndarray of int64, shape (order_,)
        n-grams stored of each order; every word of the vocabulary is a unigram.
    tree_ : BackoffTree
        The probabilities and back-off weights.
    n_parameters_ : int
        Probabilities and back-off weights stored.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Warns
    -----
    UserWarning
        Where an order's counts of counts give no usable discounts (one of n1 to
        n4 is 0, as in a small corpus or when rare words are merged into one
        symbol; or a discount comes out of range): the order is discounted by 0.5,
        1 and 1.5 instead.

    References
    ----------
    S. F. Chen and J. Goodman (1999). An empirical study of smoothing techniques
    for language modeling. Computer Speech and Language 13.

    R. Kneser and H. Ney (1995). Improved backing-off for m-gram language
    modeling. ICASSP.

    A. Stolcke (2002). SRILM: an extensible language modeling toolkit. ICSLP.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import KneserNeyLM, windows
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> model = KneserNeyLM(n_words=100).fit(X, y)
    >>> model.n_ngrams_
    array([ 100, 1074, 2623])
    >>> proba = model.predict_proba([[1, 2], [98, 99]])
    >>> proba.shape, bool(np.allclose(proba.sum(axis=1), 1))
    ((2, 100), True)
    """

    def __init__(
        self,
        order: int | None = None,
        *,
        n_words: int | None = None,
        interpolate: bool = True,
        min_counts: Sequence[int] | None = None,
        boundary: int | None = None,
    ) -> None:
        self.order = order
        self.n_words = n_words
        self.interpolate = interpolate
        self.min_counts = min_counts
        self.boundary = boundary

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Count the training windows and estimate the model.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val, y_val : array-like of int, optional
            Held-out windows, checked but not used: the discounts come from the
            counts of counts.

        Returns
        -------
        self : KneserNeyLM

        Raises
        ------
        ValueError
            If ids, the order, a minimum count or the boundary are out of range.
        """
        X, y = self._start_fit(X, y)
        self._check_held_out(X_val, y_val)
        min_counts = self._check_min_counts()
        self._check_boundary()
        counts = NgramCounts.from_windows(
            X, y, n_words=self.n_words_, boundary=self.boundary
        )
        modified = counts.continuation_counts()
        self.discounts_ = np.empty((self.order_, 3))
        for level in range(self.order_):
            own = modified[counts.followers(level)]
            self.discounts_[level] = modified_discounts(own, level + 1)
        prob = np.empty(len(modified))
        bow = np.empty(len(counts.context_word))
        _kneser_ney.kneser_ney(
            counts.level_start,
            counts.child_start,
            counts.start,
            counts.words,
            modified,
            self.discounts_,
            min_counts,
            self.interpolate,
            np.empty(self.n_words_),
            prob,
            bow,
        )
        self.tree_ = BackoffTree(
            n_words=counts.n_words,
            level_start=counts.level_start,
            context_word=counts.context_word,
            child_start=counts.child_start,
            start=counts.start,
            words=counts.words,
            prob=prob.astype(np.float32),
            bow=bow.astype(np.float32),
        )
        if (min_counts > 1).any():
            self.tree_ = self.tree_.pruned(
                modified >= np.repeat(min_counts, counts.n_ngrams)
            )
        self.n_ngrams_ = self.tree_.n_ngrams
        n_contexts = int(np.count_nonzero(np.diff(self.tree_.start)))
        self.n_parameters_ = int(self.n_ngrams_.sum()) + n_contexts
        return self

    def _check_min_counts(self) -> NDArray[np.int64]:
        """Return the minimum count of each order, shape (order_,)."""
        given = (1,) if self.min_counts is None else self.min_counts
        if (
            np.ndim(given) != 1
            or len(given) == 0
            or not all(isinstance(n, numbers.Integral) and n >= 1 for n in given)
        ):
            raise ValueError(
                "min_counts must be None or whole numbers from 1, one an order "
                f"(the last serves all higher orders), got {self.min_counts!r}."
            )
        highest = [given[-1]] * (self.order_ - len(given))
        return np.array([*given, *highest][: self.order_], dtype=np.int64)

    def _check_boundary(self) -> None:
        if self.boundary is None:
            return
        if not isinstance(self.boundary, numbers.Integral) or not (
            0 <= self.boundary < self.n_words_
        ):
            raise ValueError(
                f"boundary must be None or a word id from 0 to {self.n_words_ - 1} "
                f"(n_words={self.n_words_}), got {self.boundary!r}."
            )

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        return self.tree_.distribution(X)

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        prob = self.tree_.next_word_prob(X, y)
        return np.log(prob, out=prob)


def modified_discounts(
    counts: NDArray[np.int64], order: int
) -> tuple[float, float, float]:
    """Discounts of one order from its counts of counts.

    Equation (26) of Chen and Goodman (1999): with n_i the number of n-grams of
    count i, ``Y = n1 / (n1 + 2 n2)`` and ``D_i = i - (i + 1) Y n_{i+1} / n_i``.

    Parameters
    ----------
    counts : ndarray of int64
        The (modified) counts of the n-grams of this order.
    order : int
        Which order it is, for the warning.

    Returns
    -------
    d1, d2, d3 : float
        For n-grams of count 1, 2, and 3 or more.

    Warns
    -----
    UserWarning
        If one of n1 to n4 is 0, or a discount is not between 0 and its count:
        then 0.5, 1 and 1.5 are returned.

    Examples
    --------
    >>> import numpy as np
    >>> modified_discounts(np.repeat([1, 2, 3, 4], [100, 40, 25, 15]), 2)
    (0.555..., 0.958..., 1.666...)
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)
    if n[1:5].all():
        Y = n[1] / (n[1] + 2 * n[2])
        found = [float(i - (i + 1) * Y * n[i + 1] / n[i]) for i in (1, 2, 3)]
        if all(0 < d < i for i, d in zip((1, 2, 3), found)):
            return found[0], found[1], found[2]
        why = "its discounts come out as {:.3g}, {:.3g} and {:.3g}".format(*found)
    else:
        why = "there are {}, {}, {} and {} of count 1 to 4".format(*n[1:5])
    warnings.warn(
        f"Kneser-Ney cannot estimate the discounts of the {order}-grams: {why}. "
        "Discounting them by {}, {} and {} instead.".format(*FALLBACK_DISCOUNTS),
        UserWarning,
        stacklevel=3,
    )
    return FALLBACK_DISCOUNTS
