"""Atomic fits: other code sees the old fit or the new one, never a mix.

A fit works on a copy of the model. When it is done, the copy's dictionary of attributes
replaces the model's in one step. A method that reads several attributes reads them from
one dictionary. So an error leaves the model as it was, and threads that score a model
during a fit use either the old fit or the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])
Model = TypeVar("Model")


def all_or_nothing(fit: Method) -> Method:
    """Make a method fit a copy of the model: an error leaves the model as it was."""

    @wraps(fit)
    def guarded(self: object, *args: object, **kwargs: object) -> Any:
        fitted = shallow_copy(self)
        result = fit(fitted, *args, **kwargs)
        replace_state(self, fitted)
        return self if result is fitted else result

    return cast(Method, guarded)


def shallow_copy(model: Model) -> Model:
    """Return a shallow copy of the model to fit, which leaves the model unchanged."""
    return _with_attributes(model, vars(model).copy())


def replace_state(model: Model, fitted: Model) -> None:
    """Replace all attributes of a model by those of its fitted copy, in one step."""
    model.__dict__ = vars(fitted)


def fit_copy(model: Model, fit: Callable[[Model], KeyboardInterrupt | None]) -> Model:
    """Fit a copy of the model, keep it, then raise the interrupt that `fit` returns."""
    fitted = shallow_copy(model)
    interrupt = fit(fitted)
    replace_state(model, fitted)
    try:
        if interrupt is not None:
            raise interrupt
    finally:
        del interrupt  # breaks the reference cycle with this frame
    return model


def fitted_or_interrupted(
    estimator: Any, *args: object, fit: str = "fit", **kwargs: object
) -> tuple[Any, KeyboardInterrupt | None]:
    """Fit a new estimator; return it, and the interrupt that ended the fit, if any.

    Raises the interrupt if it left the estimator unfitted.
    """
    try:
        return getattr(estimator, fit)(*args, **kwargs), None
    except KeyboardInterrupt as interrupt:
        # Imported here: n-grams are scored without scikit-learn.
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise interrupt from None
        return estimator, interrupt.with_traceback(None)


def read_at_once(method: Method) -> Method:
    """Make a method read a single fit of the model, even if a thread refits it."""

    @wraps(method)
    def reading(self: Any, *args: object, **kwargs: object) -> Any:
        return method(_with_attributes(self, vars(self)), *args, **kwargs)

    return cast(Method, reading)


def _with_attributes(model: Model, attributes: dict[str, object]) -> Model:
    copy = object.__new__(type(model))
    copy.__dict__ = attributes
    return copy
