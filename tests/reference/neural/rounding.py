"""Rounding of the factors of products (_products)."""

import numpy as np


def as_it_is(values):
    """Return the values, for products of full precision."""
    return values


def bfloat16(values):
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)
