"""LSTM cells: hidden units that reach further back than their context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural.hidden import _lstm
from nplm.models.neural.network.array_types import Activations, Kernel, Shapes, State
from nplm.models.neural.network.hidden import Given, Tanh
from nplm.models.neural.network.parameters import draw_normal

__all__ = ["LSTM", "n_runs"]

# Initial biases of the gates that keep the state, from the first unit to the last.
KEEP_BIASES = (-1.0, 4.0)
# Minimum length of a run: gradients reach at most so many words back, and half of it in
# the mean. Of large mini-batches the runs are longer, and not more.
MIN_RUN, MAX_RUNS = 32, 32


def n_runs(batch_size: int) -> int:
    """Return the number of runs of a mini-batch, all of one length."""
    most = max(1, min(MAX_RUNS, batch_size // MIN_RUN))
    return max(n for n in range(1, most + 1) if batch_size % n == 0)


@dataclass(frozen=True)
class LSTM(Tanh):
    """LSTM cells, which see x and the activations a of all cells after the word before.

    The state c of a cell, and its activation, are::

        c = f * c_before + (1 - f) * z
        a = o * tanh(c)

    with the gates f and o and the new values z, which are sigmoid, sigmoid and tanh of
    the parts of ``d + H x + V a_before``.

    - `n_hidden`: number of cells
    - `n_words`: number of words of a window, over which the state is made in scoring
    """

    n_words: int

    @property
    def n_memory(self) -> int:
        return self.n_words

    @property
    def n_sums(self) -> int:
        """Number of sums d + H x: of f, o and z."""
        return 3 * self.n_hidden

    def shapes(self, n_inputs: int) -> Shapes:
        """Return the shape of V."""
        return {"V": (self.n_sums, self.n_hidden)}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw V, and set d: the cells differ in how long they remember."""
        h = self.n_hidden
        arrays["d"][:h] = np.linspace(*KEEP_BIASES, h)
        draw_normal(arrays["V"], rng, 1 / np.sqrt(h))

    def n_weights(self, n_inputs: int) -> int:
        return self.n_sums * (n_inputs + self.n_hidden)

    def initial_memory(self, n_members: int, n_runs: int, dtype: DTypeLike) -> State:
        """Make the empty a and c after each run, and the row of its last window, -1."""
        n = n_runs + 1  # one is cut in two where the order of an epoch wraps around
        return {
            "memory": np.zeros((n_members, n, 2 * self.n_hidden), dtype),
            "memory_last": np.full((n_members, n), -1, np.intp),
        }

    def check_memory(self, state: State) -> None:
        # c is a mean of values of tanh.
        if not (np.abs(state["memory"]) <= 1.001).all():  # nor NaN
            raise ValueError("memory has NaN, or numbers beyond -1 and 1")

    def run_length(self, batch_size: int) -> int:
        return batch_size // n_runs(batch_size)

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        """Return the kernel: that of texts, or that of windows alone, in scoring."""
        H, d, V = (given.trained[name] for name in ("H", "d", "V"))
        scratch = given.scratch
        if activations.scoring and not given.memory:
            at = activations.positions(given.n_context)
            return _lstm.Windows(
                H, d, V, at, scratch, inputs=given.inputs(at), windows=activations
            )

        def units(activations: Activations) -> Kernel:
            return _lstm.Continuing(
                H, d, V, activations, scratch,
                memory=given.memory["memory"][given.member].view(np.uint8),
                last=given.memory["memory_last"][given.member],
            )  # fmt: skip

        return given.masks.of_hidden(activations, units)
