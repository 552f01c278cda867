"""NeuralCacheLM: the words that followed hidden states like this one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from nplm.base import checks
from nplm.base.array_types import AnyArray, Floats, Ids, Index
from nplm.base.atomic import fitted_or_interrupted
from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.estimators.bases import (
    Whole,
    hyperparameters,
    non_negative,
    unless_none,
)
from nplm.base.estimators.checked_inputs import HeldOut, columns_needed
from nplm.base.estimators.language_model import CompositeLM
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.adaptation.cache_lm import cache_length
from nplm.models.neural.fitted_network import scoring_network, trained_network
from nplm.models.neural.network.network_scorer import Scorer
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.training.parallel.blas import blas_threads

ROWS_AT_ONCE = 128  # rows whose shares are computed at once
RUN_ROWS = 1 << 13  # rows whose hidden activations are kept


class Cached(NamedTuple):
    """Windows in text order, and the words and hidden activations of their caches."""

    rows: slice
    hidden: AnyArray  # (n_rows, n_hidden): activations after each window
    words: Ids  # (n_positions,): those of all caches, in text order
    before: AnyArray  # (n_positions, n_hidden): what preceded each word
    first: Index  # (n_rows,): first position of each window's cache
    last: Index  # (n_rows,): the position after its last


@hyperparameters
class NeuralCacheLM(CompositeLM):
    r"""Predict the words that followed hidden states like the present one.

    The cache of Grave, Joulin and Usunier (2017), for a network that need not know of
    it: with the hidden activations h_t of the network after the context, and those h_i
    that preceded the words w_i of the cache,

    .. math:: P(w) \propto \sum_i 1[w = w_i] \, \exp(\theta \, h_t \cdot h_i)

    A member for a `MixtureLM` beside the network itself: words outside the cache have
    probability 0. An empty cache gives the distribution of the network.

    The cache is the context: the windows need as many columns as the cache has words,
    and those of the network more. A window's probability does not depend on other
    windows, but consecutive windows of a text share the activations: keep X in text
    order, because a window that does not follow the one before takes an activation for
    each word of its cache. Perplexities are reported apart, "with adaptation".

    Parameters
    ----------
    estimator : NeuralLM or FrozenEstimator
        The network, with an ``order`` smaller than the windows allow. `fit` fits a
        clone of it. A network wrapped in ``sklearn.frozen.FrozenEstimator`` is used as
        it is; it may have been fitted on fewer columns.
    length : int or None, default=None
        Number of words in the cache. None uses all columns of X beyond those that the
        network needs.
    theta : float, default=0.3
        How much more similar states count. 0 counts all words of the cache equally. It
        grows as the activations become smaller or fewer; choose it on held-out text.
    boundary : int, optional
        Id that fills the contexts before the start of a text, as in `CacheLM`.
    n_words : int, optional
        Size of the vocabulary, set on a network whose own is None.

    Attributes
    ----------
    estimator_ : NeuralLM
        The fitted network.
    n_parameters_ : int
        Number of parameters of the network.
    order_, n_words_, classes_, n_features_in_
        The words of the cache and of the network's context plus one, the vocabulary
        size, the word ids, the number of columns of X.

    Notes
    -----
    `fit` trains the network, with the held-out windows for its early stopping. The
    cache itself learns nothing. After an interrupt (Ctrl-C), the model is fitted with
    what the network has learned, or unchanged if that is nothing.

    References
    ----------
    E. Grave, A. Joulin and N. Usunier (2017). Improving neural language models with a
    continuous cache. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralCacheLM, NeuralLM, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 10)
    >>> network = NeuralLM(order=3, n_hidden=8, max_iter=1, random_state=0)
    >>> lm = NeuralCacheLM(network, theta=10).fit(X, y)
    >>> lm.order_, lm.predict(X[:4]).tolist()
    (11, [2, 3, 0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "estimator": [NeuralLM, FrozenEstimator],
        "length": [Whole(1), None],
        "theta": [non_negative()],
    }

    estimator: Any = field(kw_only=False)
    length: int | None = None
    theta: float = 0.3
    boundary: int | None = None
    n_words: int | None = None

    def _fit(
        self, X: Ids, y: Ids, held_out: HeldOut | None
    ) -> KeyboardInterrupt | None:
        network, interrupt = clone(self.estimator), None
        if isinstance(network, FrozenEstimator):
            network = network.estimator
            _check_network(network)
        else:
            self._set_n_words(network, self.n_words_)
            order = 1 if network.order is None else checks.plain(network.order)
            n_context = max(
                order - 1,
                checks.plain(network.n_distant),
                checks.plain(network.n_memory),
            )
            self._set_length(X.shape[1], n_context)  # before the network takes its time
            if network.order is None:
                raise ValueError(
                    "order=None of the network uses all columns of X and leaves none "
                    "to the cache: set order of the network to its words of "
                    "context plus one."
                )
            X_val, y_val = (None, None) if held_out is None else held_out
            network, interrupt = fitted_or_interrupted(
                network, X, y, X_val=X_val, y_val=y_val
            )
        checks.check_over_words(network, "the network")
        self._take_n_words(network, "the network")
        checks.check_boundary(self.boundary, self.n_words_)
        self._set_length(X.shape[1], _n_context(network))
        _check_hidden(network)
        self.estimator_ = network
        return interrupt

    def _columns_needed(self) -> int:
        return unless_none(self.length) + columns_needed(self.estimator)

    def _set_length(self, n_columns: int, n_context: int) -> None:
        self.order_ = cache_length(self.length, n_columns, n_context) + n_context + 1

    @property
    def n_parameters_(self) -> int:
        """Number of parameters of the network."""
        check_is_fitted(self)
        return self.estimator_.n_parameters_

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "network": Item(Fitted.estimator, NeuralLM, of=attrgetter("estimator_")),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.estimator_ = network = values["network"]
        checks.check_over_words(network, "the network")
        self.n_words_ = network.n_words_
        if self.order_ <= _n_context(network) + 1:
            raise invalid_item("order", self.order_)
        _check_hidden(network)

    # -- the cache --------------------------------------------------------------

    def _caches(self, X: Ids) -> Iterator[Cached]:
        """Yield the caches of windows that follow each other, run by run."""
        self._validate_params()  # parameters may be set after the fit
        checks.check_boundary(self.boundary, self.n_words_)
        checks.check_not_grown(self.estimator_, self.n_words_, type(self).__name__)
        for rows in _runs(X):
            yield self._cached(X[rows], rows)

    def _cached(self, X: Ids, rows: slice) -> Cached:
        """Return the caches of a run, with an activation for each position."""
        n, width = len(X), X.shape[1]
        n_context = _n_context(self.estimator_)
        text = np.concatenate([X[0], X[1:, -1]])
        # Position i is column i of the first window.
        last = width + np.arange(n)
        first = np.maximum(last - (width - n_context), np.arange(n) + self._padding(X))
        start = int(min(first.min(), width))
        contexts = np.lib.stride_tricks.sliding_window_view(
            text[start - n_context :], n_context
        )
        hidden = scoring_network(self.estimator_).hidden(contexts)
        n_words = len(text) - start
        return Cached(
            rows, hidden[width - start :], text[start:], hidden[:n_words],
            first - start, last - start,
        )  # fmt: skip

    def _padding(self, X: Ids) -> Index:
        """Return the number of boundaries with which each window begins."""
        if self.boundary is None:
            return np.zeros(len(X), dtype=np.intp)
        boundary = checks.plain(self.boundary)
        is_word = boundary != X
        first: Index = is_word.argmax(axis=1)
        return np.where(is_word.any(axis=1), first, X.shape[1])

    def _shares(self, cached: Cached, rows: slice) -> tuple[Floats, Ids]:
        """Return the shares of positions in caches, the nearest last, and their words.

        Sums are those of each row, so that a window has the same bits among others.
        """
        first, last = cached.first[rows], cached.last[rows]
        n = self.order_ - 1 - _n_context(self.estimator_)
        position = last[:, None] + np.arange(-n, 0)
        inside = first[:, None] <= position
        words = np.zeros(inside.shape, dtype=np.int32)
        words[inside] = cached.words[position[inside]]
        scores = np.full(inside.shape, -np.inf)
        for row, hidden, begin, end in zip(scores, cached.hidden[rows], first, last):
            row[n - (end - begin) :] = cached.before[begin:end] @ hidden
        scores[inside] *= float(self.theta)
        high = scores.max(axis=1, initial=-np.inf, keepdims=True)
        np.exp(scores - np.where(np.isfinite(high), high, 0), out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= np.where(total > 0, total, 1)
        return scores, words

    def _blocks_of(self, cached: Cached) -> Iterator[tuple[slice, slice]]:
        """Yield slices of the windows of a run, and the same of all windows."""
        for part in blocks(len(cached.hidden), ROWS_AT_ONCE):
            start = cached.rows.start
            yield part, slice(start + part.start, start + part.stop)

    # -- probabilities ----------------------------------------------------------

    def _predict_proba(self, X: Ids) -> Floats:
        proba = np.zeros((len(X), self.n_words_))
        with blas_threads(1):
            for cached in self._caches(X):
                for part, rows in self._blocks_of(cached):
                    shares, words = self._shares(cached, part)
                    words = checks.trusted_ids(words, self.n_words_)
                    for row, ids, shares_of_row in zip(proba[rows], words, shares):
                        np.add.at(row, ids, shares_of_row)
            empty = np.flatnonzero(~proba.any(axis=1))
            if len(empty):
                network, contexts = self._alone(X[empty])
                proba[empty] = network.predict_proba(contexts)
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        proba, is_empty = np.empty(len(y)), np.empty(len(y), dtype=bool)
        with blas_threads(1):
            for cached in self._caches(X):
                for part, rows in self._blocks_of(cached):
                    shares, words = self._shares(cached, part)
                    hits = words == y[rows, None]
                    proba[rows] = np.where(hits, shares, 0).sum(axis=1)
                    is_empty[rows] = cached.first[part] >= cached.last[part]
            with np.errstate(divide="ignore"):
                log_prob = np.log(proba)
            if is_empty.any():
                network, contexts = self._alone(X[is_empty])
                log_prob[is_empty] = network.log_prob(contexts, y[is_empty])
        return log_prob

    def _alone(self, X: Ids) -> tuple[Scorer, Ids]:
        """Return the network without a cache, and the columns of X that it uses."""
        n_context = _n_context(self.estimator_)
        return scoring_network(self.estimator_), X[:, X.shape[1] - n_context :]

    # -- scikit-learn ---------------------------------------------------------

    def _n_known(self) -> int:
        return self.n_words_ if "estimator_" not in vars(self) else len(self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


def _runs(X: Ids) -> Iterator[slice]:
    """Yield slices of rows, each of which is the row before moved by one word."""
    for block in blocks(len(X), min(RUN_ROWS, BLOCK_WINDOWS)):
        part = X[block]
        follows = (part[1:, :-1] == part[:-1, 1:]).all(axis=1)
        ends = [*(np.flatnonzero(~follows) + 1).tolist(), len(part)]
        start = 0
        for end in ends:
            yield slice(block.start + start, block.start + end)
            start = end


def _n_context(network: NeuralLM) -> int:
    """Return the number of columns that a fitted network uses."""
    return trained_network(network).architecture.n_context


def _check_network(network: object) -> None:
    if not isinstance(network, NeuralLM):
        raise TypeError(
            f"the frozen estimator is a {type(network).__name__}, but a neural cache "
            "needs the hidden activations of a NeuralLM."
        )
    check_is_fitted(network)


def _check_hidden(network: NeuralLM) -> None:
    if trained_network(network).parts.hidden.n_activations == 0:
        raise ValueError(
            "the network has no hidden units (n_hidden=0), whose activations a neural "
            "cache compares: set n_hidden."
        )
