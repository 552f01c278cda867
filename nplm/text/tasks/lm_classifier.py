"""LMClassifier: classify documents by a language model of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from nplm.base.array_types import AnyArray, Floats, Index
from nplm.base.atomic import all_or_nothing, read_at_once
from nplm.base.estimators.bases import (
    ClassifierMixin,
    DocumentEstimator,
    MetaEstimatorMixin,
    hyperparameters,
)
from nplm.base.fitted import Fitted, Item, invalid_item
from nplm.text.codec_fitting import refuse_weights
from nplm.text.lm.text_lm import TextLM
from nplm.text.samples import check_document, check_documents, is_missing
from nplm.text.tasks.text_models import announce_minutes, as_text_lm, with_words_of


@hyperparameters
class LMClassifier(ClassifierMixin, MetaEstimatorMixin, DocumentEstimator):
    """Classify documents by Bayes' rule, with a language model of each class.

    The model of a class is fitted on the documents of that class. A document belongs
    to the class with the largest product of prior and likelihood, as in scikit-learn's
    naive Bayes, but the likelihood is that of a language model, which knows the order
    of the words.

    All models have the same vocabulary, that of all training documents, because
    probabilities of different vocabularies do not compare.

    Parameters
    ----------
    estimator : TextLM or language model of windows
        The model of a class. It is cloned for each class. A model of windows, such as
        ``KneserNeyLM(3)``, stands for ``TextLM(KneserNeyLM(3))``.
    priors : {"empirical", "uniform"} or array-like of shape (n_classes,), \
default="empirical"
        Probabilities of the classes: their shares of the training documents, equal
        ones, or given ones, which sum to 1, in the order of ``classes_``.
    n_jobs : int, optional
        Number of models that are fitted at the same time, in processes of joblib. None
        is 1, and -1 uses all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    estimators_ : list of TextLM
        The fitted model of each class, in the order of ``classes_``.
    priors_ : ndarray of float64, shape (n_classes,)
        The probabilities of the classes.

    See Also
    --------
    LMDetector : Find documents that are unlike the others.

    Notes
    -----
    Log-probabilities are sums over the tokens of a document, so `predict_proba` of a
    long document is mostly close to 0 or 1, as in naive Bayes. Scikit-learn's
    ``CalibratedClassifierCV`` calibrates it.

    References
    ----------
    F. Peng, D. Schuurmans and S. Wang (2004). Augmenting naive Bayes classifiers with
    statistical language models. Information Retrieval.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, LMClassifier, TextLM, Tokenizer
    >>> texts = ["the cat sat on the mat", "a dog ran after the cat",
    ...          "le chat dort sur le lit", "un chien court après le chat"]
    >>> characters = TextLM(InterpolatedTrigram(), tokenizer=Tokenizer("(?s)."))
    >>> classifier = LMClassifier(characters).fit(texts, ["en", "en", "fr", "fr"])
    >>> classifier.predict(["the dog sat", "le chien dort"]).tolist()
    ['en', 'fr']
    >>> classifier.predict_proba(["the dog sat"]).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "priors": [StrOptions({"empirical", "uniform"}), "array-like"],
        "n_jobs": [Integral, None],
    }

    estimator: Any = field(kw_only=False)
    priors: str | ArrayLike = "empirical"
    n_jobs: int | None = None

    @all_or_nothing
    def fit(
        self,
        X: Sequence[object],
        y: ArrayLike,
        *,
        X_val: object = None,
        y_val: object = None,
        **fit_params: object,
    ) -> Self:
        """Fit a clone of the estimator to the documents of each class.

        Parameters
        ----------
        X : sequence of str, of sequence of hashable, or of array-like of int
            Documents, as `TextLM.fit` takes them.
        y : array-like of shape (n_documents,)
            Class labels.
        X_val, y_val : sequence of documents and array-like, optional
            Held-out documents of every class and their labels. The model of a class
            has those of its class, for early stopping or weights.
        **fit_params
            Passed to `fit` of each model.

        Returns
        -------
        self : LMClassifier

        Raises
        ------
        TypeError
            If the estimator is not a language model, or is frozen.
        ValueError
            If there are not as many labels as documents, if labels are numbers that
            are not whole, if a class has no held-out document, or if `priors` do not
            fit the classes.
        """
        self._validate_params()
        refuse_weights("LMClassifier", fit_params)
        if isinstance(self.estimator, FrozenEstimator):
            raise TypeError(
                "estimator is a FrozenEstimator, which would be the same model for all "
                "classes: pass one that can be fitted."
            )
        base = as_text_lm(self.estimator)
        documents, labels = _labelled(X, y)
        check_classification_targets(labels)
        classes, index = np.unique(labels, return_inverse=True)
        priors = self._priors(index, len(classes))
        parts = [{"X": of_class} for of_class in _by_class(documents, labels, classes)]
        if X_val is not None or y_val is not None:
            held_out = _by_class(*_labelled(X_val, y_val, "_val"), classes)
            for part, of_class, label in zip(parts, held_out, classes.tolist()):
                if not of_class:
                    raise ValueError(f"y_val has no document of the class {label!r}.")
                part["X_val"] = of_class
        announce_minutes("LMClassifier", base, len(classes), self.n_jobs)
        base = with_words_of(base, documents)
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(clone(base).fit)(**part, **fit_params) for part in parts
        )
        self.classes_, self.priors_, self.estimators_ = classes, priors, fitted
        return self

    @read_at_once
    def predict_joint_log_proba(self, X: Sequence[object]) -> Floats:
        """Return the joint log-probability of each document with each class.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        log_proba : ndarray of float64, shape (n_documents, n_classes)
            Natural logarithms: log P(class) + log P(document | class).
        """
        check_is_fitted(self)
        scores = [lm.score_samples(X) for lm in self.estimators_]
        with np.errstate(divide="ignore"):
            return np.column_stack(scores) + np.log(self.priors_)

    @read_at_once
    def predict_log_proba(self, X: Sequence[object]) -> Floats:
        """Return the log-probability of each class for each document.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        log_proba : ndarray of float64, shape (n_documents, n_classes)
            Natural logarithms. A document that no class can have, with a word of
            probability 0 in all of them, has the logarithms of the priors.
        """
        joint = self.predict_joint_log_proba(X)
        impossible = (joint == -np.inf).all(axis=1)
        with np.errstate(divide="ignore"):
            joint[impossible] = np.log(self.priors_)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Sequence[object]) -> Floats:
        """Return the probability of each class for each document.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        proba : ndarray of float64, shape (n_documents, n_classes)
            Rows sum to 1; columns are in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    @read_at_once
    def decision_function(self, X: Sequence[object]) -> Floats:
        """Return the log-odds of the second of two classes, else `predict_log_proba`.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        decision : ndarray of float64, shape (n_documents,) or (n_documents, n_classes)
            In nats. With two classes, log P(second) - log P(first), above 0 where the
            second is predicted.
        """
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) != 2:
            return log_proba
        return log_proba[:, 1] - log_proba[:, 0]

    @read_at_once
    def predict(self, X: Sequence[object]) -> NDArray[Any]:
        """Return the most probable class of each document.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        labels : ndarray of shape (n_documents,)
        """
        best = self.predict_log_proba(X).argmax(axis=1)  # checks that it is fitted
        return self.classes_[best]

    def score(
        self, X: Sequence[object], y: object, sample_weight: object = None
    ) -> float:
        """Return the share of documents whose class is predicted.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.
        y : array-like of shape (n_documents,)
            Their classes.
        sample_weight : array-like of shape (n_documents,), optional
            Weight of each document.

        Returns
        -------
        accuracy : float
        """
        return float(super().score(X, y, sample_weight))

    def _priors(self, index: Index, n: int) -> Floats:
        """Return the probabilities of the classes."""
        if isinstance(self.priors, str):
            uniform = self.priors == "uniform"
            return np.full(n, 1 / n) if uniform else np.bincount(index) / len(index)
        try:
            priors = np.asarray(self.priors, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"priors must be 'empirical', 'uniform' or a probability for each "
                f"class, in the order of the sorted labels, got {self.priors!r:.200}."
            ) from None
        if priors.shape != (n,):
            raise ValueError(
                f"priors has shape {priors.shape}, but y has {n} classes: give a "
                "probability for each, in the order of the sorted labels."
            )
        if not ((priors >= 0).all() and np.isclose(priors.sum(), 1)):
            raise ValueError(
                f"priors must not be negative and must sum to 1, got {self.priors!r}."
            )
        return priors

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "classes": Item(Fitted.take, list, np.ndarray),
        "dtype": Item(Fitted.take, str, of=lambda lm: lm.classes_.dtype.str),
        "priors": Item(Fitted.shares, (None,)),
        "estimators": Item(Fitted.take, list),
    }

    def _set_saved(self, values: dict[str, Any]) -> None:
        super()._set_saved(values)
        self.classes_ = _classes(values["classes"], np.dtype(values["dtype"]))
        n, estimators = len(self.classes_), self.estimators_
        if len(self.priors_) != n:
            raise invalid_item("priors", self.priors_)
        if len(estimators) != n or not all(isinstance(e, TextLM) for e in estimators):
            raise invalid_item("estimators", estimators)
        for lm in estimators:
            check_is_fitted(lm)


def _labelled(X: object, y: object, suffix: str = "") -> tuple[list[object], AnyArray]:
    """Return documents and their labels, checked to be as many."""
    if X is None or y is None:
        missing = f"{'X' if X is None else 'y'}{suffix}"
        raise ValueError(
            f"LMClassifier requires {missing} to be passed, but {missing} is None."
        )
    name, item = f"X{suffix}", "a string or a list of tokens"
    documents = list(check_documents(X, item, name=name))
    if not documents:
        raise ValueError(f"{name} has 0 documents: pass some of every class.")
    for i, document in enumerate(documents):
        check_document(document, f"{name}[{i}]", item, "")
    labels = column_or_1d(y, warn=True)
    check_consistent_length(documents, labels)
    for i, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise ValueError(
                f"y{suffix}[{i}] is missing ({label!r}): leave the document out, or "
                "give it a label."
            )
    return documents, labels


def _by_class(
    documents: list[object], labels: AnyArray, classes: AnyArray
) -> list[list[object]]:
    """Return the documents of each class."""
    new = set(labels.tolist()) - set(classes.tolist())
    if new:
        raise ValueError(
            f"y_val has the class {min(new, key=str)!r}, which y has not: leave its "
            "documents out."
        )
    parts: dict[Any, list[object]] = {label: [] for label in classes.tolist()}
    for document, label in zip(documents, labels.tolist()):
        parts[label].append(document)
    return list(parts.values())


def _classes(labels: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return sorted labels, which are text in a list or numbers in an array."""
    classes = np.asarray(labels, dtype=dtype if isinstance(labels, list) else None)
    if (
        classes.ndim != 1
        or not len(classes)
        or classes.dtype != dtype
        or dtype.kind not in "biufOU"
        or not set(map(type, classes.tolist())) <= {bool, int, float, str}
        or np.unique(classes).tolist() != list(labels)
    ):
        raise invalid_item("classes", labels)
    return classes
