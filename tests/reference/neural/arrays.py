"""Arrays and rounding (_products)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tests.reference import Index, Int32

Array = NDArray[np.floating]
Rounding = Callable[[Array], Array]
Rows = list[Index | slice]
Visited = Index | slice


class Loss(Protocol):
    """A loss other than the exact likelihood."""

    def __call__(
        self, E: Array, z: Array, y: Int32, rounded: Rounding
    ) -> tuple[float, Array, Array, Visited]:
        """Of the logits E z: log-likelihood, gradients for z and E, rows visited.

        The factors of products are `rounded`.
        """

    def of_logits(self, logits: Array, y: Int32) -> tuple[float, Array, Visited]:
        """Of any logits: log-likelihood, the gradient for them, words visited."""


def as_it_is(values: Array) -> Array:
    """Return the values, for products of full precision."""
    return values


def bfloat16(values: Array) -> Array:
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)
