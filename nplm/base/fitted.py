"""Fitted states in files: the schema of an estimator, and untrusted items checked.

An estimator class declares the items of its fitted state in ``_saved``. What a file
has, and what is refused, follows from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.array_types import Floats, Ids

# Errors that invalid values of a file raise.
INVALID_VALUE_ERRORS = (
    ValueError, TypeError, LookupError, AttributeError, OverflowError,
)  # fmt: skip


class Item:
    """One item of the fitted state of an estimator.

    `take`, a method of `Fitted` or a function of one and the name, checks the item of a
    file, with `limits`. `of` returns that of a fitted estimator, by default the
    attribute of its name with an underscore. An optional item that is None is not
    saved.
    """

    def __init__(
        self,
        take: Callable[..., Any],
        *limits: Any,
        of: Callable[[Any], object] | None = None,
        is_optional: bool = False,
    ) -> None:
        self.take, self.limits = take, limits
        self.of, self.is_optional = of, is_optional

    def taken(self, fitted: Fitted, name: str) -> Any:
        """Take the item from those of a file; None if it is optional and absent."""
        if self.is_optional and name not in fitted:
            return None
        return self.take(fitted, name, *self.limits)


class Saved:
    """Base of estimators whose fitted state can be saved."""

    can_be_saved: ClassVar[bool] = True
    # Items of the fitted state, besides those of the base classes.
    _saved: ClassVar[Mapping[str, Item]] = {}

    def _set_saved(self, values: dict[str, Any]) -> None:
        """Set the attributes of a fit; raise ValueError if values contradict."""
        for name, item in schema(type(self)).items():
            if item.of is None:
                setattr(self, f"{name}_", values[name])


def schema(kind: type[Saved]) -> dict[str, Item]:
    """Return the items of the fitted state of a class, in the order of files."""
    items: dict[str, Item] = {}
    for base in reversed(kind.__mro__):
        items |= vars(base).get("_saved", {})
    return items


def saved(estimator: Saved) -> dict[str, object]:
    """Return the fitted state of an estimator, item by item."""
    items: dict[str, object] = {}
    for name, item in schema(type(estimator)).items():
        value = (
            getattr(estimator, f"{name}_") if item.of is None else item.of(estimator)
        )
        if value is not None or not item.is_optional:
            items[name] = value
    return items


def restore(estimator: Saved, state: Mapping[str, object]) -> None:
    """Set the fitted state that `saved` returned; raise ValueError if it is invalid."""
    fitted, items = Fitted(state), schema(type(estimator))
    values = {name: item.taken(fitted, name) for name, item in items.items()}
    estimator._set_saved(values)
    fitted.done()


def invalid_item(name: str, value: object) -> ValueError:
    """Return the error of an item with an invalid value."""
    shown = repr(value)
    if isinstance(value, np.ndarray):
        shown = f"an array of {value.dtype} of shape {value.shape}"
    if len(shown) > 80:
        shown = shown[:80] + "..."
    return ValueError(f"{name} is {shown}, which is not valid")


class Fitted:
    """Untrusted items of a saved model, which takes each with its type and range.

    An item that is missing, invalid or left over raises a ValueError. `where` is the
    prefix of their names in errors.
    """

    def __init__(self, items: Mapping[str, object], where: str = "") -> None:
        self._items, self._where = dict(items), where
        self._inner: list[Fitted] = []

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def take(self, name: str, *kinds: type) -> Any:
        """Take an item, which must be an instance of one of `kinds` if given."""
        if name not in self._items:
            raise ValueError(f"{self._where}{name} is missing")
        value = self._items.pop(name)
        # True is an int in Python, but not a valid number here.
        is_stray_bool = isinstance(value, bool) and bool not in kinds
        if kinds and (is_stray_bool or not isinstance(value, kinds)):
            raise self.invalid_item(name, value)
        return value

    def invalid_item(self, name: str, value: object) -> ValueError:
        """Return the error of an item with an invalid value."""
        return invalid_item(f"{self._where}{name}", value)

    def inner(self, name: str) -> Fitted:
        """Take a mapping as `Fitted` items."""
        inner = Fitted(self.take(name, dict), f"{self._where}{name}.")
        self._inner.append(inner)
        return inner

    def whole(self, name: str, least: int = 0, most: float = math.inf) -> int:
        """Take a whole number from `least` to `most`."""
        value: int = self.take(name, int)
        if not least <= value <= most:
            raise self.invalid_item(name, value)
        return value

    def is_none(self, name: str) -> bool:
        """Return whether an item is None, and take it then."""
        if self._items.get(name, "missing") is not None:
            return False
        del self._items[name]
        return True

    def optional_id(self, name: str, n_words: float = math.inf) -> int | None:
        """Take a word id below `n_words`, or None."""
        return None if self.is_none(name) else self.whole(name, 0, n_words - 1)

    def number(
        self, name: str, least: float = -math.inf, most: float = math.inf
    ) -> float:
        """Take a number from `least` to `most`, which is not NaN."""
        value = self.take(name, int, float)
        if not least <= value <= most:
            raise self.invalid_item(name, value)
        return float(value)

    def texts(self, name: str) -> list[str]:
        """Take a list of strings."""
        value: list[str] = self.take(name, list)
        if not all(isinstance(text, str) for text in value):
            raise self.invalid_item(name, value)
        return value

    def estimator(self, name: str, *kinds: type) -> Any:
        """Take a fitted estimator, an instance of one of `kinds` if given."""
        # Imported here: files of n-grams are read without scikit-learn.
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        value = self.take(name, *kinds)
        try:
            check_is_fitted(value)
        except (NotFittedError, TypeError):
            raise self.invalid_item(name, value) from None
        return value

    def array(
        self,
        name: str,
        dtype: DTypeLike,
        shape: tuple[int | None, ...] | None,
        least: float | None = None,
        most: float = math.inf,
    ) -> NDArray[Any]:
        """Take an array of this type, shape and range; None is any of them."""
        array: NDArray[Any] = self.take(name, np.ndarray)
        shape = array.shape if shape is None else shape
        is_valid = array.dtype == dtype and len(array.shape) == len(shape)
        if not is_valid or any(n not in (None, m) for n, m in zip(shape, array.shape)):
            raise self.invalid_item(name, array)
        # Comparisons with NaN are False.
        if least is not None and not ((array >= least) & (array <= most)).all():
            raise self.invalid_item(name, array)
        return array

    def ids(
        self, name: str, shape: tuple[int | None, ...], most: float = math.inf
    ) -> Ids:
        """Take an int32 array of ids from 0 to `most` - 1."""
        return self.array(name, np.int32, shape, 0, most - 1)

    def shares(self, name: str, shape: tuple[int | None, ...] | None) -> Floats:
        """Take an array of probabilities that sum to 1 along the last axis."""
        array = self.array(name, np.float64, shape, 0)
        if not (abs(array.sum(axis=-1) - 1) < 1e-6).all():
            raise self.invalid_item(name, array)
        return array

    def history(self, name: str, *columns: str) -> dict[str, list[float]]:
        """Take named lists of numbers of equal length, including all `columns`."""
        value: dict[str, list[float]] = self.take(name, dict)
        is_valid = value.keys() >= set(columns) and all(
            isinstance(column, list)
            and len(column) == len(value[columns[0]])
            and all(type(number) in (int, float) for number in column)
            for column in value.values()
        )
        if not is_valid:
            raise self.invalid_item(name, value)
        return value

    def done(self) -> None:
        """Raise if an item is left over."""
        for name, value in self._items.items():
            raise ValueError(
                f"{self._where}{name} is an unexpected item ({type(value).__name__})"
            )
        for inner in self._inner:
            inner.done()
