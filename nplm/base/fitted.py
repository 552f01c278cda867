"""What a fit leaves, as a file has it: taken item by item, and each checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

__all__ = ["Fitted"]


class Fitted:
    """Items of a saved model, of which nothing is believed yet.

    A model takes what it knows, and says how it should be; what is otherwise, is
    missing, or is left over, is a ValueError.

    Parameters
    ----------
    items : mapping of str
        Numbers, text, arrays, estimators; lists and mappings of them.
    where : str, default=""
        What they belong to, for the errors.
    """

    def __init__(self, items: Mapping[str, Any], where: str = "") -> None:
        self._items, self._where = dict(items), where
        self._inner: list[Fitted] = []

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def take(self, name: str, *kinds: type) -> Any:
        """Take an item, of one of these kinds if there are any."""
        if name not in self._items:
            raise ValueError(f"{self._where}{name} is missing")
        value = self._items.pop(name)
        # True is a whole number to Python, and to no model.
        mistaken = isinstance(value, bool) and bool not in kinds
        if kinds and (mistaken or not isinstance(value, kinds)):
            raise self.unfit(name, value)
        return value

    def unfit(self, name: str, value: Any) -> ValueError:
        """Give the error of an item that no fit leaves."""
        shown = repr(value)
        if isinstance(value, np.ndarray):
            shown = f"an array of {value.dtype} of shape {value.shape}"
        if len(shown) > 80:
            shown = shown[:80] + "..."
        return ValueError(f"{self._where}{name} is {shown}, which no fit leaves")

    def inner(self, name: str) -> Fitted:
        """Take items of their own."""
        inner = Fitted(self.take(name, dict), f"{self._where}{name}.")
        self._inner.append(inner)
        return inner

    def whole(self, name: str, least: int = 0, most: float = math.inf) -> int:
        """Take a whole number."""
        value: int = self.take(name, int)
        if not least <= value <= most:
            raise self.unfit(name, value)
        return value

    def optional_id(self, name: str, n_words: int) -> int | None:
        """Take a number below `n_words`, or None."""
        if self._items.get(name, "missing") is None:
            del self._items[name]
            return None
        return self.whole(name, 0, n_words - 1)

    def number(
        self, name: str, least: float = -math.inf, most: float = math.inf
    ) -> float:
        """Take a number; not one that is none."""
        value = self.take(name, int, float)
        if not least <= value <= most:
            raise self.unfit(name, value)
        return float(value)

    def texts(self, name: str) -> list[str]:
        """Take a list of strings."""
        value: list[str] = self.take(name, list)
        if not all(isinstance(text, str) for text in value):
            raise self.unfit(name, value)
        return value

    def estimator(self, name: str, *kinds: type) -> Any:
        """Take an estimator, of one of these kinds if there are any; fitted."""
        value = self.take(name, *kinds)
        try:
            check_is_fitted(value)
        except (NotFittedError, TypeError):
            raise self.unfit(name, value) from None
        return value

    def array(
        self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]
    ) -> NDArray[Any]:
        """Take an array of one type, and of a shape in which None is any length."""
        array: NDArray[Any] = self.take(name, np.ndarray)
        sound = array.dtype == dtype and len(array.shape) == len(shape)
        if not sound or any(n not in (None, m) for n, m in zip(shape, array.shape)):
            raise self.unfit(name, array)
        return array

    def ids(
        self, name: str, shape: tuple[int | None, ...], most: int
    ) -> NDArray[np.int32]:
        """Take an array of numbers from 0 to below `most`."""
        array = self.array(name, np.int32, shape)
        if array.size and not (array.min() >= 0 and array.max() < most):
            raise self.unfit(name, array)
        return array

    def shares(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
        """Take an array whose last axis has numbers of 0 or more that sum to 1."""
        array = self.array(name, np.float64, shape)
        # Of a number that is none no comparison holds.
        if not (array >= 0).all() or not (abs(array.sum(axis=-1) - 1) < 1e-6).all():
            raise self.unfit(name, array)
        return array

    def history(self, name: str, *columns: str) -> dict[str, list[float]]:
        """Take lists of numbers by name, `columns` among them, all of one length."""
        value: dict[str, list[float]] = self.take(name, dict)
        sound = value.keys() >= set(columns) and all(
            isinstance(column, list)
            and len(column) == len(value[columns[0]])
            and all(type(number) in (int, float) for number in column)
            for column in value.values()
        )
        if not sound:
            raise self.unfit(name, value)
        return value

    def done(self) -> None:
        """Raise where something is left over."""
        for name, value in self._items.items():
            raise ValueError(
                f"{self._where}{name} is {type(value).__name__} of which nothing is "
                "known"
            )
        for inner in self._inner:
            inner.done()
