"""A memory of hidden units, which reaches further back than their context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural.hidden import _memory
from nplm.models.neural.network.array_types import Activations, Kernel, Shapes, State
from nplm.models.neural.network.hidden import Given, Tanh
from nplm.models.neural.network.parameters import draw_normal

__all__ = ["Memory", "n_runs"]

# Initial biases of the gates that keep the memory, from the first unit to the last: the
# units at first remember for between 1 and 50 words.
KEEP_BIASES = (-1.0, 4.0)
# Minimum length of a run: gradients reach at most so many words back, and half of it in
# the mean.
MIN_RUN = 32


def n_runs(batch_size: int) -> int:
    """Return the number of runs of a mini-batch, all of one length."""
    most = max(1, batch_size // MIN_RUN)
    return max(n for n in range(1, most + 1) if batch_size % n == 0)


@dataclass(frozen=True)
class Memory(Tanh):
    """Hidden units with a memory, above others whose activations are a.

    The memory c of each unit follows from that of the word before::

        c = k * c_before + (1 - k) * z
        above = a + o * c

    with ``z = tanh(f0 + F0 a)`` and the gates ``k = sigmoid(f1 + F1 a)`` and
    ``o = sigmoid(f2 + F2 a)``. F has the rows of F0, F1 and F2, and f those of f0, f1
    and f2.

    - `n_hidden`: number of hidden units
    - `n_words`: number of words of a window, from which the memory is made in scoring
    """

    n_words: int
    below: Tanh

    @property
    def n_memory(self) -> int:
        """Number of words of a window that the units use."""
        return self.n_words

    def shapes(self, n_inputs: int) -> Shapes:
        """Return the shapes of F and f, and of the arrays of the units below."""
        h = self.n_hidden
        return self.below.shapes(n_inputs) | {"F": (3 * h, h), "f": (3 * h,)}

    def draw(self, arrays: State, rng: np.random.RandomState) -> None:
        """Draw F, and set f: the units differ in how long they remember."""
        h = self.n_hidden
        arrays["f"][h : 2 * h] = np.linspace(*KEEP_BIASES, h)
        draw_normal(arrays["F"], rng, 1 / np.sqrt(h))
        self.below.draw(arrays, rng)

    def n_weights(self, n_inputs: int) -> int:
        """Return the number of weights between x and a."""
        return self.below.n_weights(n_inputs) + 3 * self.n_hidden**2

    def initial_memory(self, n_members: int, n_runs: int, dtype: DTypeLike) -> State:
        """Make the empty memory after each run, and the row of its last window, -1."""
        n = n_runs + 1  # one is cut in two where the order of an epoch wraps around
        return {
            "memory": np.zeros((n_members, n, self.n_hidden), dtype),
            "memory_last": np.full((n_members, n), -1, np.intp),
        }

    def check_memory(self, state: State) -> None:
        """Raise ValueError unless training can go on from this state."""
        # c is a mean of values of tanh.
        if not (np.abs(state["memory"]) <= 1.001).all():  # nor NaN
            raise ValueError("memory has NaN, or numbers beyond -1 and 1")

    def run_length(self, batch_size: int) -> int:
        """Return the number of consecutive examples that a thread takes together."""
        return batch_size // n_runs(batch_size)

    def kernel(self, activations: Activations, given: Given) -> Kernel:
        """Return the kernel: that of training, or that of scoring."""
        F, f, scratch = given.trained["F"], given.trained["f"], given.scratch
        if activations.scoring:
            at = activations.positions(self.n_words, given.n_context)
            gates = _memory.Gates(F, f, at, scratch)
            below = self.below.kernel(at, given)
            inputs = given.inputs(at)
            return _memory.Recalling(inputs, below, gates, at, activations, scratch)
        inner = activations.apart(self.n_hidden)
        below = self.below.kernel(inner, given)
        return _memory.Remembering(
            below, _memory.Gates(F, f, inner, scratch), inner, activations, scratch,
            given.memory["memory"][given.member].view(np.uint8),
            given.memory["memory_last"][given.member],
        )  # fmt: skip
