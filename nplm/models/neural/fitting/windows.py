"""Training and held-out windows of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.sparse import csr_array

from nplm.base.checks import count_ids
from nplm.models.neural.network.array_types import Counts, Ids
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

    - `X` (n_samples, n_context): contexts
    - `y` (n_samples,): next words
    - `held_out`: held-out contexts and next words
    - `min_windows`: if each process has windows of its own, the smallest number.
      If None, all processes have the same windows
    """

    X: Ids
    y: Ids
    held_out: tuple[Ids, Ids] | None = None
    min_windows: int | None = None

    def n_examples(self, n_processes: int) -> int:
        """Return the number of examples of an epoch, of all processes."""
        return (
            len(self.y) if self.min_windows is None else self.min_windows * n_processes
        )

    def counts(self, n_words: int, processes: Processes) -> Counts:
        """Count the next words, of all processes."""
        counts = count_ids(self.y, n_words)
        if self.min_windows is not None:
            processes.sum(counts)
        return counts

    def neighbours(self, n_words: int, processes: Processes) -> csr_array | None:
        """Count the neighbours of words, of all processes; in the first process."""
        n = min(N_NEIGHBOURS, self.X.shape[1])
        pairs = [(self.y, self.X[:, -distance]) for distance in range(1, n + 1)]
        if self.min_windows is not None:
            return processes.total(neighbour_counts(pairs, n_words))
        return neighbour_counts(pairs, n_words) if processes.rank == 0 else None

    def split(self, recipe: Recipe) -> Windows:
        """Hold out the last windows, if the recipe requires it."""
        n_windows = len(self.y)
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
        X, y = self.X, self.y
        return Windows(X[:-n_val], y[:-n_val], (X[-n_val:], y[-n_val:]))
