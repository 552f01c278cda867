"""Solvers (_solvers)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.neural.arrays import Array, Rows
from tests.reference.neural.weights import Weights


@dataclass
class Solver:
    """The schedule of the paper: the learning rate after `n_seen` examples.

    Or it falls linearly to 0, from `begun` on over `span` examples.
    """

    learning_rate_init: float
    learning_rate_decay: float
    alpha: float
    begun: float = 0.0
    span: float = np.inf
    n_seen: int = 0

    def rate(self) -> float:
        """Return the current learning rate."""
        left = max(0.0, 1 - (self.n_seen - self.begun) / self.span)
        rate = self.learning_rate_init / (1 + self.learning_rate_decay * self.n_seen)
        return rate * left

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Update visited rows from their gradients, summed over K examples."""
        raise NotImplementedError

    def decayed(self, weights: Weights, by: float) -> None:
        """Apply weight decay to all weights, but not to biases or P."""
        for array in weights.decaying():
            array -= by * array


@dataclass
class SGD(Solver):
    """SGD with summed gradients and decay, so the learning rate is per example."""

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Update from the gradients, summed over K examples, with zeros elsewhere."""
        rate = self.rate()
        self.decayed(weights, rate * self.alpha * K)
        for array, gradient in zip(weights.arrays(), gradients.arrays(), strict=True):
            array += rate * gradient
        self.n_seen += K


@dataclass
class Adam(Solver):
    """Adam of the mean gradient, with decoupled weight decay."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_updates: int = 0
    moments: list[tuple[Array, Array]] = field(default_factory=list)

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Update visited rows from their gradients, summed over K examples."""
        arrays, rate = weights.arrays(), self.rate()
        if not self.moments:
            self.moments = [(np.zeros_like(a), np.zeros_like(a)) for a in arrays]
        self.n_updates += 1
        t = self.n_updates
        step = rate * np.sqrt(1 - self.beta_2**t) / (1 - self.beta_1**t)
        self.decayed(weights, rate * self.alpha)
        for array, summed, (first, second), rows in zip(
            arrays, gradients.arrays(), self.moments,
            met or [slice(None)] * len(arrays), strict=True,
        ):  # fmt: skip
            gradient = summed[rows] / K
            first[rows] += (1 - self.beta_1) * (gradient - first[rows])
            second[rows] += (1 - self.beta_2) * (gradient**2 - second[rows])
            array[rows] += step * first[rows] / (np.sqrt(second[rows]) + self.epsilon)
        self.n_seen += K
