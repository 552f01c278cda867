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
            self._free()
        return examples

    def _free(self) -> None:
        self._index = None

    def _taken(self, start: int, stop: int) -> Index:
        assert self._index is not None
        return self._index[start:stop].astype(np.intp)


class RunOrder(Order):
    """Order in which examples follow each other in the text, for units with a state.

    The text is cut into as many parts as a mini-batch has runs. A mini-batch has the
    next examples of each part, part by part.

    - `batch_size`: number of examples of a mini-batch
    - `shuffle`: whether the parts begin at another window in each epoch
    - `n_workers`: number of workers with mini-batches of their own, which take turns
      (`sharing.own_examples`); each has parts of its own
    """

    def __init__(
        self, n_windows: int, batch_size: int, *, shuffle: bool, n_workers: int = 1
    ) -> None:
        super().__init__(n_windows, shuffle=shuffle)
        self.batch_size, self.n_workers = batch_size, n_workers
        runs = n_runs(batch_size)
        self.has_runs = n_windows // runs > batch_size // runs

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the start of an epoch."""
        self._start = rng.randint(self.n_windows) if self.shuffle else 0

    def _taken(self, start: int, stop: int) -> Index:
        # Computed when it is needed: a long text takes no memory for it.
        n, runs = self.n_windows, n_runs(self.batch_size)
        steps, n_parts = self.batch_size // runs, runs * self.n_workers
        length = n // n_parts
        whole = length - length % steps
        index = np.arange(start, stop)
        batch, place = np.divmod(index, n_parts * steps)
        part, step = np.divmod(place, steps)
        batches = part * length + batch * steps + step
        part, step = np.divmod(index - n_parts * whole, max(length - whole, 1))
        rest = part * length + whole + step
        ends = [index < n_parts * whole, index < n_parts * length]
        return (np.select(ends, [batches, rest], index) + self._start) % n


class PartOrder(Order):
    """Order of the examples of an epoch, to which each process adds as many.

    The processes take turns: example i of the epoch is one of process ``i % size``.
    A mini-batch thus has as many examples of each process, or one more of some, and
    all processes come to their last example together.

    - `n_windows`: number of windows of this process
    - `min_windows`: smallest number of windows of a process
    - `own`: order of the windows of this process. One with more windows than
      `min_windows` leaves out the last ones
    """

    def __init__(self, own: Order, min_windows: int, processes: Processes) -> None:
        super().__init__(own.n_windows, shuffle=own.shuffle)
        self.own, self.min_windows = own, min_windows
        self.rank, self.size = processes.rank, processes.size

    @property
    def n_examples(self) -> int:
        return self.min_windows * self.size

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the order of an epoch, from a generator of this process.

        `rng` has the same state in all processes, before and after: a shuffle of more
        windows draws more random numbers.
        """
        seed = int(rng.randint(2**32, dtype=np.uint32)) if self.shuffle else 0
        self.own.begin(np.random.RandomState([seed, self.rank]))

    def _free(self) -> None:
        self.own._free()

    def _taken(self, start: int, stop: int) -> Index:
        examples = np.full(stop - start, OTHER_RANK, np.intp)
        own = examples[(self.rank - start) % self.size :: self.size]
        first = -(-(start - self.rank) // self.size)  # own examples before these
        own[:] = self.own._taken(first, first + len(own))
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
    windows: Windows,
    processes: Processes,
    *,
    shuffle: bool,
    runs_of: int | None = None,
    n_workers: int = 1,
) -> Order:
    """Return the order of the examples of windows.

    For units with a state, `runs_of` is the number of examples of a mini-batch, which
    has runs of consecutive windows, and `n_workers` that of workers with mini-batches
    of their own.
    """
    n, own = len(windows), windows.min_windows
    if runs_of is None:
        order = Order(n, shuffle=shuffle)
    elif own is None:
        order = RunOrder(n, runs_of, shuffle=shuffle, n_workers=n_workers)
    else:
        n_each = runs_of * n_workers // processes.size  # of this process
        order = RunOrder(n, n_each, shuffle=shuffle)
    return order if own is None else PartOrder(order, own, processes)
