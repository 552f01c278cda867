"""Rescorer: choose from n-best lists with a language model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import Floats
from nplm.base.estimators.bases import Documented, hyperparameters
from nplm.base.exceptions import optional_module
from nplm.base.fitted import Fitted, Item, Saved

# A text, and the score of a recogniser: a list has several.
Text = str | Sequence[str]
Candidates = Sequence[tuple[Text, float]]
Metric = Callable[[list[Text], list[Text]], float]

# Values of one weight that are tried in a search along it.
MAX_VALUES = 100
MAX_ROUNDS = 10
# Weights of an interval and its neighbours.
SMOOTHING = np.array([1.0, 2.0, 3.0, 2.0, 1.0])


@hyperparameters
class Rescorer(Saved, Documented):
    """Choose from n-best lists with a language model, by weights tuned on a metric.

    The choice maximises the recogniser's or translator's own score, plus a weight times
    the log-probability of the text, plus a weight times its number of words. `fit`
    chooses the two weights on lists with references.

    Parameters
    ----------
    lm : TextLM or Scorer
        A fitted text model, or its scorer. Pass ``FrozenEstimator(lm)`` where the
        rescorer is cloned, as by a grid search: a clone of a text model is not fitted.
    metric : "wer", "bleu" or callable, default="wer"
        What the weights optimise. "wer" is the word error rate of the package jiwer,
        "bleu" the corpus BLEU of sacrebleu. A callable gets the references and the
        chosen texts, and returns a float.
    greater_is_better : bool, default=False
        Whether a greater value of a callable `metric` is better. It is ignored for
        "wer" and "bleu".
    weight_length : bool, default=True
        Whether to tune the weight of the length; if False, it is 0.

    Attributes
    ----------
    lm_weight_ : float
        Weight of the natural log-probability.
    length_weight_ : float
        Added for each word.
    metric_value_ : float
        The metric of the choices on the lists of `fit`.

    See Also
    --------
    Scorer : Scores the texts.

    Notes
    -----
    The search is that of minimum error rate training (Och 2003): along one weight at a
    time, the choices change at finitely many values. It tries up to 100 intervals
    between them, and repeats until neither weight improves the metric. It takes the
    interval of the best metric, averaged with its neighbours (Cer et al. 2008); of
    equal ones that of the smallest weight. The language-model weight is not negative.

    References
    ----------
    Cer, D., Jurafsky, D. and Manning, C. D. (2008). Regularization and search for
    minimum error rate training. Workshop on Statistical Machine Translation.

    Och, F. J. (2003). Minimum error rate training in statistical machine translation.
    ACL.

    Examples
    --------
    >>> from nplm import InterpolatedTrigram, Rescorer, TextLM
    >>> lm = TextLM(InterpolatedTrigram(), 2).fit(["to be or not to be"] * 9)
    >>> lists = [[("two be or", -1.0), ("to be or", -1.2), ("to bee or", -1.3)]]
    >>> def errors(references, texts):
    ...     return sum(a != b for a, b in zip(references, texts))
    >>> rescorer = Rescorer(lm, metric=errors).fit(lists, ["to be or"])
    >>> rescorer.predict(lists), rescorer.metric_value_
    (['to be or'], 0.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        "lm": [HasMethods(["scorer"]), HasMethods(["score_many"])],
        "metric": [StrOptions({"wer", "bleu"}), callable],
        "greater_is_better": ["boolean"],
        "weight_length": ["boolean"],
    }

    lm: Any = field(kw_only=False)
    metric: str | Metric = "wer"
    greater_is_better: bool = False
    weight_length: bool = True

    def fit(self, X: Sequence[Candidates], y: Sequence[Text]) -> Self:
        """Tune the weights on n-best lists with references.

        Parameters
        ----------
        X : sequence of n-best lists
            Each is a list of pairs: a text (a string or a list of words), and the score
            of the system that proposed it, greater is better.
        y : sequence of texts
            The reference of each list.

        Returns
        -------
        self : Rescorer

        Raises
        ------
        ValueError
            If there is no list, if one is empty or holds something else than pairs of a
            text and a finite score, or if `X` and `y` have different lengths.
        ImportError
            If the package of the metric is not installed.
        """
        self._validate_params()
        _check_lengths(X, y)
        metric, sign = self._metric()
        search = _Search(X, self._features(X), list(y), metric, sign)
        best = search.tune([0, 1] if self.weight_length else [0])
        (self.lm_weight_, self.length_weight_), value = best
        self.metric_value_ = sign * value
        return self

    def predict(self, X: Sequence[Candidates]) -> list[Text]:
        """Return the best text of each list.

        Parameters
        ----------
        X : sequence of n-best lists
            As in `fit`.

        Returns
        -------
        texts : list
        """
        return _chosen(X, (int(totals.argmax()) for totals in self.totals(X)))

    def totals(self, X: Sequence[Candidates]) -> list[Floats]:
        """Return the total score of each text of each list, the greater the better.

        Parameters
        ----------
        X : sequence of n-best lists
            As in `fit`.

        Returns
        -------
        totals : list of ndarray of float64, shape (n_texts,)
            In the order of the texts. `predict` returns the first of the greatest.

        Examples
        --------
        >>> from nplm import InterpolatedTrigram, Rescorer, TextLM
        >>> lm = TextLM(InterpolatedTrigram(), 2).fit(["to be or not to be"] * 9)
        >>> lists = [[("two be or", -1.0), ("to be or", -1.2), ("to bee or", -1.3)]]
        >>> def errors(references, texts):
        ...     return sum(a != b for a, b in zip(references, texts))
        >>> rescorer = Rescorer(lm, metric=errors).fit(lists, ["to be or"])
        >>> [totals] = rescorer.totals(lists)
        >>> totals.argsort()[::-1].tolist()  # the texts, the best first
        [1, 0, 2]
        """
        check_is_fitted(self)
        weights = self.lm_weight_, self.length_weight_
        return [_totals(features, weights) for features in self._features(X)]

    def score(self, X: Sequence[Candidates], y: Sequence[Text]) -> float:
        """Return the metric of the chosen texts, so that greater is better.

        Parameters
        ----------
        X : sequence of n-best lists
            As in `fit`.
        y : sequence of texts
            The references.

        Returns
        -------
        score : float
            The metric, with a minus sign if a smaller value is better.
        """
        _check_lengths(X, y)
        metric, sign = self._metric()
        return sign * metric(list(y), self.predict(X))

    # -- files ----------------------------------------------------------------

    _saved: ClassVar[dict[str, Item]] = {
        "lm_weight": Item(Fitted.number, 0),
        "length_weight": Item(Fitted.number),
        "metric_value": Item(Fitted.number),
    }

    # -- scores ---------------------------------------------------------------

    def _features(self, X: Iterable[Candidates]) -> list[Floats]:
        """Return own scores, log-probabilities and lengths: (3, n) for each list."""
        scorer = self.lm.scorer() if hasattr(self.lm, "scorer") else self.lm
        features = []
        for i, candidates in enumerate(X):
            if len(candidates) == 0:
                raise ValueError(f"X[{i}] is empty: leave out lists without texts.")
            scores = [_score_of(candidate, f"X[{i}]") for candidate in candidates]
            texts = [text for text, _ in candidates]
            words = [t.split() if isinstance(t, str) else t for t in texts]
            log_prob = np.maximum(scorer.score_many(texts), np.finfo(np.float32).min)
            features.append(np.array([scores, log_prob, [len(w) for w in words]]))
        return features

    def _metric(self) -> tuple[Metric, int]:
        """Return the metric, and 1 if a greater value is better, else -1."""
        user, otherwise = f"metric={self.metric!r}", "Or pass a callable."
        if self.metric == "wer":
            jiwer = optional_module("jiwer", user, otherwise=otherwise)
            return lambda y, texts: jiwer.wer(_joined(y), _joined(texts)), -1
        if self.metric == "bleu":
            bleu = optional_module("sacrebleu", user, otherwise=otherwise).corpus_bleu
            return lambda y, texts: bleu(_joined(texts), [_joined(y)]).score, 1
        return self.metric, 1 if self.greater_is_better else -1  # type: ignore[return-value]


@dataclass
class _Search:
    """Search of the weights that maximise a metric times a sign."""

    X: Sequence[Candidates]
    features: list[Floats]
    references: list[Text]
    metric: Metric
    sign: int
    known: dict[tuple[int, ...], float] = field(default_factory=dict)

    def tune(self, free: list[int]) -> tuple[tuple[float, float], float]:
        """Return the best weights, and their value: those in `free` vary."""
        weights = [0.0, 0.0]
        value = self.value(weights)
        for _ in range(MAX_ROUNDS):
            before = value
            for k in free:
                best, improved = self.along(weights, k)
                if improved > value:
                    weights[k], value = best, improved
            if value == before:
                break
        return (weights[0], weights[1]), value

    def along(self, weights: list[float], k: int) -> tuple[float, float]:
        """Return the best value of weight k, the other one fixed, and the metric's."""
        changes = [_changes(scores, weights, k) for scores in self.features]
        at = np.unique(np.concatenate([*changes, [0.0] if k == 0 else []]))
        at = at[at >= 0] if k == 0 else at
        if len(at) == 0:
            return weights[k], self.value(weights)
        if len(at) > MAX_VALUES:
            at = np.quantile(at, np.linspace(0, 1, MAX_VALUES))
        ends = [at[-1] + 1.0] if k == 0 else [at[0] - 1.0, at[-1] + 1.0]
        at = np.unique([*at, *ends])
        middles = (at[1:] + at[:-1]) / 2
        values: list[float] = []
        for middle in middles:
            tried = list(weights)
            tried[k] = float(middle)
            values.append(self.value(tried))
        # One interval may be best by chance.
        smooth = np.convolve(values, SMOOTHING)[2:-2]
        smooth /= np.convolve(np.ones(len(values)), SMOOTHING)[2:-2]
        best = np.lexsort((-np.abs(middles), smooth.round(12)))[-1]
        return float(middles[best]), values[best]

    def value(self, weights: Sequence[float]) -> float:
        """Return the metric of the choices times the sign."""
        choices = tuple(
            int(_totals(scores, weights).argmax()) for scores in self.features
        )
        if choices not in self.known:
            texts = _chosen(self.X, choices)
            self.known[choices] = self.sign * float(self.metric(self.references, texts))
        return self.known[choices]


def _check_lengths(X: Sequence[Candidates], y: Sequence[Text]) -> None:
    """Raise an error unless there is a reference for each of some lists."""
    if len(X) != len(y):
        raise ValueError(
            f"X has {len(X)} n-best lists and y {len(y)} references: pass one "
            "reference for each list."
        )
    if len(X) == 0:
        raise ValueError("X has no n-best list: pass at least one, with its reference.")


def _score_of(candidate: Any, name: str) -> float:
    """Return the score of a candidate of the list `name`, a pair of text and score."""
    try:
        _, score = candidate
        score = float(score)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} has {candidate!r:.80}: a list has pairs of a text and a score."
        ) from None
    if not math.isfinite(score):
        raise ValueError(
            f"{name} has {candidate!r:.80}: scores must be finite, so leave it out."
        )
    return score


def _totals(features: Floats, weights: Sequence[float]) -> Floats:
    """Return the totals of a list's candidates."""
    return features[0] + np.dot(weights, features[1:])


def _chosen(X: Sequence[Candidates], choices: Iterable[int]) -> list[Text]:
    return [candidates[i][0] for candidates, i in zip(X, choices)]


def _changes(features: Floats, weights: Sequence[float], k: int) -> list[float]:
    """Return the values of weight k at which the best candidate of a list changes.

    Totals are lines over the weight. From the line of the least slope, the best one
    at minus infinity, each step goes to the line that crosses it first.
    """
    slope = features[1 + k]
    others = [0.0 if j == k else w for j, w in enumerate(weights)]
    height = features[0] + np.dot(others, features[1:])
    now = np.lexsort((height, -slope))[-1]
    changes = []
    while (steeper := np.flatnonzero(slope > slope[now])).size:
        at = (height[now] - height[steeper]) / (slope[steeper] - slope[now])
        first = at.min()
        changes.append(float(first))
        now = max(steeper[at == first], key=lambda i: slope[i])
    return changes


def _joined(texts: Iterable[Text]) -> list[str]:
    return [text if isinstance(text, str) else " ".join(text) for text in texts]
