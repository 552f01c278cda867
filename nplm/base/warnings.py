"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import sklearn

import nplm

__all__ = ["warn"]

# A pipeline or a grid search may call a fit, at any depth.
_SKIPPED_FOLDERS = tuple(
    os.path.join(os.path.dirname(os.path.abspath(str(package.__file__))), "")
    for package in (nplm, sklearn, joblib)
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called nplm, scikit-learn or joblib from outside.

    - `message`: text of the warning
    - `category`: class of the warning
    """
    # Equivalent to skip_file_prefixes of Python 3.12.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        _SKIPPED_FOLDERS
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
