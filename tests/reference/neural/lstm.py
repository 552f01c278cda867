"""LSTM cells (_lstm)."""

from dataclasses import dataclass, field

import numpy as np

from tests.reference import Array, Index, Int32
from tests.reference.neural.parts import inputs, weighted, weighted_gradient
from tests.reference.neural.rounding import as_it_is


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def cell(sums, c):
    """Return the a and c of cells from their sums and the c before, and the gates."""
    f, o, z = np.split(sums, 3, axis=-1)
    f, o, z = sigmoid(f), sigmoid(o), np.tanh(z)
    c = f * c + (1 - f) * z
    return o * np.tanh(c), c, np.stack([f, o, z])


def follows(X, y, row):
    """Return whether a window is that of the row before, one word later."""
    if row == 0 or y[row - 1] != X[row, -1]:
        return False
    return bool((X[row, :-1] == X[row - 1, 1:]).all())


def run_starts(rows):
    """Return the examples of a mini-batch that do not have the row after the last."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return [0, *breaks.tolist()]


@dataclass
class Carried:
    """The memory that the runs of a mini-batch leave to the next one.

    A run is a number of examples that are consecutive rows of X.

    Parameters
    ----------
    X, y : ndarray
        All windows.
    n_runs : int
        The number of runs that leave it, and that begin with it.
    """

    X: Int32
    y: Int32
    n_runs: int
    left: dict[int, Array] = field(default_factory=dict)  # by the last row of the run

    def of(self, rows):
        """Return the memory with which the runs of a mini-batch begin."""
        starts = run_starts(rows)
        before = {}
        for k, row in enumerate(rows.tolist()):
            if not follows(self.X, self.y, row):
                before[k] = None
            elif k in starts:
                carries = starts.index(k) < self.n_runs
                before[k] = self.left.get(row - 1) if carries else None
        return Memory(rows, before)

    def keep(self, memory, a, c):
        """Keep what the first runs of a mini-batch leave."""
        stops = [*run_starts(memory.rows)[1:], len(c)]
        ends = [stop - 1 for stop in stops[: self.n_runs]]
        self.left = {int(memory.rows[k]): np.stack([a[k], c[k]]) for k in ends}


@dataclass
class Memory:
    """The examples of a mini-batch, and the a and c before those that begin anew."""

    rows: Index
    before: dict[int, Array | None]  # None is an empty state

    def begin(self, k, h, which, after):
        """Return the a or c before example k; `after` has those of the ones before."""
        if k not in self.before:
            return after[k - 1]
        before = self.before[k]
        return np.zeros(h) if before is None else before[which]


def cell_sums(weights, x, rounded=as_it_is):
    """Return the sums d + H x of cells."""
    return weights.d + weighted(weights.H, x, rounded)


def lstm(V, sums, memory, rounded=as_it_is):
    """Return a and c after each example, the a and c before it, and its gates.

    `sums` are d + H x.
    """
    h, K = V.shape[1], len(sums)
    a, c, a_before, c_before = np.empty((4, K, h))
    gates = np.empty((3, K, h))
    for k in range(K):
        a_before[k] = memory.begin(k, h, 0, a)
        c_before[k] = memory.begin(k, h, 1, c)
        a[k], c[k], gates[:, k] = cell(
            sums[k] + weighted(V, a_before[k], rounded), c_before[k]
        )
    return a, c, a_before, c_before, gates


def lstm_gradient(V, sums, memory, da, rounded=as_it_is):
    """Backpropagate dL/da to the sums, and to V."""
    _, c, a_before, c_before, (f, o, z) = lstm(V, sums, memory, rounded)
    slopes, (more, dc) = np.empty_like(sums), np.zeros((2, V.shape[1]))
    for k in reversed(range(len(da))):
        slope, t = da[k] + more, np.tanh(c[k])
        dc = dc + slope * o[k] * (1 - t**2)
        slopes[k] = np.hstack([
            dc * (c_before[k] - z[k]) * f[k] * (1 - f[k]),
            slope * t * o[k] * (1 - o[k]),
            dc * (1 - f[k]) * (1 - z[k] ** 2),
        ])  # fmt: skip
        begins = k in memory.before
        dc = np.zeros_like(dc) if begins else dc * f[k]
        more = np.zeros_like(more) if begins else rounded(slopes[k]) @ rounded(V)
    return slopes, weighted_gradient(V, a_before, slopes, rounded)[1]


def lstm_of_windows(weights, X, n_context, rounded=as_it_is):
    """Return the a of each window alone.

    The inputs use `n_context` words.
    """
    every = np.empty((len(X), weights.n_hidden))
    for k, window in enumerate(X):
        contexts = np.lib.stride_tricks.sliding_window_view(window, n_context)
        alike = int(np.argmin(np.append(window == window[0], False)))
        contexts = contexts[max(alike - n_context, 0) :]
        sums = cell_sums(weights, inputs(weights, contexts), rounded)
        memory = Memory(np.arange(len(sums)), {0: None})
        every[k] = lstm(weights.V, sums, memory, rounded)[0][-1]
    return every
