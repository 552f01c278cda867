"""The network in plain NumPy: the same names as the kernels', and easy to read.

This is the specification that the compiled kernels are tested against: the parts
(`_inputs`, `_hidden`, `_softmax`, `_solvers`) and what puts them together
(`_network`). `_products`, `_loops` and `_team` hold how it is done fast: what they
compute is here within these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Rounding = Callable[[Array], Array]


@dataclass
class Softmax:
    """What the rows of E are for: words, each its own."""

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words, from those of all rows."""
        return log_softmax(logits)

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits."""
        g = -np.exp(log_softmax(logits))
        g[np.arange(len(y)), y] += 1
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.bool_]:
        """Which rows an update of these examples visits."""
        return np.full(n_rows, True)


@dataclass
class Classes(Softmax):
    """Rows are classes, then the words of each (section 5.2).

    P(w) = P(class of w) P(w | class of w).
    """

    labels: NDArray[np.int32]

    def blocks(self) -> list[tuple[NDArray[np.intp], slice]]:
        """Words of each class, and their rows."""
        n_classes = self.labels.max() + 1
        words = [np.flatnonzero(self.labels == c) for c in range(n_classes)]
        starts = n_classes + np.cumsum([0, *map(len, words)])
        return [(w, slice(s, s + len(w))) for w, s in zip(words, starts, strict=False)]

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words."""
        blocks = self.blocks()
        log_class = log_softmax(logits[:, : len(blocks)])
        log_p = np.empty((len(logits), len(self.labels)))
        for c, (words, rows) in enumerate(blocks):
            log_p[:, words] = log_class[:, [c]] + log_softmax(logits[:, rows])
        return log_p

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits: of the classes, and within that of y."""
        blocks, g = self.blocks(), np.zeros_like(logits)
        n_classes, flat = len(blocks), Softmax()
        g[:, :n_classes] = flat.slopes(logits[:, :n_classes], self.labels[y])
        for k, word in enumerate(y):
            words, rows = blocks[self.labels[word]]
            own = np.flatnonzero(words == word)
            g[k, rows] = flat.slopes(logits[[k], rows], own)[0]
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.bool_]:
        """Which rows: of all classes, and of the words in those of y."""
        blocks, met = self.blocks(), np.full(n_rows, False)
        met[: len(blocks)] = True
        for label in self.labels[y]:
            met[blocks[label][1]] = True
        return met


@dataclass
class Tree(Softmax):
    """Rows are the inner nodes of a tree, each a choice between its two children.

    A child is a word, or n_words plus a row; the first is chosen with the probability
    sigmoid(logit), the second with sigmoid(-logit) (Morin and Bengio, 2005).
    """

    children: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Note the rows and signs of the choices that lead to each word or node."""
        n_words = len(self.children) + 1
        self.paths: list[list[tuple[int, int]]] = [[] for _ in range(2 * n_words - 1)]
        for row, pair in enumerate(self.children):  # parents come first
            for child, sign in zip(pair, (1, -1), strict=True):
                self.paths[child] = [*self.paths[n_words + row], (row, sign)]

    def log_p(self, logits: Array) -> Array:
        """Logarithms of the probabilities of all words."""
        log_p = np.zeros((len(logits), len(self.children) + 1))
        for word in range(log_p.shape[1]):
            for row, sign in self.paths[word]:
                log_p[:, word] -= np.logaddexp(0, -sign * logits[:, row])
        return log_p

    def slopes(self, logits: Array, y: NDArray[np.integer]) -> Array:
        """Give d log P(y) / d logits: 0 but for the choices that lead to y."""
        g = np.zeros_like(logits)
        for k, word in enumerate(y):
            for row, sign in self.paths[word]:
                g[k, row] = sign / (1 + np.exp(sign * logits[k, row]))
        return g

    def met(self, y: NDArray[np.int32], n_rows: int) -> NDArray[np.bool_]:
        """Which rows: those above a word of y."""
        met = np.full(n_rows, False)
        for word in y:
            met[[row for row, _ in self.paths[word]]] = True
        return met


class Weights(NamedTuple):
    """Parameters, or their gradients: E = [U | W | b], W without direct connections."""

    C: Array
    H: Array
    d: Array
    E: Array
    P: Array | None = None  # weights of distant words by position
    n_window: int = 0  # words of the window, n - 1
    output: Softmax = Softmax()

    def arrays(self) -> list[Array]:
        """Give those that are there."""
        every = (self.C, self.H, self.d, self.E, self.P)
        return [array for array in every if array is not None]


def as_it_is(values: Array) -> Array:
    """Give the values: what the products of full precision multiply."""
    return values


def bfloat16(values: Array) -> Array:
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)


# -- inputs (_inputs) ------------------------------------------------------------


def concatenation(C: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, nearest first; X has the nearest last."""
    nearest = X[:, ::-1][:, :n_window]
    return C[nearest].reshape(len(X), n_window * C.shape[1])


def distant_averages(C: Array, P: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, then weighted sums of those of more words."""
    words = X[:, ::-1][:, : P.shape[1]]
    averages = np.einsum("ji,kim->kjm", P, C[words])
    return np.hstack([concatenation(C, X, n_window), averages.reshape(len(X), -1)])


def inputs(weights: Weights, X: NDArray[np.int32]) -> Array:
    """Give x, by whichever kind the weights are of."""
    if weights.P is None:
        return concatenation(weights.C, X, weights.n_window)
    return distant_averages(weights.C, weights.P, X, weights.n_window)


def inputs_gradient(
    weights: Weights, X: NDArray[np.int32], dx: Array
) -> tuple[Array, Array | None]:
    """Carry dL/dx to C and P."""
    C, P, n_window = weights.C, weights.P, weights.n_window
    K, m = len(X), C.shape[1]
    dC, words = np.zeros_like(C), X[:, ::-1]
    np.add.at(dC, words[:, :n_window], dx[:, : n_window * m].reshape(K, n_window, m))
    if P is None:
        return dC, None
    n_averages, n_distant = P.shape
    slopes = dx[:, n_window * m :].reshape(K, n_averages, m)
    np.add.at(dC, words[:, :n_distant], np.einsum("ji,kjm->kim", P, slopes))
    return dC, np.einsum("kjm,kim->ji", slopes, C[words[:, :n_distant]])


# -- hidden units (_hidden) --------------------------------------------------------


def tanh_layer(H: Array, d: Array, x: Array) -> Array:
    """Activations a of the hidden units."""
    return np.tanh(d + x @ H.T)


# -- output units (_softmax) -------------------------------------------------------


def softmax(
    E: Array, a: Array, x: Array, rounded: Rounding = as_it_is
) -> tuple[Array, Array]:
    """Give z = [a | x | 1] and the logits y = E z; what is multiplied is `rounded`."""
    direct = E.shape[1] > a.shape[1] + 1
    one = np.ones((len(a), 1))
    z = np.hstack([a, x, one] if direct else [a, one])
    return z, rounded(z) @ rounded(E).T


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


# -- solvers (_solvers) --------------------------------------------------------------


@dataclass
class Solver:
    """The paper's schedule: the step after `n_seen` examples."""

    learning_rate_init: float
    learning_rate_decay: float
    alpha: float
    n_seen: int = 0

    def rate(self) -> float:
        """Give the step now."""
        return self.learning_rate_init / (1 + self.learning_rate_decay * self.n_seen)

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: NDArray[np.bool_]
    ) -> None:
        """Follow the gradients, summed over K examples that visit some rows of E."""
        raise NotImplementedError

    def decayed(self, weights: Weights, by: float) -> None:
        """Take this share of all weights away: not of biases, nor of P."""
        for array in (weights.C, weights.H, weights.E[:, :-1]):
            array -= by * array


@dataclass
class SGD(Solver):
    """Gradients and weight decay are summed, so that the step is one example's."""

    def update(
        self, weights: Weights, gradients: Weights, K: int, met: NDArray[np.bool_]
    ) -> None:
        """Follow the gradients, summed over K examples that visit some rows of E."""
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
        self, weights: Weights, gradients: Weights, K: int, met: NDArray[np.bool_]
    ) -> None:
        """Follow the gradients; of rows that do not come, moments and values stay."""
        arrays, rate = weights.arrays(), self.rate()
        if not self.moments:
            self.moments = [(np.zeros_like(a), np.zeros_like(a)) for a in arrays]
        self.n_updates += 1
        t = self.n_updates
        step = rate * np.sqrt(1 - self.beta_2**t) / (1 - self.beta_1**t)
        self.decayed(weights, rate * self.alpha)
        for array, summed, (first, second) in zip(
            arrays, gradients.arrays(), self.moments, strict=True
        ):
            rows = met if array is weights.E else np.full(len(array), True)
            gradient = summed[rows] / K
            first[rows] += (1 - self.beta_1) * (gradient - first[rows])
            second[rows] += (1 - self.beta_2) * (gradient**2 - second[rows])
            array[rows] += step * first[rows] / (np.sqrt(second[rows]) + self.epsilon)
        self.n_seen += K


# -- put together (_network) ---------------------------------------------------------


def forward(
    weights: Weights, X: NDArray[np.int32], rounded: Rounding = as_it_is
) -> tuple[Array, Array, Array, Array]:
    """Features x, hidden activations a, z and logits: equation (1) for K examples."""
    x = inputs(weights, X)
    a = tanh_layer(weights.H, weights.d, x)
    return x, a, *softmax(weights.E, a, x, rounded)


def gradients(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    rounded: Rounding = as_it_is,
) -> tuple[float, Weights]:
    """Log-likelihood of the examples, and its gradient."""
    K, h = len(X), len(weights.H)
    x, a, z, logits = forward(weights, X, rounded)
    g = rounded(weights.output.slopes(logits, y))
    dz = g @ rounded(weights.E)
    do = (1 - a**2) * dz[:, :h]
    dx = do @ weights.H
    if weights.E.shape[1] > h + 1:
        dx += dz[:, h:-1]
    dC, dP = inputs_gradient(weights, X, dx)
    total = float(weights.output.log_p(logits)[np.arange(K), y].sum())
    dE = g.T @ rounded(z)
    return total, Weights(dC, do.T @ x, do.sum(axis=0), dE, dP, *weights[5:])


def train(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    index: NDArray[np.intp],
    batch_size: int,
    solver: Solver,
    rounded: Rounding = as_it_is,
) -> float:
    """Change the weights, mini-batch by mini-batch; returns the summed loss."""
    loss = 0.0
    for start in range(0, len(index), batch_size):
        rows = index[start : start + batch_size]
        total, slopes = gradients(weights, X[rows], y[rows], rounded)
        met = weights.output.met(y[rows], len(weights.E))
        solver.update(weights, slopes, len(rows), met)
        loss -= total
    return loss


def score(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    first: int = 0,
    rounded: Rounding = as_it_is,
) -> Array:
    """Maximum, sum of exponentials and target's logit of the words of E's rows."""
    logits = forward(weights, X, rounded)[-1]
    high = logits.max(axis=1)
    total = np.exp(logits - high[:, None]).sum(axis=1)
    target = np.full(len(y), -np.inf)
    here = np.flatnonzero((first <= y) & (y < first + len(weights.E)))
    target[here] = logits[here, y[here] - first]
    return np.stack([high, total, target])


def log_prob(
    weights: Weights,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    rounded: Rounding = as_it_is,
) -> Array:
    """Natural-log probability of each y after its context."""
    log_p = probabilities(weights, X, logarithm=True, rounded=rounded)
    return log_p[np.arange(len(y)), y]


def probabilities(
    weights: Weights,
    X: NDArray[np.int32],
    *,
    logarithm: bool,
    rounded: Rounding = as_it_is,
) -> Array:
    """Probabilities of all words after each context, or their natural logarithms."""
    log_p = weights.output.log_p(forward(weights, X, rounded)[-1])
    return log_p if logarithm else np.exp(log_p)
