"""Fits that are done whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = ["all_or_nothing", "fitted_or_interrupted", "unchanged_by_errors"]

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Make a method of a model one that is `unchanged_by_errors`."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with unchanged_by_errors(self):
            return fit(self, *args, **kwargs)

    return cast(Fit, guarded)


@contextlib.contextmanager
def unchanged_by_errors(model: Any) -> Iterator[Callable[[], None]]:
    """Leave the model as it was when a fit is refused or breaks off.

    A model half of the old fit and half of the new one would pass ids to a
    kernel that its arrays do not have. A fit that has made a whole one calls what
    this gives: the model then stays as it is at that moment, whatever comes.
    """
    whole = vars(model).copy()

    def keep() -> None:
        nonlocal whole
        whole = vars(model).copy()

    try:
        yield keep
    except BaseException:
        model.__dict__ = whole
        raise


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
