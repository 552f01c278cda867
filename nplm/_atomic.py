"""Fits that are done whole or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["all_or_nothing", "unchanged_by_errors"]

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
