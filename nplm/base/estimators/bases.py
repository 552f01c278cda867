"""Bases of estimators, and their parameters: fields, and constraints of their values.

scikit-learn has no types, and mypy accepts any parameters of a class whose base it does
not know: so its base classes have types here.
"""

# ruff: noqa: D101

from __future__ import annotations

import os
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, InvalidParameterError

from nplm.base.checks import MAX_N_WORDS
from nplm.base.exceptions import ParameterMessage
from nplm.base.fitted import Saved

MYPY = False  # mypy takes it for True
if MYPY:

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class DensityMixin: ...

    class MetaEstimatorMixin: ...

    class OutlierMixin: ...

    class TransformerMixin: ...

    class _BaseComposition(BaseEstimator): ...

else:
    from sklearn.base import (  # noqa: F401
        BaseEstimator,
        ClassifierMixin,
        DensityMixin,
        MetaEstimatorMixin,
        OutlierMixin,
        TransformerMixin,
    )
    from sklearn.utils.metaestimators import _BaseComposition  # noqa: F401

# The documentation of a checkout, if it is built.
BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"


class Documented(BaseEstimator):
    """Link an estimator's HTML representation to its page in nplm's documentation.

    Its address is in ``NPLM_DOCS``, by default that of a checkout where it is built.
    Errors of parameters carry the name and the value; see `ParameterMessage`.
    """

    _doc_link_module = "nplm"  # a class from elsewhere has no page here

    @property
    def _doc_link_template(self) -> str:
        address = os.environ.get("NPLM_DOCS", "").rstrip("/")
        if not address:
            if not (BUILT / "index.html").exists():
                return ""
            address = BUILT.as_uri()
        return address + "/api/generated/nplm.{estimator_name}.html"

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            for name, value in self.get_params(deep=False).items():
                subject = f"The {name!r} parameter of {type(self).__name__}"
                if str(error).startswith(subject):
                    rest = str(error).removeprefix(subject)
                    text = f"{{{name}:{subject}}}{{0}}"
                    message = ParameterMessage(text, rest, **{name: value})
                    raise InvalidParameterError(message) from None
            raise


class DocumentEstimator(Saved, Documented):
    """Base of the estimators whose samples are documents: text, tokens or ids."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


Kind = TypeVar("Kind")
# Columns of windows for a model that uses all of them.
USUAL_COLUMNS = 4


class Whole(Interval):
    """Whole numbers from `least` to `most`; not True, which scikit-learn's has as 1."""

    def __init__(self, least: int, most: int | None = None) -> None:
        closed = "left" if most is None else "both"
        super().__init__(Integral, least, most, closed=closed)

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether `val` is one of them."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


# Parameters that have the same meaning in every model.
COMMON: dict[str, list[object]] = {
    "order": [Whole(1), None],
    "n_words": [Whole(1, MAX_N_WORDS), None],
    "boundary": [Whole(0), None],
}


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def hyperparameters(kind: type[Kind]) -> type[Kind]:
    """Make the ``__init__`` of an estimator from its fields, taken by keyword."""
    return dataclass(eq=False, repr=False, match_args=False, kw_only=True)(kind)


def non_negative() -> Interval:
    """Return the interval of real numbers from 0, including infinity."""
    return Interval(Real, 0, np.inf, closed="both")


def unless_none(value: object, change: int = 0) -> int:
    """Return a parameter plus `change`, 1 or more; `USUAL_COLUMNS` for no number."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return max(int(value) + change, 1)
    return USUAL_COLUMNS
