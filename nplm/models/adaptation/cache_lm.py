"""CacheLM: words are probable where they have just occurred."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from nplm._kernels.ngrams import _cache
from nplm.base.array_types import Floats, Ids
from nplm.base.atomic import all_or_nothing
from nplm.base.blocks import BLOCK_WINDOWS, Texts, blocks
from nplm.base.checks import (
    check_boundary,
    check_ids,
    count_ids,
    plain,
    size_of_vocabulary,
)
from nplm.base.estimators.bases import Whole, hyperparameters, unless_none
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import LanguageModel
from nplm.base.fitted import Fitted, Item


@hyperparameters
class CacheLM(LanguageModel):
    r"""Predict the words, and the pairs of words, of the last words of the text.

    A member for a `MixtureLM`, whose other members know the language. With a weight
    :math:`2^{-i / \text{half\_life}}` for the i-th nearest word, c(w) is the weight of
    the word w in the context, c(v, w) that of w just after v, and C is a sum over w:

    .. math::

        P_1(w) &= \frac{c(w) + \text{prior} \, P_0(w)}{C + \text{prior}} \\
        P(w | v) &= \frac{c(v, w) + \text{bigram\_prior} \, P_1(w)}
            {C(v) + \text{bigram\_prior}}

    P_0 is the distribution of the words of the training text, which is all that the fit
    learns, and v is the last word. An empty cache gives P_0, which counts
    for less in a fuller one.

    The cache is the context: the windows need as many columns as it has words, and a
    window's probability does not depend on other windows. Perplexities with a cache
    are reported apart, "with adaptation".

    Parameters
    ----------
    length : int or None, default=None
        Number of words in the cache, the nearest columns of X. None uses all columns.
    half_life : float or None, default=200
        Number of words after which the weight of a word is half as large. With None all
        words have the same weight.
    prior : float, default=10
        Weight of the training text's distribution of words, in words.
    bigram_prior : float or None, default=2
        Weight of the cache of words in that of pairs, in words. None uses no pairs.
    boundary : int, optional
        Id that fills the contexts before the start of a text (see `windows`). The words
        of a cache are those after the boundaries with which its columns begin; other
        boundaries are words.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.

    Attributes
    ----------
    proba_ : ndarray of float64, shape (n_words_,)
        P_0: the relative frequency of each next word, each counted once more than seen.
    n_parameters_ : int
        The number of words less one, the free parameters of P_0.
    order_, n_words_, classes_, n_features_in_
        The words of the cache plus one, the vocabulary size, the word ids, the columns
        of X.

    See Also
    --------
    NeuralCacheLM : The cache of a network, by its hidden units.
    adapted_log_prob : Training while the text is read.

    References
    ----------
    R. Kuhn and R. De Mori (1990). A cache-based natural language model for speech
    recognition. IEEE Transactions on Pattern Analysis and Machine Intelligence.

    P. R. Clarkson and A. J. Robinson (1997). Language model adaptation using mixtures
    and an exponentially decaying cache. ICASSP.

    Examples
    --------
    >>> from nplm import CacheLM, windows
    >>> X, y = windows([1, 2, 3, 4, 1, 2, 3, 4], 3, boundary=0)
    >>> lm = CacheLM(half_life=None, prior=1, bigram_prior=None, boundary=0).fit(X, y)
    >>> lm.predict_proba([[0, 0, 0], [0, 2, 2]]).round(2).tolist()
    [[0.08, 0.23, 0.23, 0.23, 0.23], [0.03, 0.08, 0.74, 0.08, 0.08]]
    """

    order = None  # `length` is what other models have the order for
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "length": [Whole(1), None],
        "half_life": [Interval(Real, 0, None, closed="neither"), None],
        "prior": [Interval(Real, 0, None, closed="neither")],
        "bigram_prior": [Interval(Real, 0, None, closed="neither"), None],
    }

    length: int | None = field(default=None, kw_only=False)
    half_life: float | None = 200
    prior: float = 10
    bigram_prior: float | None = 2
    boundary: int | None = None
    n_words: int | None = None

    def _fit(self, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        check_boundary(self.boundary, self.n_words_)
        self.order_ = cache_length(self.length, self.n_features_in_) + 1
        counts = count_ids(y, self.n_words_) + 1.0
        self.proba_ = counts / counts.sum()

    @all_or_nothing
    def fit_texts(
        self, texts: Texts, held_out: Texts | None, **fit_params: object
    ) -> Self:
        self._validate_params()
        check_ids(texts.ids, "ids", ndim=1, n_words=self.n_words)
        # Of wide windows only the next words count.
        y = texts.y[texts.rows(slice(0, len(texts)))]
        self.n_features_in_ = texts.n_context
        self.order_ = 1
        self.n_words_ = size_of_vocabulary(self.n_words, texts.ids, y)
        self._fit(texts.X, y, None)
        return self

    def _columns_needed(self) -> int:
        return unless_none(self.length)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        self._check_fitted()
        return len(self.proba_) - 1

    def _n_known(self) -> int:
        return len(self.proba_)

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {"proba": Item(Fitted.shares, (None,))}

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.n_words_ = len(self.proba_)

    # -- probabilities --------------------------------------------------------

    def _cache(self) -> tuple[int, Floats, Floats, float, float]:
        """Return what the kernels need: boundary, weights, unigrams and priors."""
        self._validate_params()  # parameters may be set after the fit
        check_boundary(self.boundary, len(self.proba_))
        distance = np.arange(self.order_ - 1, 0, -1, dtype=np.float64)
        half_life = np.inf if self.half_life is None else float(self.half_life)
        return (
            -1 if self.boundary is None else plain(self.boundary),
            np.exp2(-distance / half_life),
            self.proba_,
            float(self.prior),
            -1.0 if self.bigram_prior is None else float(self.bigram_prior),
        )

    def _predict_proba(self, X: Ids) -> Floats:
        cache, proba = self._cache(), np.empty((len(X), self.n_words_))
        for rows in self._blocks(len(X)):
            _cache.cache_distribution(X[rows], *cache, proba[rows])
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        cache, proba = self._cache(), np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _cache.cache_prob(X[rows], y[rows], *cache, proba[rows])
        return np.log(proba)


def cache_length(length: int | None, n_columns: int, others: int = 0) -> int:
    """Return the number of words in a cache beside `others` columns, or raise."""
    room = n_columns - others
    wanted = 1 if length is None else plain(length)
    if wanted > room:
        beside = f" beside the {others} of the network" if others else ""
        columns = f"{n_columns} column{'s' if n_columns > 1 else ''}"
        raise ValueError(
            f"a cache of {wanted} word{'s' if wanted > 1 else ''}{beside} needs "
            f"windows of {wanted + others} columns, but X has {columns} "
            f"(n_features={n_columns}): make wider windows "
            f"(n_context={wanted + others}), or set length."
        )
    return room if length is None else wanted
