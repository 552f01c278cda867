"""Training and held-out windows of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from nplm.base.blocks import Texts
from nplm.base.checks import count_ids
from nplm.models.neural.network.array_types import Counts, Ids, Index
from nplm.models.neural.recipe import Recipe
from nplm.models.training.parallel.processes import Processes
from nplm.text.embeddings import neighbour_counts

__all__ = ["MIN_WINDOWS_TO_SPLIT", "Windows"]

# Minimum number of windows with which early_stopping="auto" holds some out.
MIN_WINDOWS_TO_SPLIT = 100
# Words on either side of a word from which its first features are made.
N_NEIGHBOURS = 2


@dataclass(frozen=True, eq=False)
class Windows:
    """Checked contexts and next words of a fit.

    - `X` (n_rows, n_context): contexts
    - `y` (n_rows,): next words
    - `held_out`: held-out windows
    - `min_windows`: if each process has windows of its own, the smallest number.
      If None, all processes have the same windows
    - `rows` (n_windows,): rows of X and y that are windows; None for all
    - `are_texts`: whether windows in consecutive rows follow each other in a text
    """

    X: Ids
    y: Ids
    held_out: Windows | None = None
    min_windows: int | None = None
    rows: Ids | Index | None = None
    are_texts: bool = False

    @classmethod
    def of_texts(cls, texts: Texts, nearest: Callable[[Ids], Ids]) -> Self:
        """Return the windows of texts: views, and the rows of several texts.

        `nearest` returns the columns that are used.
        """
        rows = None
        if len(texts.first) > 1:
            rows = texts.rows(slice(0, len(texts))).astype(np.int32)
        return cls(nearest(texts.X), texts.y, rows=rows, are_texts=True)

    def __len__(self) -> int:
        return len(self.y if self.rows is None else self.rows)

    def index(self, examples: Index) -> Index:
        """Return the rows of examples; those below 0 have none and stay."""
        if self.rows is None:
            return examples
        return np.where(examples < 0, examples, self.rows[examples])

    def part(self, part: slice) -> Windows:
        """Return some windows, without held-out ones."""
        if self.rows is not None:
            return replace(self, rows=self.rows[part], held_out=None)
        return replace(self, X=self.X[part], y=self.y[part], held_out=None)

    def arrays(self, suffix: str = "") -> dict[str, Any]:
        """Return the arrays of the windows by name."""
        rows = {} if self.rows is None else {f"rows{suffix}": self.rows}
        return {f"X{suffix}": self.X, f"y{suffix}": self.y} | rows

    def whole(self) -> tuple[Ids, Ids]:
        """Return the contexts and the next words of the windows alone."""
        rows = slice(None) if self.rows is None else self.rows
        return self.X[rows], self.y[rows]

    def n_examples(self, n_processes: int) -> int:
        """Return the number of examples of an epoch, of all processes."""
        return len(self) if self.min_windows is None else self.min_windows * n_processes

    def next_words(self) -> Ids:
        """Return the next words of the windows."""
        return self.y if self.rows is None else self.y[self.rows]

    def counts(self, n_words: int, processes: Processes) -> Counts:
        """Count the next words, of all processes."""
        counts = count_ids(self.next_words(), n_words)
        if self.min_windows is not None:
            processes.sum(counts)
        return counts

    def neighbours(self, n_words: int, processes: Processes) -> csr_array | None:
        """Count the neighbours of words, of all processes; in the first process."""
        n = N_NEIGHBOURS if self.are_texts else min(N_NEIGHBOURS, self.X.shape[1])
        pairs = [self._neighbours(distance) for distance in range(1, n + 1)]
        if self.min_windows is not None:
            return processes.total(neighbour_counts(pairs, n_words))
        return neighbour_counts(pairs, n_words) if processes.rank == 0 else None

    def _neighbours(self, distance: int) -> tuple[Ids, Ids]:
        """Return next words, and the words at a distance before them."""
        if distance <= self.X.shape[1]:
            rows = slice(None) if self.rows is None else self.rows
            return self.y[rows], self.X[rows, -distance]
        if self.rows is None:
            return self.y[distance:], self.y[:-distance]
        later, earlier = self.rows[distance:], self.rows[:-distance]
        together = later - earlier == distance  # of one text
        return self.y[later[together]], self.y[earlier[together]]

    def split(self, recipe: Recipe) -> Windows:
        """Hold out the last windows, if the recipe requires it."""
        n_windows = len(self)
        if self.held_out is not None or not recipe.early_stopping:
            return self
        if recipe.early_stopping == "auto" and n_windows < MIN_WINDOWS_TO_SPLIT:
            return self
        n_val = max(1, round(recipe.validation_fraction * n_windows))
        if n_val >= n_windows:
            raise ValueError(
                f"early_stopping={recipe.early_stopping!r} holds out {n_val} of "
                f"{n_windows} windows, which leaves none for training; give more "
                "windows, a smaller validation_fraction, or X_val and y_val."
            )
        held_out = self.part(slice(-n_val, None))
        return replace(self.part(slice(-n_val)), held_out=held_out)
