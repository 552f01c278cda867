"""Order of the examples of epochs, in one process and in many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.array_types import Index
from nplm.models.neural.network.lstm import n_runs
from nplm.models.training.parallel.processes import Processes

__all__ = ["OTHER_RANK", "Order", "PartOrder", "in_turns", "order_of"]

# Stands for an example of another process, in the examples of all.
OTHER_RANK = -1


class Order:
    """Order of the examples of an epoch; every process has all of them.

    `shuffle`: whether each epoch has its examples in a new random order.
    """

    # Whether a mini-batch has runs of windows that do not follow each other.
    has_runs = False

    def __init__(self, n_windows: int, *, shuffle: bool) -> None:
        self.n_windows, self.shuffle = n_windows, shuffle
        self._index: NDArray[np.unsignedinteger] | None = None

    @property
    def n_examples(self) -> int:
        """Number of examples of an epoch."""
        return self.n_windows

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the order of an epoch, in the smallest integer type."""
        n = self.n_windows
        self._index = np.arange(n, dtype=np.min_scalar_type(n))
        if self.shuffle:
            rng.shuffle(self._index)

    def examples(self, start: int, stop: int) -> Index:
        """Return the windows of these examples of the epoch."""
        examples = self._taken(start, stop)
        if stop == self.n_examples:
            self._index = None  # free the memory
        return examples

    def _taken(self, start: int, stop: int) -> Index:
        assert self._index is not None
        return self._index[start:stop].astype(np.intp)


class RunOrder(Order):
    """Order in which examples follow each other in the text, for a memory.

    The text is cut into as many parts as a mini-batch has runs. A mini-batch has the
    next examples of each part, part by part.

    - `batch_size`: number of examples of a mini-batch
    - `shuffle`: whether the parts begin at another window in each epoch
    """

    def __init__(self, n_windows: int, batch_size: int, *, shuffle: bool) -> None:
        super().__init__(n_windows, shuffle=shuffle)
        self.batch_size = batch_size
        runs = n_runs(batch_size)
        self.has_runs = n_windows // runs > batch_size // runs

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the start of an epoch, and set the order."""
        n, runs = self.n_windows, n_runs(self.batch_size)
        steps, length = self.batch_size // runs, n // runs
        every = np.arange(n, dtype=np.min_scalar_type(n))
        if self.shuffle:
            every = np.roll(every, -rng.randint(n))
        parts = every[: runs * length].reshape(runs, length)
        whole = length - length % steps
        batches = parts[:, :whole].reshape(runs, -1, steps).swapaxes(0, 1)
        rest = (parts[:, whole:].ravel(), every[runs * length :])
        self._index = np.concatenate([batches.ravel(), *rest])


class PartOrder(Order):
    """Order of the examples of an epoch, to which each process adds as many.

    The processes take turns: example i of the epoch is one of process ``i % size``.
    A mini-batch thus has as many examples of each process, or one more of some, and
    all processes come to their last example together.

    - `n_windows`: number of windows of this process
    - `min_windows`: smallest number of windows of a process
    - `shuffle`: see `Order`. A process with more windows than `min_windows` leaves out
      the last ones of its order
    """

    def __init__(
        self, n_windows: int, min_windows: int, processes: Processes, *, shuffle: bool
    ) -> None:
        super().__init__(n_windows, shuffle=shuffle)
        self.min_windows, self.rank, self.size = (
            min_windows,
            processes.rank,
            processes.size,
        )

    @property
    def n_examples(self) -> int:
        """Number of examples of an epoch, of all processes."""
        return self.min_windows * self.size

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the order of an epoch, from a generator of this process.

        `rng` has the same state in all processes, before and after: a shuffle of more
        windows draws more random numbers.
        """
        seed = int(rng.randint(2**32, dtype=np.uint32)) if self.shuffle else 0
        super().begin(np.random.RandomState([seed, self.rank]))

    def _taken(self, start: int, stop: int) -> Index:
        assert self._index is not None
        examples = np.full(stop - start, OTHER_RANK, np.intp)
        own = examples[(self.rank - start) % self.size :: self.size]
        first = -(-(start - self.rank) // self.size)  # own examples before these
        own[:] = self._index[first : first + len(own)]
        return examples


def in_turns(own: Index, processes: Processes) -> Index:
    """Return examples of all processes in turn, of which `own` are those of this one.

    Raises ValueError in all processes, if they do not have as many each.
    """
    processes.check_same({"the number of examples": str(len(own))})
    examples = np.full(len(own) * processes.size, OTHER_RANK, np.intp)
    examples[processes.rank :: processes.size] = own
    return examples


def order_of(
    windows: Windows, processes: Processes, *, shuffle: bool, runs_of: int | None = None
) -> Order:
    """Return the order of the examples of windows.

    For a network with a memory, `runs_of` is the number of examples of a mini-batch,
    which has runs of consecutive windows.
    """
    n = len(windows)
    if runs_of is not None:
        return RunOrder(n, runs_of, shuffle=shuffle)
    if windows.min_windows is None:
        return Order(n, shuffle=shuffle)
    return PartOrder(n, windows.min_windows, processes, shuffle=shuffle)
