"""LMDetector: find documents that a language model finds improbable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_scalar

from nplm.base.array_types import Floats, Index
from nplm.base.atomic import fit_copy, fitted_or_interrupted, read_at_once
from nplm.base.estimators.bases import (
    DocumentEstimator,
    MetaEstimatorMixin,
    OutlierMixin,
    hyperparameters,
)
from nplm.base.fitted import Fitted, Item
from nplm.base.warnings import warn
from nplm.text.codec_fitting import refuse_weights
from nplm.text.codecs import ITEM
from nplm.text.documents import Documents
from nplm.text.lm.fitted_text import fitted_text
from nplm.text.lm.text_lm import TextLM
from nplm.text.samples import check_documents
from nplm.text.tasks.text_models import (
    announce_minutes,
    as_text_lm,
    unfrozen,
    with_words_of,
)

AGGREGATES = ("mean", "sum", "min")
# With fewer held-out documents below the threshold, false alarms are often half or
# twice as many as `contamination` says.
MIN_BELOW = 10
# Documents of which four fifths are too few for a model.
FEW = 200


class OddToken(NamedTuple):
    """A token that a model finds improbable, returned by `LMDetector.explain`.

    Attributes
    ----------
    position : int
        Its index in the document; that of the end is the number of tokens.
    token : hashable
        The token as it is in the document; the boundary for the end.
    log_prob : float
        Its natural-log probability. That of a token outside the vocabulary is the
        probability of any unknown token.
    unknown : bool
        Whether it is outside the vocabulary.
    expected : list
        The most probable tokens in its place.
    proba : ndarray of float64, shape (n_expected,)
        Their probabilities.
    """

    position: int
    token: Any
    log_prob: float
    unknown: bool
    expected: Any
    proba: Floats


@hyperparameters
class LMDetector(OutlierMixin, MetaEstimatorMixin, DocumentEstimator):
    """Detect outliers among documents: those that a language model finds improbable.

    It has the methods of scikit-learn's outlier detectors, such as
    ``IsolationForest``: the lower the score, the more abnormal the document, and
    `predict` returns -1 for outliers and 1 for inliers.

    Parameters
    ----------
    estimator : TextLM, language model of windows, or FrozenEstimator of a TextLM
        The model of usual documents. It is cloned. A model of windows, such as
        ``KneserNeyLM(3)``, stands for ``TextLM(KneserNeyLM(3))``. A frozen model that
        is fitted already is used as it is, and only the threshold is fitted.
    contamination : float, default=0.1
        Share of outliers among the documents on which the threshold is chosen, above 0
        and at most 0.5: this share of them is below the threshold. On new documents
        without outliers it is the rate of false alarms. A share of less than one of
        these documents gives a warning: the threshold is then their lowest score.
    validation_fraction : float, default=0.1
        Share of the documents of `fit` that is held out for the threshold, if no others
        are given: between 0 and 1. The model is not fitted on them. They are drawn at
        random, the same in each fit. If fewer than 10 of them would be below the
        threshold, five parts are held out in turn instead, or ten of fewer than 200
        documents: the threshold is one of the scores of all documents, each by a model
        of the other parts. The last of these models is kept: one of all documents
        scores new ones too differently from those that set the threshold. That takes
        five or ten fits, and a larger fraction, or `X_val`, only one.
    aggregate : {"mean", "sum", "min"}, default="mean"
        The score of a document of the natural-log probabilities of its tokens:

        - "mean", in nats per token, does not depend on the length of the document.
        - "sum", in nats per document, is the log-probability of the document. Long
          documents have lower scores than short ones.
        - "min", in nats, is the log-probability of the least probable token: one odd
          event among many usual ones is not averaged away.

    Attributes
    ----------
    estimator_ : TextLM
        The fitted model.
    offset_ : float
        The threshold: ``decision_function`` is ``score_samples`` minus this.

    See Also
    --------
    LMClassifier : Classify documents by a language model of each class.
    Tokenizer.for_logs : Split log lines, with symbols for numbers and addresses.

    Notes
    -----
    A model finds the documents that it was fitted on more probable than others. So
    `predict` and `fit_predict` find fewer outliers among them than `contamination`
    says. A frozen model is not fitted again, and all documents of `fit` set the
    threshold: pass documents that it has not seen. Pass `X_val` if later documents
    differ from earlier ones. A `Vocabulary` before it in a pipeline has seen the words
    of held-out documents: with ``min_count`` above 1, there are fewer false alarms than
    with ``TextLM(vocabulary=...)``.

    The labels that scikit-learn's ``scoring="roc_auc"`` compares with are 1 for
    inliers, and -1 or 0 for outliers. Use folds that have both kinds, such as
    ``cv=StratifiedKFold()``.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, LMDetector
    >>> usual = [["login", "read", "logout"], ["login", "read", "read", "logout"]]
    >>> detector = LMDetector(InterpolatedTrigram(), aggregate="min").fit(usual * 20)
    >>> detector.predict([["login", "read", "logout"], ["read", "login"]]).tolist()
    [1, -1]
    >>> detector.score_samples([["login", "delete"]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "aggregate": [StrOptions(set(AGGREGATES))],
    }

    estimator: Any = field(kw_only=False)
    contamination: float = 0.1
    validation_fraction: float = 0.1
    aggregate: str = "mean"

    def fit(
        self,
        X: Sequence[object],
        y: object = None,
        *,
        X_val: object = None,
        **fit_params: object,
    ) -> Self:
        """Fit the model to documents, and choose the threshold.

        Parameters
        ----------
        X : sequence of str, of sequence of hashable, or of array-like of int
            Documents, as `TextLM.fit` takes them, most of them usual.
        y : ignored
        X_val : sequence of documents, optional
            Held-out documents, on which the threshold is chosen. They are also those
            of `TextLM.fit`, for early stopping or weights. By default a part of `X` is
            held out (`validation_fraction`); with a frozen estimator, all of it.
        **fit_params
            Passed to `fit` of the model. A ``checkpoint`` is one of the model that is
            kept, not of the models of parts.

        Returns
        -------
        self : LMDetector

        Raises
        ------
        TypeError
            If the estimator is not a language model.
        ValueError
            If a parameter is out of range, or there is no document to fit, or none to
            hold out.
        """
        return fit_copy(self, lambda model: model._fit(X, X_val, fit_params))

    def _fit(
        self, X: Sequence[object], X_val: object, fit_params: dict[str, Any]
    ) -> KeyboardInterrupt | None:
        """Fit; return the interrupt if one came and left the estimator fitted."""
        self._validate_params()
        refuse_weights("LMDetector", fit_params)
        X = check_documents(X, ITEM)  # not a stream, which is read again for the scores
        lm, held_out = as_text_lm(self.estimator), X
        scores: list[Floats] = []
        if X_val is not None:
            held_out = check_documents(X_val, ITEM, name="X_val")
            fit_params = {"X_val": held_out, **fit_params}
        elif not isinstance(lm, FrozenEstimator):
            documents = list(X)
            *others, part = self._parts(len(documents))
            announce_minutes("LMDetector", lm, 1 + len(others))
            lm = with_words_of(clone(lm), documents, if_closed=True)
            scores = self._scores_of_parts(lm, documents, others, fit_params)
            X, held_out = _split(documents, part)
        fitted, interrupt = fitted_or_interrupted(lm, X, None, **fit_params)
        self.estimator_ = unfrozen(fitted)
        scores.append(self._scores(self.estimator_, held_out))
        self.offset_ = self._threshold(np.concatenate(scores))
        return interrupt

    def _threshold(self, scores: Floats) -> float:
        """Return the score that the share `contamination` is below."""
        share = float(self.contamination)
        if share * len(scores) < 1:
            warn(
                f"contamination={share:g} is less than one of the {len(scores)} "
                "documents that set the threshold, so it is their lowest score: on new "
                f"documents, false alarms are about 1 in {len(scores) + 1}. Pass more "
                "documents, or raise contamination.",
                UserWarning,
            )
            return float(scores.min())
        # A score, not a mean of two, one of which may be -inf.
        return float(np.quantile(scores, share, method="higher"))

    def _parts(self, n: int) -> list[Index]:
        """Return the documents to hold out: one part, or several, in turn."""
        if n < 2:
            raise ValueError(
                f"n_samples={n}: of fewer than 2 documents none can be held out for "
                "the threshold; pass more, or X_val."
            )
        order = np.random.RandomState(0).permutation(n)
        n_held_out = min(round(float(self.validation_fraction) * n), n - 1)
        if n_held_out * float(self.contamination) >= MIN_BELOW:
            return [order[:n_held_out]]
        return np.array_split(order, min(n, 10 if n < FEW else 5))

    def _scores_of_parts(
        self,
        lm: TextLM,
        X: list[object],
        parts: list[Index],
        fit_params: dict[str, object],
    ) -> list[Floats]:
        """Return the scores of each part, by a model of all other documents."""
        fit_params = {
            name: value
            for name, value in fit_params.items()
            if name.split("__")[-1] != "checkpoint"
        }
        scores = []
        for part in parts:
            others, held_out = _split(X, part)
            scores.append(self._scores(clone(lm).fit(others, **fit_params), held_out))
        return scores

    @read_at_once
    def score_samples(self, X: Sequence[object]) -> Floats:
        """Return the score of each document: the lower, the more abnormal.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        scores : ndarray of float64, shape (n_documents,)
            In nats, as `aggregate` says; 0 for a document without tokens.
        """
        check_is_fitted(self)
        return self._scores(self.estimator_, X)

    def _scores(self, lm: TextLM, X: Sequence[object]) -> Floats:
        if self.aggregate == "sum":
            return lm.score_samples(X)
        tokens = fitted_text(lm).tokens(X)
        if self.aggregate == "min":
            # A document without tokens is as probable as can be.
            scores = np.zeros(len(tokens.lengths))
            np.minimum.at(scores, tokens.document, tokens.log_prob)
            return scores
        return tokens.sums(tokens.log_prob) / np.maximum(tokens.lengths, 1)

    @read_at_once
    def decision_function(self, X: Sequence[object]) -> Floats:
        """Return the score of each document, minus the threshold.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        decision : ndarray of float64, shape (n_documents,)
            In nats; negative for outliers.
        """
        scores = self.score_samples(X)
        above = scores != self.offset_  # both may be -inf
        return np.subtract(scores, self.offset_, out=np.zeros(len(scores)), where=above)

    @read_at_once
    def predict(self, X: Sequence[object]) -> NDArray[np.int64]:
        """Return 1 for each inlier and -1 for each outlier.

        Parameters
        ----------
        X : sequence of documents
            Of the kind that the model was fitted on.

        Returns
        -------
        labels : ndarray of int, shape (n_documents,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @read_at_once
    def explain(self, document: object, n: int = 3, *, k: int = 3) -> list[OddToken]:
        """Return the least probable tokens of a document, and what was expected there.

        Parameters
        ----------
        document : document
            One, of the kind that the model was fitted on.
        n : int, default=3
            Number of tokens; all of a shorter document.
        k : int, default=3
            Number of expected tokens for each.

        Returns
        -------
        odd : list of OddToken
            The least probable first.

        Raises
        ------
        TypeError
            If `n` or `k` is not an integer.
        ValueError
            If one of them is below 1.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, LMDetector
        >>> usual = [["login", "read", "logout"], ["login", "read", "read", "logout"]]
        >>> detector = LMDetector(InterpolatedTrigram()).fit(usual * 20)
        >>> [odd] = detector.explain(["login", "delete", "logout"], n=1)
        >>> odd.position, odd.token, odd.unknown, odd.expected[0]
        (1, 'delete', True, 'read')
        """
        check_is_fitted(self)
        for name, number in {"n": n, "k": k}.items():
            check_scalar(number, name, Integral, min_val=1)
        text = fitted_text(self.estimator_)
        scores = text.scorer().tokens([document], words=True)
        assert scores.words is not None
        [words] = scores.words
        none = np.empty(0, dtype=np.int32)
        odd = []
        for i in np.argsort(scores.log_prob, kind="stable")[:n].tolist():
            before = Documents(scores.ids[:i], np.array([i]))
            token = words[i] if i < len(words) else text.codec.words(scores.ids[i:])[0]
            log_prob, unknown = float(scores.log_prob[i]), bool(scores.unknown[i])
            expected = text.words_after(before, k, none)
            odd.append(OddToken(i, token, log_prob, unknown, *expected))
        return odd

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "estimator": Item(Fitted.estimator, TextLM),
        "offset": Item(Fitted.number, -math.inf, 0),
    }


def _split(X: list[object], part: Index) -> tuple[list[object], list[object]]:
    """Return the documents that are not of a part, and those that are."""
    is_held_out = np.zeros(len(X), dtype=bool)
    is_held_out[part] = True
    others = [document for document, out in zip(X, is_held_out) if not out]
    return others, [document for document, out in zip(X, is_held_out) if out]
