"""How weights follow their gradients (_solvers)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.neural.arrays import Array, Rows
from tests.reference.neural.weights import Weights


@dataclass
class Solver:
    """The paper's schedule: the step after `n_seen` examples.

    Or one that falls in a line to 0, from `begun` on over `span` examples.
    """

    learning_rate_init: float
    learning_rate_decay: float
    alpha: float
    begun: float = 0.0
    span: float = np.inf
    n_seen: int = 0

    def rate(self) -> float:
        """Give the step now."""
        left = max(0.0, 1 - (self.n_seen - self.begun) / self.span)
        rate = self.learning_rate_init / (1 + self.learning_rate_decay * self.n_seen)
        return rate * left

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Follow the gradients, summed over K examples, of rows that they met."""
        raise NotImplementedError

    def decayed(self, weights: Weights, by: float) -> None:
        """Take this share of all weights away: not of biases, nor of P."""
        for array in weights.decaying():
            array -= by * array


@dataclass
class SGD(Solver):
    """Gradients and weight decay are summed, so that the step is one example's."""

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: Rows | None = None
    ) -> None:
        """Follow the gradients, summed over K examples; elsewhere they are zeros."""
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
        """Follow the gradients, summed over K examples, of rows that they met."""
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
