"""Solvers (_solvers)."""

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from tests.reference import Array


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

    def rate(self):
        """Return the current learning rate."""
        left = max(0.0, 1 - (self.n_seen - self.begun) / self.span)
        rate = self.learning_rate_init / (1 + self.learning_rate_decay * self.n_seen)
        return rate * left

    def up_to_date(self, weights):
        """Return the weights with all rows of C up to date."""
        return weights

    def visit(self, weights, words):
        """Bring rows of C up to date."""

    def update(self, weights, gradients, K, met=None):
        """Update visited rows from their gradients, summed over K examples."""
        raise NotImplementedError

    def decayed(self, weights, by):
        """Apply weight decay to all weights, but not to biases or P."""
        for array in weights.decaying():
            array -= by * array


@dataclass
class SGD(Solver):
    """SGD with summed gradients and decay, so the learning rate is per example."""

    def update(self, weights, gradients, K, met=None):
        """Update from the gradients, summed over K examples, with zeros elsewhere."""
        rate = self.rate()
        self.decayed(weights, rate * self.alpha * K)
        for array, gradient in zip(weights.arrays(), gradients.arrays(), strict=True):
            array += rate * gradient
        self.n_seen += K


@dataclass
class Adam(Solver):
    """Adam of the mean gradient, with decoupled weight decay.

    The moments of rows without gradients do not change, except those of C: a row of C
    moves on by its moments when it is visited, over all updates since, in closed form.
    """

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_updates: int = 0
    moments: list[tuple[Array, Array]] = field(default_factory=list)
    paused: Array | None = None  # the updates that the moments of each row of C include
    rates: Array | None = None  # the rate of its last update

    def visit(self, weights, words):
        """Move rows of C on by the updates since their last gradient."""
        if not self.visits_C(weights):
            return
        if self.paused is None:
            self.paused = np.zeros(len(weights.C))
            self.rates = np.zeros(len(weights.C))
        if not self.moments:
            return
        rows = np.unique(np.arange(len(weights.C))[words])
        first, second = self.moments[0]
        n = (self.n_updates - self.paused[rows])[:, None]
        b = self.beta_1
        rate = self.rates[rows, None] * b * (1 - b**n) / (1 - b)
        weights.C[rows] += (
            rate * first[rows] / (np.sqrt(second[rows]) + self.epsilon)
        ).astype(weights.C.dtype)
        first[rows] *= b**n
        second[rows] *= self.beta_2**n
        self.paused[rows] = self.n_updates

    def up_to_date(self, weights):
        """Return the weights with all rows of C up to date."""
        if not self.visits_C(weights):
            return weights
        later, made = deepcopy(self), weights._replace(C=weights.C.copy())
        later.visit(made, slice(None))
        return made

    def visits_C(self, weights):
        """Return whether an update visits few rows of C, and C has no parts."""
        return not (weights.C is None or weights.fixed or weights.parts is not None)

    def update(self, weights, gradients, K, met=None):
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
            if array is weights.C and self.paused is not None:
                self.paused[rows], self.rates[rows] = t, step
        self.n_seen += K
