"""Blocks of long arrays: they bound memory and let interrupts through."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCK_WINDOWS", "blocks", "blocks_of_rows"]

# A block of probabilities holds at most this many numbers (32 MB of float64).
BLOCK_SIZE = 1 << 22
# Windows that one kernel call looks up: an interrupt waits for at most one call.
BLOCK_WINDOWS = 1 << 15


def blocks(n: int, size: int) -> Iterator[slice]:
    """Cut range(n) into slices of `size`; Python handles interrupts between them."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def blocks_of_rows(n: int, n_columns: int) -> Iterator[slice]:
    """Cut range(n) into slices of rows of `n_columns` that fit in one block."""
    return blocks(n, max(1, BLOCK_SIZE // n_columns))
