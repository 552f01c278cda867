"""Fits that are done whole or not at all, and seen whole or not at all.

A fit is made aside, on an object of its own, and becomes the model's in one step: its
dictionary of attributes takes the place of the old one. A method that reads several
attributes reads them from one dictionary. So an error leaves the model as it was, and
threads that score a model while it is fitted again see the old fit or the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = [
    "all_or_nothing", "aside", "become", "fit_aside", "fitted_or_interrupted",
    "read_at_once",
]  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])
Model = TypeVar("Model")


def all_or_nothing(fit: Method) -> Method:
    """Make a method fit a model aside: an error leaves the model as it was.

    A model half of the old fit and half of the new one would pass ids to a
    kernel that its arrays do not have.
    """

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        fitted = aside(self)
        result = fit(fitted, *args, **kwargs)
        become(self, fitted)
        return self if result is fitted else result

    return cast(Method, guarded)


def aside(model: Model) -> Model:
    """Give an object with the same attributes, to fit: the model keeps its own."""
    return _with_attributes(model, vars(model).copy())


def become(model: Model, fitted: Model) -> None:
    """Take all attributes of what was fitted aside, in one step."""
    model.__dict__ = vars(fitted)


def fit_aside(model: Model, fit: Callable[[Model], KeyboardInterrupt | None]) -> Model:
    """Fit an object aside and become it; then raise the interrupt of the fit, if any.

    `fit` returns the interrupt after which the object is fitted.
    """
    fitted = aside(model)
    interrupt = fit(fitted)
    become(model, fitted)
    try:
        if interrupt is not None:
            raise interrupt
    finally:
        del interrupt  # else it would hold this frame in a cycle
    return model


def fitted_or_interrupted(
    estimator: Any, *args: Any, **kwargs: Any
) -> tuple[Any, KeyboardInterrupt | None]:
    """Fit a new estimator, and give it with the interrupt after which it is fitted.

    Parameters
    ----------
    estimator : estimator
        Not fitted yet.
    *args, **kwargs
        For its ``fit``.

    Returns
    -------
    fitted : estimator
        What ``fit`` returns, or the estimator.
    interrupt : KeyboardInterrupt or None
        What ended the fit early: to be raised when the result is kept.

    Raises
    ------
    KeyboardInterrupt
        If the estimator kept nothing.
    """
    try:
        return estimator.fit(*args, **kwargs), None
    except KeyboardInterrupt as interrupt:
        try:
            check_is_fitted(estimator)
        except NotFittedError:
            raise interrupt from None
        return estimator, interrupt


def read_at_once(method: Method) -> Method:
    """Make a method read one fit of the model, even if a thread fits it meanwhile."""

    @wraps(method)
    def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(_with_attributes(self, vars(self)), *args, **kwargs)

    return cast(Method, reading)


def _with_attributes(model: Model, attributes: dict[str, Any]) -> Model:
    other = object.__new__(type(model))
    other.__dict__ = attributes
    return other
