"""Numbers: their arrays, and what rounds them (_products)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Rounding = Callable[[Array], Array]
Rows = list[NDArray[np.intp] | slice]
Visited = NDArray[np.intp] | slice
# From E, z, the next words and what rounds the factors of products: log-likelihood,
# its gradients for z and E, and the rows of E that were visited.
Loss = Callable[
    [Array, Array, NDArray[np.int32], Rounding], tuple[float, Array, Array, Visited]
]


def as_it_is(values: Array) -> Array:
    """Give the values: what the products of full precision multiply."""
    return values


def bfloat16(values: Array) -> Array:
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)
