"""ClassLM: a Kneser-Ney model of word classes, with words within classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from nplm.base.array_types import Counts, Floats, Ids
from nplm.base.checks import check_boundary, check_classes, count_ids, trusted_ids
from nplm.base.estimators.bases import Whole, hyperparameters
from nplm.base.estimators.checked_inputs import HeldOut
from nplm.base.estimators.language_model import CheapWords
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.models.classes.word_classes import WordClasses
from nplm.models.ngrams.kneser_ney import KneserNeyLM
from nplm.models.ngrams.stages.discounts import check_fallback
from nplm.models.ngrams.stages.runs import Windows
from nplm.models.ngrams.trie.work import Work
from nplm.models.training.em import fit_mixture_weights


@hyperparameters
class ClassLM(CheapWords):
    r"""Class-based n-gram model: predict the next class, then the word in it.

    .. math:: P(w | c) = (1 - \epsilon)\, P(g(w) | g(c_1), \ldots, g(c_{n-1}))\,
        P(w | g(w)) + \epsilon / |V|,

    g(w) being the class of a word (Brown et al. 1992; section 4.1 of Bengio et al.
    2003 uses 150 to 2,000 classes). The model of classes is a `KneserNeyLM` of the
    same order, and P(w | g(w)) is the share of w in the tokens of its class. The
    uniform part is for words that are not in training, or rare in their class.

    Parameters
    ----------
    order : int, optional
        Words in the longest n-gram, 2 or more; by default all columns of the
        windows and the next word.
    n_classes : int, default=500
        Number of classes to find; unused when `classes` is given.
    n_words : int, optional
        Size of the vocabulary; inferred from the training windows by default.
    classes : WordClasses or array-like of int, shape (n_words,), optional
        The class of each word, numbered without gaps, or a `WordClasses`. If that
        is fitted, its ``labels_`` are used, else a clone is fitted to the training
        windows. A mixture or a grid search clones it, which discards the fit: pass
        ``labels_`` instead, or a ``sklearn.frozen.FrozenEstimator``. By default
        ``WordClasses(n_classes, random_state=random_state)``.
    uniform_weight : float, optional
        The weight :math:`\epsilon`, from 0 to 1. By default it is estimated:
        with held-out windows by EM, and without them as the share of training
        tokens that are words seen once (Good 1953), which is too low if the text
        to score differs from the training text.
    boundary : int, optional
        Id of the symbol between sentences. It has a class of its own, at which the
        model of classes ends its contexts. For windows made with the same `boundary`.
    random_state : int, RandomState instance or None, default=None
        For `WordClasses`.
    discount_fallback : float or sequence of 3 floats, optional
        As in `KneserNeyLM`, for the model of classes.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_words_,)
        The class of each word.
    n_classes_ : int
        Number of classes.
    class_model_ : KneserNeyLM
        The model of classes.
    word_proba_ : ndarray of float64, shape (n_words_,)
        P(w | g(w)); the words of a class sum to 1.
    uniform_weight_ : float
        The weight in use.
    n_parameters_ : int
        Parameters of the model of classes, a class and a share for each word, and
        the weight.
    order_, n_words_ : int
        The order and vocabulary size in use.

    Notes
    -----
    If a given class does not occur in training, its words have equal shares. The
    classes are few and none is rare, so Kneser-Ney usually cannot estimate discounts
    for their unigrams and uses fixed ones. `fit` warns only about longer n-grams of
    classes.

    References
    ----------
    P. F. Brown, V. J. Della Pietra, P. V. deSouza, J. C. Lai and R. L. Mercer
    (1992). Class-based n-gram models of natural language. Computational
    Linguistics 18.

    I. J. Good (1953). The population frequencies of species and the estimation of
    population parameters. Biometrika 40.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import ClassLM, windows
    >>> ids = np.random.default_rng(0).zipf(1.5, size=5000) % 100
    >>> X, y = windows(ids, 2)
    >>> model = ClassLM(n_classes=50, n_words=100, random_state=0).fit(X, y)
    >>> proba = model.predict_proba([[1, 2], [98, 99]])
    >>> proba.shape, bool(np.allclose(proba.sum(axis=1), 1))
    ((2, 100), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "n_classes": [Whole(1)],
        "uniform_weight": [Interval(Real, 0, 1, closed="both"), None],
        "random_state": ["random_state"],
        "discount_fallback": [Real, "array-like", None],
    }

    order: int | None = field(default=None, kw_only=False)
    n_classes: int = 500
    n_words: int | None = None
    classes: WordClasses | ArrayLike | None = None
    uniform_weight: float | None = None
    boundary: int | None = None
    random_state: int | np.random.RandomState | None = None
    discount_fallback: float | Sequence[float] | None = None

    def _fit(self, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        self._fit_within(Work(), X, y, held_out)

    def fit_windows(
        self, work: Work, X: Ids, y: Ids, held_out: HeldOut | None = None
    ) -> Self:
        """Fit to windows as `fit`, with n-grams in memory or on disk."""
        self._fit_within(work, *self._start_fit(X, y), held_out)
        return self

    def _fit_within(self, work: Work, X: Ids, y: Ids, held_out: HeldOut | None) -> None:
        """Fit to checked windows, with n-grams in memory or on disk."""
        if self.order_ < 2:
            raise ValueError(
                "order=1 is a model without context, in which classes have no effect; "
                "set order to 2 or more."
            )
        check_boundary(self.boundary, self.n_words_)
        check_fallback(self.discount_fallback, interpolate=True)
        labels = self._find_labels(X, y)
        n_classes = int(labels.max()) + 1
        boundary = None if self.boundary is None else int(labels[self.boundary])
        model = KneserNeyLM(
            n_words=n_classes,
            boundary=boundary,
            discount_fallback=self.discount_fallback,
        )
        model.n_words_, model.order_ = n_classes, self.order_
        model.n_features_in_ = X.shape[1]
        model.fit_source(Windows(X, y, labels=labels), work, warned_from=2)
        self.labels_ = np.asarray(labels, np.int32)
        self.n_classes_ = n_classes
        self.class_model_ = model
        counts = count_ids(y, self.n_words_)
        tokens = np.bincount(labels, counts, minlength=n_classes)
        shares = np.where(tokens[labels] > 0, counts, 1)
        totals = np.bincount(labels, shares, minlength=n_classes)
        self.word_proba_ = shares / totals[labels]
        self.uniform_weight_ = self._estimate_uniform_weight(counts, held_out)
        self.n_parameters_ = model.n_parameters_ + 2 * self.n_words_ + 1

    def _find_labels(self, X: Ids, y: Ids) -> Ids:
        classes = self.classes
        if classes is None:
            classes = WordClasses(self.n_classes, random_state=self.random_state)
        if isinstance(classes, WordClasses) and not hasattr(classes, "labels_"):
            finder = clone(classes)
            finder.set_params(n_words=self.n_words_, boundary=self.boundary)
            return finder.fit_pairs(X[:, -1], y).labels_
        labels = check_classes(classes, "classes", self.n_words_)
        label = None if self.boundary is None else labels[self.boundary]
        if label is not None and np.count_nonzero(labels == label) > 1:
            raise ValueError(
                f"the class of the boundary, {label}, has other words; "
                "put the boundary in a class of its own (as WordClasses(boundary=...) "
                "does)."
            )
        return labels

    def _estimate_uniform_weight(
        self, counts: Counts, held_out: HeldOut | None
    ) -> float:
        if self.uniform_weight is not None:
            return float(self.uniform_weight)
        if held_out is None:
            # At least one word, so that every word has a positive probability.
            return max(1, int(np.count_nonzero(counts == 1))) / int(counts.sum())
        X_val, y_val = held_out
        probs = np.empty((len(y_val), 2))
        probs[:, 0] = self._class_prob(X_val, y_val)
        probs[:, 1] = 1 / self.n_words_
        fit = fit_mixture_weights(probs)
        return float(fit.weights[0, 1])

    _saved: ClassVar[dict[str, Item]] = {
        "labels": Item(Fitted.ids, (None,)),
        "class_model": Item(Fitted.estimator, KneserNeyLM),
        "word_proba": Item(Fitted.array, np.float64, (None,), 0),
        "uniform_weight": Item(Fitted.number, 0, 1),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        labels, shares, model = self.labels_, self.word_proba_, self.class_model_
        if labels.max(initial=0) >= model.n_words_:
            raise invalid_item("labels", labels)
        if shares.shape != labels.shape or not np.allclose(
            np.bincount(labels, shares, minlength=model.n_words_), 1
        ):
            raise invalid_item("word_proba", shares)
        if not self.order_ == model.order_ == model.n_features_in_ + 1:
            raise invalid_item("order", self.order_)
        self.n_words_, self.n_classes_ = len(labels), model.n_words_
        self.n_parameters_ = model.n_parameters_ + 2 * self.n_words_ + 1

    def _n_known(self) -> int:
        return len(self.labels_)

    def _class_prob(self, X: Ids, y: Ids) -> Floats:
        """Return P(class | context) P(word | class)."""
        labels = self.labels_
        y = trusted_ids(y, len(labels))
        log_prob = self.class_model_.log_prob(_classes_of(labels, X), labels[y])
        return np.exp(log_prob) * self.word_proba_[y]

    def _predict_proba(self, X: Ids) -> Floats:
        proba = np.empty((len(X), self.n_words_))
        for rows in self._blocks(len(X)):
            classes = _classes_of(self.labels_, X[rows])
            class_proba = self.class_model_.predict_proba(classes)
            block = np.take(
                class_proba, self.labels_, axis=1, out=proba[rows], mode="clip"
            )
            block *= (1 - self.uniform_weight_) * self.word_proba_
            block += self.uniform_weight_ / self.n_words_
        return proba

    def _log_prob(self, X: Ids, y: Ids) -> Floats:
        prob = (1 - self.uniform_weight_) * self._class_prob(X, y)
        prob += self.uniform_weight_ / self.n_words_
        # With uniform_weight=0, words that are not in training have probability 0.
        with np.errstate(divide="ignore"):
            return np.log(prob)


def _classes_of(labels: Ids, words: Ids) -> Ids:
    """Return the class of each word."""
    return labels[trusted_ids(words, len(labels))]
