"""Checks of the parameters, windows and candidates of models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nplm.base import checks
from nplm.base.array_types import Ids
from nplm.base.estimators.bases import COMMON, USUAL_COLUMNS, BaseEstimator, unless_none

# Checked contexts and next words.
HeldOut = tuple[Ids, Ids]

# scikit-learn leaves the values unchecked: `check_ids` checks them, and its messages
# are about word ids, whereas scikit-learn's suggest other estimators for NaN.
UNCHECKED: dict[str, object] = {
    "dtype": None,
    "order": None,
    "ensure_all_finite": False,
}


def columns_needed(estimator: object) -> int:
    """Return the columns that a model, which may be frozen, is fitted or used with."""
    if isinstance(estimator, FrozenEstimator):
        return int(getattr(estimator, "n_features_in_", USUAL_COLUMNS))
    if isinstance(estimator, CheckedInputs):
        return estimator._columns_needed()
    return unless_none(getattr(estimator, "order", None), -1)


class CheckedInputs(BaseEstimator):
    """Parameters, windows and candidates, checked before a kernel sees them."""

    order: int | None
    n_words: int | None
    n_words_: int
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {}

    def _validate_params(self) -> None:
        """Check types and ranges; the fit checks relations between parameters."""
        validate_parameter_constraints(
            COMMON | self._parameter_constraints,
            self.get_params(deep=False),
            caller_name=type(self).__name__,
        )

    def _columns_needed(self) -> int:
        """Return the columns of X that the parameters ask for; see `columns_needed`."""
        return unless_none(self.order, -1)

    def _start_fit(
        self, X: ArrayLike, y: ArrayLike | None, *, reset: bool = True
    ) -> HeldOut:
        """Check parameters and windows; `reset` sets ``order_`` and ``n_words_``."""
        self._validate_params()
        if not reset:
            self._check_fitted()
        return self._check_windows(X, y, reset=reset)

    def _checked_order(self, n_context: int) -> int:
        """Return the order of a fit to contexts of `n_context` words."""
        order = n_context + 1 if self.order is None else int(self.order)
        if order - 1 > n_context:
            raise ValueError(
                f"order={order} needs contexts of {order - 1} words, but X has "
                f"{n_context} column{'s' if n_context > 1 else ''} "
                f"(n_features={n_context}); make wider windows "
                f"(n_context={order - 1}) or lower order."
            )
        return order

    def _check_held_out(
        self, X_val: ArrayLike | None, y_val: ArrayLike | None
    ) -> HeldOut | None:
        """Return the checked held-out windows, or None if there are none."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val go together: give both, or neither.")
        try:
            return self._check_windows(X_val, y_val)
        except ValueError as error:
            raise ValueError(f"In X_val, y_val: {error}") from error

    def _check_X(self, X: ArrayLike) -> Ids:
        plain = self._plain_ids(X, ndim=2)
        if plain is not None:
            return self._nearest(plain)
        self._check_fitted()
        checks.refuse_usual_mistakes(X, None, type(self).__name__, need_y=False)
        contexts = validate_data(self, X, reset=False, **UNCHECKED)
        with self._inferred_n_words():
            ids = checks.check_ids(contexts, "X", ndim=2, n_words=self.n_words_)
        return self._nearest(ids)

    def checked_windows(self, X: ArrayLike, y: ArrayLike | None) -> HeldOut:
        """Return the checked windows of a score."""
        plain, next_words = self._plain_ids(X, ndim=2), self._plain_ids(y, ndim=1)
        if plain is None or next_words is None or len(plain) != len(next_words):
            self._check_fitted()
            return self._check_windows(X, y)
        return self._nearest(plain), next_words

    def _check_fitted(self) -> None:
        """Raise unless the model is fitted and ``n_words_`` is as the fit set it."""
        check_is_fitted(self)
        if self.n_words_ != self._n_known():
            raise ValueError(
                f"n_words_={self.n_words_!r}, but this {type(self).__name__} was "
                f"fitted with {self._n_known()} words: setting n_words_ adds no words "
                "to a fitted model. Set it back; for a larger vocabulary fit again, "
                f"with {type(self).__name__}(n_words=...)."
            )

    def _n_known(self) -> int:
        """Return the size of the vocabulary, from the shapes of the fitted arrays."""
        return self.n_words_

    def _check_windows(
        self, X: ArrayLike, y: ArrayLike | None, *, reset: bool = False
    ) -> HeldOut:
        """Return checked windows; `reset` sets the sizes of a fit, which follow."""
        checks.refuse_usual_mistakes(X, y, type(self).__name__, need_y=True)
        contexts, target = validate_data(self, X, y, reset=reset, **UNCHECKED)
        target = column_or_1d(target, warn=True)
        if reset:
            self.order_ = self._checked_order(contexts.shape[1])
        n_words: int | None = self.n_words if reset else self.n_words_
        with nullcontext() if reset else self._inferred_n_words():
            ids = checks.check_ids(contexts, "X", ndim=2, n_words=n_words)
            next_words = checks.check_ids(target, "y", ndim=1, n_words=n_words)
        if reset:
            self.n_words_ = checks.size_of_vocabulary(n_words, ids, next_words)
        return ids[:, max(ids.shape[1] - self._n_context(), 0) :], next_words

    def _plain_ids(self, values: object, *, ndim: int) -> Ids | None:
        """Return ids that pass a quick check; None if the full checks must decide."""
        fitted = vars(self)
        if not {"n_words_", "n_features_in_"} <= fitted.keys():
            return None
        if "feature_names_in_" in fitted:
            return None
        ids = checks.plain_ids(values, ndim=ndim, n_words=self.n_words_)
        if ids is None or ndim == 1:
            return ids
        is_as_fitted = (
            ids.shape[1] == fitted["n_features_in_"]
            and fitted["n_words_"] == self._n_known()
        )
        return ids if is_as_fitted else None

    @contextmanager
    def _inferred_n_words(self) -> Iterator[None]:
        """Add advice on `n_words` to the error of an id, if `n_words` was inferred."""
        try:
            yield
        except ValueError as error:
            if self.n_words is None and "n_words=" in str(error):
                raise ValueError(
                    f"{error} n_words was inferred from the training windows; to "
                    f"score words they lack, set it to the size of the vocabulary: "
                    f"{type(self).__name__}(n_words=...)."
                ) from None
            raise

    def _check_candidates(self, candidates: ArrayLike, n_samples: int) -> Ids:
        """Return checked candidates, a row for each of `n_samples` contexts."""
        with suppress(ValueError):  # ragged: `check_ids` explains it
            candidates = np.asarray(candidates)
        ndim = 1 if getattr(candidates, "ndim", 2) == 1 else 2
        ids = checks.plain_ids(candidates, ndim=ndim, n_words=self.n_words_)
        if ids is None:
            with self._inferred_n_words():
                ids = checks.check_ids(
                    candidates, "candidates", ndim=ndim, n_words=self.n_words_
                )
        if ndim == 1:
            return np.broadcast_to(ids, (n_samples, len(ids)))
        if len(ids) != n_samples:
            raise ValueError(
                f"candidates has {len(ids)} rows, but X has {n_samples}: give each "
                "context its row of candidates, or one list (1-dimensional) for all."
            )
        return ids

    def _n_context(self) -> int:
        """Return the number of context words that the model uses."""
        return self.order_ - 1

    def _nearest(self, X: Ids) -> Ids:
        """Keep the columns of the words that the model uses."""
        return X[:, max(X.shape[1] - self._n_context(), 0) :]
