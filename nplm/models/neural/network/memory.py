"""A memory of hidden units, which reaches further back than their window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural.hidden import _memory
from nplm.models.neural.network.hidden import Given, Tanh
from nplm.models.neural.network.parameters import random_normal

__all__ = ["Memory"]

# Initial biases of the gates that forget, from the first unit to the last: units at
# first remember for between 1 and 50 words.
FORGET_BIASES = (-1.0, 4.0)


@dataclass(frozen=True)
class Memory(Tanh):
    """Add to hidden units a what they remember.

    The memory c of each unit follows from that of the word before::

        c = f * c_before + (1 - f) * z
        above = a + o * c

    with ``z = tanh(f0 + F0 a)`` and the gates ``f = sigmoid(f1 + F1 a)`` and
    ``o = sigmoid(f2 + F2 a)``, of which F and f are the rows.

    Parameters
    ----------
    n_hidden : int
        Number of hidden units.
    n_words : int
        Number of words of a window, from which the memory is made in scoring.
    below : Tanh
        The hidden units.
    """

    n_words: int
    below: Tanh

    @property
    def n_memory(self) -> int:
        """Number of words of a window that the units use."""
        return self.n_words

    def initial_arrays(
        self, n_inputs: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Draw F, and make f: the units differ in how long they remember."""
        h = self.n_hidden
        f = np.zeros(3 * h, dtype)
        f[h : 2 * h] = np.linspace(*FORGET_BIASES, h)
        F = random_normal(rng, 1 / np.sqrt(h), (3 * h, h), dtype)
        return self.below.initial_arrays(n_inputs, rng, dtype) | {"F": F, "f": f}

    def n_weights(self, n_inputs: int) -> int:
        """Return the number of weights between x and a."""
        return self.below.n_weights(n_inputs) + 3 * self.n_hidden**2

    def initial_memory(
        self, n_members: int, n_runs: int, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Make the empty memory of each run, and the number of its last example."""
        n = n_runs + 1  # one is in two parts where the order of an epoch turns over
        return {
            "memory": np.zeros((n_members, n, self.n_hidden), dtype),
            "memory_last": np.full((n_members, n), -1, np.intp),
        }

    def check_memory(self, state: dict[str, NDArray[Any]]) -> None:
        """Raise ValueError unless training can go on from this state."""
        # c is a mean of values of tanh.
        if not (np.abs(state["memory"]) <= 1.001).all():
            raise ValueError("memory has numbers beyond 1, or NaN")

    def kernel(self, activations: Any, given: Given) -> Any:
        """Return the kernel: that of training, or that of scoring."""
        F, f, scratch = given.trained["F"], given.trained["f"], given.scratch
        if activations.scoring:
            at = activations.positions(self.n_words, given.n_context)
            gates = _memory.Gates(F, f, at, scratch)
            below = self.below.kernel(at, given)
            return _memory.Recalling(given.inputs(at), below, gates, at, activations)
        inner = activations.apart(self.n_hidden)
        below = self.below.kernel(inner, given)
        return _memory.Remembering(
            below, _memory.Gates(F, f, inner, scratch), inner, activations, scratch,
            given.memory["memory"][given.member].view(np.uint8),
            given.memory["memory_last"][given.member],
        )  # fmt: skip
