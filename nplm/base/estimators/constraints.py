"""Parameters of estimators: their fields, and constraints of their values."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TypeVar, dataclass_transform

import numpy as np
from sklearn.utils._param_validation import Interval

from nplm.base.checks import MAX_N_WORDS

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
