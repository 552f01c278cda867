"""MixtureLM: the probabilities of several models, averaged."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from nplm._base import LanguageModel

__all__ = ["MixtureLM"]


class MixtureLM(_BaseComposition, LanguageModel):
    """Mixture of language models: ``P = sum_i weight_i P_i`` (section 2).

    The paper's MLP2, 4, 6, 8 and 10 mix a network with the interpolated
    trigram, half and half: the two make their errors in different places.

    Parameters
    ----------
    estimators : list of (str, language model)
        Names and members. `fit` fits a clone of each; a member wrapped in
        ``sklearn.frozen.FrozenEstimator`` is taken as it was fitted, on the
        same columns or on fewer (it then sees the nearest ones).
    weights : "uniform" or array-like of float, default="uniform"
        Weight of each member: equal, or given (0 or more, summing to 1).
    n_words : int or None, default=None
        Size of the vocabulary, passed on to members that have none of their
        own; None leaves each to infer it, and then all must agree.

    Attributes
    ----------
    estimators_ : list of language models
        Fitted members.
    named_estimators_ : Bunch
        The same, by name.
    weights_ : ndarray of float64, shape (n_members,)
        Weights in use.
    n_parameters_ : int
        Sum over the members.
    n_words_, classes_, n_features_in_
        The vocabulary size, the word ids, the columns of X.

    References
    ----------
    Bengio et al. (2003), section 2 ("Mixture of models") and Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import InterpolatedTrigram, MixtureLM, windows
    >>> X, y = windows(np.random.default_rng(0).integers(0, 5, 200), 2)
    >>> mix = MixtureLM([("trigram", InterpolatedTrigram()),
    ...                  ("bigram", InterpolatedTrigram(order=2))], n_words=5)
    >>> mix = mix.fit(X, y)
    >>> mix.weights_.tolist()
    [0.5, 0.5]
    >>> mix.predict_proba(X).sum(axis=1).round(6).tolist() == [1.0] * len(X)
    True
    """

    order = None  # a mixture has no order of its own: its members have

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        weights: str | ArrayLike = "uniform",
        *,
        n_words: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.n_words = n_words

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the mixture and, as ``name__parameter``, its members'.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members and their parameters.

        Returns
        -------
        params : dict
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the mixture, a member by name, or ``name__parameter``.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self : MixtureLM
        """
        self._set_params("estimators", **params)
        return self

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Fit every member that is not frozen, on the same windows.

        Parameters
        ----------
        X : array-like of int, shape (n_samples, n_context)
            Contexts, the nearest word in the last column.
        y : array-like of int, shape (n_samples,)
            Next words.
        X_val, y_val : array-like of int, optional
            Held-out windows, handed to the members (early stopping, EM).

        Returns
        -------
        self : MixtureLM
        """
        self._check_estimators()
        weights = self._check_weights()
        n_given = self.n_words
        X, y = self._start_fit(X, y)
        self._check_held_out(X_val, y_val)
        members = []
        for name, estimator in self.estimators:
            member = clone(estimator)
            if n_given is not None and _param(member, "n_words") is None:
                member.set_params(n_words=n_given)
            member.fit(X, y, X_val=X_val, y_val=y_val)
            self._check_member(name, member)
            members.append(member)
        sizes = {name: m.n_words_ for (name, _), m in zip(self.estimators, members)}
        if len(set(sizes.values())) > 1 or sizes[self.estimators[0][0]] < self.n_words_:
            raise ValueError(
                f"the members and the windows disagree on the vocabulary: n_words is "
                f"{sizes} and at least {self.n_words_} in X and y; give all members "
                "the same n_words, or set it on the mixture."
            )
        self.n_words_ = members[0].n_words_
        self.classes_ = np.arange(self.n_words_)
        self.weights_ = weights
        self.estimators_ = members
        self.named_estimators_ = Bunch(
            **{name: m for (name, _), m in zip(self.estimators, members)}
        )
        return self

    def _check_estimators(self) -> None:
        if not self.estimators:
            raise ValueError("estimators is empty: give at least one (name, model).")
        try:
            names = [name for name, _ in self.estimators]
        except (TypeError, ValueError):
            raise ValueError(
                f"estimators must be a list of (name, model) pairs, got "
                f"{self.estimators!r}."
            ) from None
        self._validate_names(names)

    def _check_weights(self) -> NDArray[np.float64]:
        n = len(self.estimators)
        if isinstance(self.weights, str):
            if self.weights != "uniform":
                raise ValueError(
                    f'weights must be "uniform" or numbers, got {self.weights!r}.'
                )
            return np.full(n, 1 / n)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n,):
            raise ValueError(
                f"weights must be one number for each of the {n} members, "
                f"got an array of shape {weights.shape}."
            )
        if not (weights >= 0).all() or not np.isclose(weights.sum(), 1):
            raise ValueError(
                f"weights must be 0 or more and sum to 1, got {weights.tolist()} "
                f"(sum {weights.sum():g})."
            )
        return weights / weights.sum()

    def _check_member(self, name: str, member: Any) -> None:
        if member.n_features_in_ > self.n_features_in_:
            raise ValueError(
                f"member {name!r} was fitted on {member.n_features_in_} words of "
                f"context, but X has {self.n_features_in_} columns; give wider windows."
            )

    @property
    def n_parameters_(self) -> int:
        """Free parameters of all members."""
        check_is_fitted(self)
        return sum(member.n_parameters_ for member in self.estimators_)

    # -- probabilities --------------------------------------------------------

    def _members(self, X: NDArray[np.int32]) -> list[tuple[float, Any, NDArray[Any]]]:
        """Weight, member and the columns it was fitted on, where the weight counts."""
        return [
            (weight, member, X[:, X.shape[1] - member.n_features_in_ :])
            for weight, member in zip(self.weights_, self.estimators_)
            if weight > 0
        ]

    def _predict_proba(self, X: NDArray[np.int32]) -> NDArray[Any]:
        proba = np.zeros((len(X), self.n_words_))
        for weight, member, columns in self._members(X):
            proba += weight * member.predict_proba(columns)
        return proba

    def _log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        members = self._members(X)
        log_probs = [member.log_prob(columns, y) for _, member, columns in members]
        weights = np.array([weight for weight, _, _ in members])
        return logsumexp(np.array(log_probs), axis=0, b=weights[:, None])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")


def _param(estimator: Any, name: str) -> Any:
    """Get a constructor parameter, or "absent" where there is none of that name."""
    return estimator.get_params(deep=False).get(name, "absent")
