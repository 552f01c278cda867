"""The memory that passes over a trie use: as much as they like, or a limited part."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.models.ngrams.trie.context_trie import BLOCK_FOLLOWERS, MAX_NGRAMS

__all__ = ["IN_MEMORY", "Work"]


class Work(Protocol):
    """Memory of passes over a trie; ``Scratch`` has it on disk."""

    @property
    def block(self) -> int:
        """Number of n-grams in a block."""

    @property
    def n_at_once(self) -> int:
        """Number of float64 that are held in memory at once."""

    @property
    def n_at_random(self) -> int:
        """Number of accesses at random between two calls of `forget`."""

    def array(self, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array of zeros."""

    def forget(self, *arrays: NDArray[Any]) -> None:
        """Release the memory of arrays on disk: `arrays`, and those made."""


class InMemory:
    """All in memory."""

    block = BLOCK_FOLLOWERS
    n_at_once = n_at_random = MAX_NGRAMS

    def array(self, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array of zeros."""
        return np.zeros(size, dtype=dtype)

    def forget(self, *arrays: NDArray[Any]) -> None:
        """Release nothing."""


IN_MEMORY = InMemory()
