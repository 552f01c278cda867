"""Training and held-out windows of a fit, and the order of the examples of epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from nplm.base.array_types import AnyArray, Counts, Floats, Ids, Index
from nplm.base.blocks import Texts, blocks
from nplm.base.checks import count_ids
from nplm.base.exceptions import parameter_error
from nplm.models.neural.architecture import Architecture
from nplm.models.neural.network.hidden import n_runs
from nplm.models.neural.recipe import Recipe
from nplm.models.training.parallel.processes import Processes
from nplm.text.embeddings import neighbour_counts

Weights = Floats

# Minimum number of windows with which early_stopping="auto" holds some out.
MIN_WINDOWS_TO_SPLIT = 100
# Windows that are taken at once where copies of all would take memory.
BLOCK_PAIRS = 1 << 20
# Words on either side of a word from which its first features are made.
N_NEIGHBOURS = 2
# Stands for an example of another process, in the examples of all.
OTHER_RANK = -1


@dataclass(frozen=True, eq=False)
class Windows:
    """Checked contexts X and next words y of a fit."""

    X: Ids
    y: Ids
    held_out: Windows | None = None
    min_windows: int | None = None  # smallest number of a process, if each has its own
    rows: Ids | Index | None = None  # those of X and y that are windows; None for all
    are_texts: bool = False  # whether consecutive rows follow each other in a text
    weights: Floats | None = None  # in (0, 1]; None if all are 1

    @classmethod
    def of_texts(cls, texts: Texts, nearest: Callable[[Ids], Ids]) -> Self:
        """Return the windows of texts: views of the columns that `nearest` returns."""
        rows, weights = None, texts.weights
        if len(texts.first) > 1:
            rows = np.empty(len(texts), np.int32)
            for part in blocks(len(texts), BLOCK_PAIRS):
                rows[part] = texts.rows(part)
        if weights is not None:
            weights = np.repeat(weights, texts.lengths)
        return cls(
            nearest(texts.X), texts.y, rows=rows, are_texts=True, weights=weights
        )

    @property
    def _rows(self) -> Ids | Index | slice:
        return slice(None) if self.rows is None else self.rows

    def __len__(self) -> int:
        return len(self.y if self.rows is None else self.rows)

    def index(self, examples: Index) -> Index:
        """Return the rows of examples; those below 0 have none and stay."""
        return rows_of_examples(self.rows, examples)

    def part(self, part: slice) -> Windows:
        """Return some windows, without held-out ones."""
        weights = None if self.weights is None else self.weights[part]
        some = replace(self, weights=weights, held_out=None)
        if self.rows is not None:
            return replace(some, rows=self.rows[part])
        return replace(some, X=self.X[part], y=self.y[part])

    def arrays(self, suffix: str = "") -> dict[str, AnyArray]:
        """Return the arrays of the windows by name."""
        some = {f"rows{suffix}": self.rows, f"weights{suffix}": self.weights}
        every = {f"X{suffix}": self.X, f"y{suffix}": self.y}
        return every | {name: a for name, a in some.items() if a is not None}

    def whole(self) -> tuple[Ids, Ids]:
        """Return the contexts and the next words of the windows alone."""
        return self.X[self._rows], self.y[self._rows]

    @property
    def n_visits(self) -> int:
        """Number of examples of an epoch: the sum of the weights."""
        if self.weights is None:
            return len(self)
        return max(1, round(float(self.weights.sum())))

    def n_examples(self, n_processes: int) -> int:
        """Return the number of examples of an epoch, of all processes."""
        if self.min_windows is None:
            return self.n_visits
        return self.min_windows * n_processes

    def next_words(self) -> Ids:
        """Return the next words of the windows."""
        return self.y[self._rows]

    def check_next_words(self, architecture: Architecture) -> None:
        """Raise ValueError if next words are not outcomes of an architecture."""
        architecture.check_next_words(self.next_words(), "y")
        if self.held_out is not None:
            architecture.check_next_words(self.held_out.next_words(), "y_val")

    def counts(self, n_words: int, processes: Processes) -> Counts:
        """Count the next words, of all processes."""
        counts = count_ids(self.next_words(), n_words, self.weights)
        if self.min_windows is not None:
            processes.sum(counts)
        return counts

    def neighbours(self, n_words: int, processes: Processes) -> csr_array | None:
        """Count the neighbours of words, of all processes; in the first process."""
        n = N_NEIGHBOURS if self.are_texts else min(N_NEIGHBOURS, self.X.shape[1])
        pairs = chain.from_iterable(map(self._neighbours, range(1, n + 1)))
        if self.min_windows is not None:
            return processes.total(neighbour_counts(pairs, n_words))
        return neighbour_counts(pairs, n_words) if processes.rank == 0 else None

    def _neighbours(self, distance: int) -> Iterator[tuple[Ids, Ids, Weights | None]]:
        """Yield next words, the words at a distance before them, and weights."""
        weights, in_context = self.weights, distance <= self.X.shape[1]
        for part in blocks(len(self) - distance * (not in_context), BLOCK_PAIRS):
            after = slice(part.start + distance, part.stop + distance)
            some = part if in_context else after
            of_some = None if weights is None else weights[some]
            if in_context:
                rows = part if self.rows is None else self.rows[part]
                yield self.y[rows], self.X[rows, -distance], of_some
            elif self.rows is None:
                yield self.y[after], self.y[part], of_some
            else:
                later, earlier = self.rows[after], self.rows[part]
                together = later - earlier == distance  # of one text
                of_some = None if of_some is None else of_some[together]
                yield self.y[later[together]], self.y[earlier[together]], of_some

    def split(self, recipe: Recipe) -> Windows:
        """Hold out the last windows, if the recipe requires it."""
        n_windows = self.n_visits
        if self.held_out is not None or not recipe.early_stopping:
            return self
        if recipe.early_stopping == "auto" and n_windows < MIN_WINDOWS_TO_SPLIT:
            return self
        n_val = max(1, round(recipe.validation_fraction * n_windows))
        if n_val >= n_windows:
            raise parameter_error(
                "{early_stopping} holds out {0} of {1} windows, which leaves none for "
                "training; give more windows, a smaller {validation_fraction}, or "
                "{X_val:X_val and y_val}.", n_val, n_windows,
                early_stopping=recipe.early_stopping,
            )  # fmt: skip
        last = n_windows - n_val  # of training
        if self.weights is not None:
            last = int(np.searchsorted(np.cumsum(self.weights), last - 0.5)) + 1
            last = min(last, len(self) - 1)
        held_out = self.part(slice(last, None))
        return replace(self.part(slice(last)), held_out=held_out)


# -- the order of the examples -------------------------------------------------------


class Order:
    """Order of the examples of an epoch, random with `shuffle`, in every process."""

    # Whether a mini-batch has runs of windows that do not follow each other.
    has_runs = False

    # Rows of the windows, if not all; set by `order_of`.
    window_rows: Ids | Index | None = None

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

    def rows(self, start: int, stop: int) -> Index:
        """Return the rows of X and y of these examples of the epoch."""
        return rows_of_examples(self.window_rows, self.examples(start, stop))

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

    The text has a part for each run of a mini-batch (of each worker), with `shuffle`
    cut at another window in each epoch. A mini-batch has the next examples of each
    part.
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


class WeightedOrder(Order):
    """Order of an epoch that visits windows as often as their weights say, on average.

    Of windows in a row with a weight below 1, an epoch visits that share, one after
    another from a random one on. The shares round together, by one random number
    (systematic sampling), so that every epoch has as many examples.
    """

    def __init__(self, order: Order, windows: Windows, weights: Weights) -> None:
        super().__init__(order.n_windows, shuffle=order.shuffle)
        self.order, self.has_runs = order, order.has_runs
        n = len(windows)
        is_next = np.ones(n, np.bool_)
        if windows.rows is not None:
            is_next[1:] = np.diff(windows.rows) == 1
        is_next[1:] &= np.diff(weights) == 0
        is_next[:1] = False
        first = np.flatnonzero(~is_next)
        is_small = max(n, self.n_windows) < 2**30
        self._dtype: DTypeLike = np.int32 if is_small else np.int64
        self._first, self._length = first, np.diff(first, append=n)
        self._is_part = weights[first] < 1
        sums = np.cumsum((weights[first] * self._length)[self._is_part])
        self._n_parts = self.n_windows - int(self._length[~self._is_part].sum())
        self._ends = sums * (self._n_parts / sums[-1])

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw the windows of an epoch, and their order."""
        numbers, place = self._length.copy(), np.zeros_like(self._length)
        ends = np.floor(self._ends + rng.random_sample())
        ends[-1] = self._n_parts
        numbers[self._is_part] = np.diff(np.minimum(ends, self._n_parts), prepend=0)
        place[self._is_part] = rng.randint(self._length[self._is_part])

        def of_windows(values: Index) -> Index:
            return np.repeat(values.astype(self._dtype), numbers)

        begun = of_windows(np.cumsum(numbers) - numbers - place)
        at = np.arange(self.n_windows).astype(self._dtype) - begun
        self._visited = of_windows(self._first) + at % of_windows(self._length)
        self.order.begin(rng)

    def _free(self) -> None:
        del self._visited
        self.order._free()

    def _taken(self, start: int, stop: int) -> Index:
        return self._visited[self.order._taken(start, stop)].astype(np.intp)


class PartOrder(Order):
    """Order of the examples of an epoch, to which each process adds as many, in turns.

    Example i is one of process ``i % size``. A process with more than `min_windows`
    leaves out the last ones of its `order`.
    """

    def __init__(self, order: Order, min_windows: int, processes: Processes) -> None:
        super().__init__(order.n_windows, shuffle=order.shuffle)
        self.order, self.min_windows = order, min_windows
        self.rank, self.size = processes.rank, processes.size

    @property
    def n_examples(self) -> int:
        return self.min_windows * self.size

    def begin(self, rng: np.random.RandomState) -> None:
        """Draw an order; `rng` has one state in all processes, before and after."""
        seed = int(rng.randint(2**32, dtype=np.uint32)) if self.shuffle else 0
        self.order.begin(np.random.RandomState([seed, self.rank]))

    def _free(self) -> None:
        self.order._free()

    def _taken(self, start: int, stop: int) -> Index:
        examples = np.full(stop - start, OTHER_RANK, np.intp)
        mine = examples[(self.rank - start) % self.size :: self.size]
        first = -(-(start - self.rank) // self.size)  # of this process's examples
        mine[:] = self.order._taken(first, first + len(mine))
        return examples


def rows_of_examples(rows: Ids | Index | None, examples: Index) -> Index:
    """Return the rows of examples; those below 0 have none and stay."""
    if rows is None:
        return examples
    return np.where(examples < 0, examples, rows[examples])


def in_turns(mine: Index, processes: Processes) -> Index:
    """Return the examples of all processes in turns; raise unless each has as many."""
    processes.check_same({"the number of examples": str(len(mine))})
    examples = np.full(len(mine) * processes.size, OTHER_RANK, np.intp)
    examples[processes.rank :: processes.size] = mine
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

    For units with a state, `runs_of` is the number of examples of a mini-batch.
    """
    n, min_windows = windows.n_visits, windows.min_windows
    if runs_of is None:
        order = Order(n, shuffle=shuffle)
    elif min_windows is None:
        order = RunOrder(n, runs_of, shuffle=shuffle, n_workers=n_workers)
    else:
        n_each = runs_of * n_workers // processes.size  # of this process
        order = RunOrder(n, n_each, shuffle=shuffle)
    if windows.weights is not None and (windows.weights < 1).any():
        order = WeightedOrder(order, windows, windows.weights)
    if min_windows is not None:
        order = PartOrder(order, min_windows, processes)
    order.window_rows = windows.rows
    return order
