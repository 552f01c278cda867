"""Blocks of long arrays, which bound memory, and texts as one array of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nplm.base.array_types import Floats, Ids, Index, Mask

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


def _new_array(shape: tuple[int, ...]) -> Ids:
    """Return an array for ids."""
    return np.empty(shape, np.int32)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts as one array of ids, over which the windows are views.

    A row is a window, the words before a token and the token, within one text.
    """

    ids: Ids  # the texts, and what fills the contexts at their starts
    n_context: int  # words of context in a row
    first: Index  # (n_texts,): the first row of each text
    lengths: Index  # (n_texts,): number of rows of each text
    n_before: int  # words of each text before the first token that has a row
    new_array: Callable[[tuple[int, ...]], Ids] = _new_array
    weights: Floats | None = None  # (n_texts,), in (0, 1]; None: all are 1

    @classmethod
    def of(
        cls, texts: Sequence[Ids], n_context: int, boundary: int | None, *, ends: bool
    ) -> Self:
        """Put texts into one array; one text without a boundary is not copied.

        - `boundary`: fills the contexts at the start of each text. If None, the first
          `n_context` words of a text have no row
        - `ends`: whether the boundary after each text has a row
        """
        sizes = np.array([len(text) for text in texts], dtype=np.intp)
        if boundary is None:
            ids = texts[0] if len(texts) == 1 else np.concatenate(texts)
            first, lengths = np.cumsum(sizes) - sizes, np.maximum(sizes - n_context, 0)
            return cls(ids, n_context, first, lengths, n_context)
        lengths = sizes + ends
        first = np.cumsum(lengths + n_context) - (lengths + n_context)
        ids = np.full((lengths + n_context).sum(), boundary, np.int32)
        for text, start in zip(texts, (first + n_context).tolist()):
            ids[start : start + len(text)] = text
        return cls(ids, n_context, first, lengths, 0)

    def __len__(self) -> int:
        return int(self.lengths.sum())

    @cached_property
    def begin(self) -> Index:
        """Number of rows of all texts before each."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def X(self) -> Ids:
        """Contexts of all rows, also of those that are left out: a read-only view."""
        view = np.lib.stride_tricks.sliding_window_view
        return view(self.ids[:-1], self.n_context)

    @property
    def y(self) -> Ids:
        """The token of each row: a view."""
        return self.ids[self.n_context :]

    def rows(self, part: slice) -> Any:
        """Return the rows of these tokens; of one text as a slice."""
        if len(self.first) == 1:
            first = int(self.first[0])
            return slice(first + part.start, first + part.stop)
        bounds = part.start, part.stop - 1
        before, after = np.searchsorted(self.begin, bounds, side="right")
        some = slice(before - 1, after)
        begin = self.begin[some]
        counts = np.diff(np.maximum(begin, part.start), append=part.stop)
        tokens = np.arange(part.start, part.stop)
        return tokens + np.repeat(self.first[some] - begin, counts)

    def reread(self, n_context: int) -> tuple[Self, Mask]:
        """Return the texts with rows of fewer words of context, from their start.

        The second array tells which of these rows are rows of this object.
        """
        more = max(self.n_before - n_context, 0)
        added = np.where(self.lengths > 0, more, 0)
        first = self.first + (self.n_context - n_context - more)
        lengths = self.lengths + added
        n_before = self.n_before - more
        texts = replace(
            self, n_context=n_context, first=first, lengths=lengths, n_before=n_before
        )
        return texts, _second_of(added, self.lengths)

    def columns(self, n: int, n_ahead: int) -> tuple[Self, Mask]:
        """Cut the only text into at most `n` parts of one length.

        Each part but the first begins `n_ahead` rows before the first that counts.
        Returns the parts, and which of their rows count: each row of the text, once.
        """
        [first], [length] = self.first, self.lengths
        starts = np.arange(0, length, -(-length // n))
        ahead = np.minimum(starts, n_ahead)
        lengths = np.diff(starts, append=length)
        parts = replace(self, first=first + starts - ahead, lengths=ahead + lengths)
        return parts, _second_of(ahead, lengths)

    def windows(self) -> tuple[Ids, Ids]:
        """Return the contexts and the token of each row: of one text, views."""
        n = len(self)
        if n and len(self.first) == 1:
            rows = self.rows(slice(0, n))
            return self.X[rows], self.y[rows]
        X, y = self.new_array((n, self.n_context)), self.new_array((n,))
        for part in blocks(n, BLOCK_WINDOWS):
            rows = self.rows(part)
            X[part], y[part] = self.X[rows], self.y[rows]
        return X, y


def _second_of(first: Index, second: Index) -> Mask:
    """Return a mask of the second of each pair of pieces of these lengths."""
    counts = np.column_stack([first, second]).ravel()
    return np.repeat(np.arange(len(counts)) % 2 == 1, counts)
