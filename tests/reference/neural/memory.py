"""The memory of hidden units (_memory)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference import Index, Int32
from tests.reference.neural.arrays import Array, Rounding, as_it_is
from tests.reference.neural.parts import (
    inputs,
    tanh_layer,
    weighted,
    weighted_gradient,
)
from tests.reference.neural.weights import Weights


def sigmoid(v: Array) -> Array:
    return 1 / (1 + np.exp(-v))


def gates(
    F: Array, f: Array, a: Array, rounded: Rounding = as_it_is
) -> tuple[Array, Array, Array]:
    """Return what the units propose to their memory, and its two gates."""
    z, forget, out = np.split(f + weighted(F, a, rounded), 3, axis=1)
    return np.tanh(z), sigmoid(forget), sigmoid(out)


def follows(X: Int32, y: Int32, row: int) -> bool:
    """Return whether a window is that of the row before, one word later."""
    if row == 0 or y[row - 1] != X[row, -1]:
        return False
    return bool((X[row, :-1] == X[row - 1, 1:]).all())


def run_starts(rows: Index) -> list[int]:
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

    def of(self, rows: Index) -> Memory:
        """Return the memory with which the runs of a mini-batch begin."""
        starts = run_starts(rows)
        before: dict[int, Array | None] = {}
        for k, row in enumerate(rows.tolist()):
            if not follows(self.X, self.y, row):
                before[k] = None
            elif k in starts:
                carries = starts.index(k) < self.n_runs
                before[k] = self.left.get(row - 1) if carries else None
        return Memory(rows, before)

    def keep(self, memory: Memory, c: Array) -> None:
        """Keep what the first runs of a mini-batch leave."""
        stops = [*run_starts(memory.rows)[1:], len(c)]
        ends = [stop - 1 for stop in stops[: self.n_runs]]
        self.left = {int(memory.rows[k]): c[k] for k in ends}


@dataclass
class Memory:
    """The examples of a mini-batch, and the memory before those that begin anew."""

    rows: Index
    before: dict[int, Array | None]  # None is an empty memory

    def begin(self, h: int, k: int, c: Array) -> Array:
        """Return the memory before example k; c has that after the ones before."""
        if k not in self.before:
            return c[k - 1]
        before = self.before[k]
        return np.zeros(h) if before is None else before


def remember(
    F: Array, f: Array, a: Array, memory: Memory, rounded: Rounding = as_it_is
) -> tuple[Array, Array]:
    """Return a with what the units remember, and their memory after each example."""
    z, forget, out = gates(F, f, a, rounded)
    c = np.empty_like(a)
    for k in range(len(a)):
        before = memory.begin(a.shape[1], k, c)
        c[k] = forget[k] * before + (1 - forget[k]) * z[k]
    return a + out * c, c


def remember_gradient(
    F: Array,
    f: Array,
    a: Array,
    memory: Memory,
    da: Array,
    rounded: Rounding = as_it_is,
) -> tuple[Array, dict[str, Any]]:
    """Backpropagate the dL/da above the memory to the a below, and to F and f."""
    z, forget, out = gates(F, f, a, rounded)
    _, c = remember(F, f, a, memory, rounded)
    slopes, dc = np.empty((3, *a.shape)), np.zeros(a.shape[1])
    for k in reversed(range(len(a))):
        before = memory.begin(a.shape[1], k, c)
        dc = dc + da[k] * out[k]
        slopes[0, k] = dc * (1 - forget[k]) * (1 - z[k] ** 2)
        slopes[1, k] = dc * (before - z[k]) * forget[k] * (1 - forget[k])
        slopes[2, k] = da[k] * c[k] * out[k] * (1 - out[k])
        dc = np.zeros_like(dc) if k in memory.before else dc * forget[k]
    of_sums = np.hstack(list(slopes))
    below, dF = weighted_gradient(F, a, of_sums, rounded)
    return da + below, {"F": dF, "f": of_sums.sum(axis=0)}


def recall(
    weights: Weights, X: Int32, n_context: int, rounded: Rounding = as_it_is
) -> Array:
    """Return a with what the units remember of each window alone.

    The inputs use `n_context` words.
    """
    assert weights.F is not None and weights.f is not None
    above = np.empty((len(X), len(weights.d)))
    for k, window in enumerate(X):
        contexts = np.lib.stride_tricks.sliding_window_view(window, n_context)
        alike = int(np.argmin(np.append(window == window[0], False)))
        contexts = contexts[max(alike - n_context, 0) :]
        a = tanh_layer(weights.H, weights.d, inputs(weights, contexts), rounded)
        memory = Memory(np.arange(len(a)), {0: None})
        above[k] = remember(weights.F, weights.f, a, memory, rounded)[0][-1]
    return above
