"""Long arrays in blocks: their memory is bounded, and an interrupt is heard."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCK_WINDOWS", "blocks", "blocks_of_rows"]

# A block of probabilities holds at most this many numbers (32 MB of float64).
BLOCK_SIZE = 1 << 22
# Windows whose next words a kernel looks up at once: an interrupt waits for no more.
BLOCK_WINDOWS = 1 << 15


def blocks(n: int, size: int) -> Iterator[slice]:
    """Cut range(n) into slices of `size`: between two of them an interrupt is heard."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def blocks_of_rows(n: int, n_columns: int) -> Iterator[slice]:
    """Cut range(n) into slices whose rows, of `n_columns` each, fit in one block."""
    return blocks(n, max(1, BLOCK_SIZE // n_columns))
