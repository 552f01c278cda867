"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

import joblib
import sklearn

__all__ = ["one_warning", "warn"]

Method = TypeVar("Method", bound=Callable[..., Any])
# What is to be said when a method is done.
_GATHERED: ContextVar[list[str] | None] = ContextVar("gathered", default=None)

# A fit may be called by a pipeline or a grid search, to any depth.
_BETWEEN = tuple(
    os.path.join(os.path.dirname(os.path.abspath(path)), "")
    for path in (__file__, str(sklearn.__file__), str(joblib.__file__))
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called nplm, scikit-learn or joblib from outside.

    Parameters
    ----------
    message : str
        What to say.
    category : type of Warning
        Of what kind it is.
    """
    gathered = _GATHERED.get()
    if gathered is not None:
        gathered.append(message)
        return
    # What skip_file_prefixes of Python 3.12 does.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def one_warning(method: Method) -> Method:
    """Make all that a method warns of one `UserWarning`, when it is done."""

    @wraps(method)
    def gathering(*args: Any, **kwargs: Any) -> Any:
        gathered: list[str] = []
        token = _GATHERED.set(gathered)
        try:
            made = method(*args, **kwargs)
        finally:
            _GATHERED.reset(token)
        if gathered:
            warn("\n".join(gathered), UserWarning)
        return made

    return cast(Method, gathering)
