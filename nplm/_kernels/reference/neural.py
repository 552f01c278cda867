"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification that the compiled kernels are tested against.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Rounding = Callable[[Array], Array]

# -- the network (_hidden, _products, _output, _network) -------------------------


def as_it_is(values: Array) -> Array:
    """Give the values: what the products of full precision multiply."""
    return values


def bfloat16(values: Array) -> Array:
    """Round to the nearest bfloat16, to the even one of two."""
    bits = values.astype(np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(values.dtype)


def forward(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    rounded: Rounding = as_it_is,
) -> tuple[Array, Array, Array, Array]:
    """Features x, hidden activations a, z = [a | x | 1] and logits y = E z.

    Equation (1) for K examples; X has the nearest word in its last column, x
    has its features first. What the output units multiply is `rounded`.
    """
    K = len(X)
    x = C[X[:, ::-1]].reshape(K, X.shape[1] * C.shape[1])
    a = np.tanh(d + x @ H.T)
    direct = E.shape[1] > len(H) + 1
    z = np.hstack([a, x, np.ones((K, 1))] if direct else [a, np.ones((K, 1))])
    return x, a, z, rounded(z) @ rounded(E).T


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax of each row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def gradients(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    rounded: Rounding = as_it_is,
) -> tuple[float, Array, Array, Array, Array]:
    """Log-likelihood of the examples, and its gradient for C, H, d and E."""
    K, h = len(X), len(H)
    x, a, z, logits = forward(C, H, d, E, X, rounded)
    log_p = log_softmax(logits)
    g = -np.exp(log_p)
    g[np.arange(K), y] += 1
    g = rounded(g)
    dz = g @ rounded(E)
    do = (1 - a**2) * dz[:, :h]
    dx = do @ H
    if E.shape[1] > h + 1:
        dx += dz[:, h:-1]
    dC = np.zeros_like(C)
    np.add.at(dC, X[:, ::-1], dx.reshape(*X.shape, C.shape[1]))
    total = float(log_p[np.arange(K), y].sum())
    return total, dC, do.T @ x, do.sum(axis=0), g.T @ rounded(z)


def train(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    index: NDArray[np.intp],
    *,
    batch_size: int,
    learning_rate_init: float,
    learning_rate_decay: float,
    alpha: float,
    n_seen: int = 0,
    rounded: Rounding = as_it_is,
) -> float:
    """Change the parameters, mini-batch by mini-batch; returns the summed loss.

    Gradients are summed over a mini-batch, so that the rate is per example, and
    so is the weight decay of C, H and E but for its last column, the bias b.
    """
    loss = 0.0
    for start in range(0, len(index), batch_size):
        rows = index[start : start + batch_size]
        rate = learning_rate_init / (1 + learning_rate_decay * n_seen)
        total, dC, dH, dd, dE = gradients(C, H, d, E, X[rows], y[rows], rounded)
        decay = rate * alpha * len(rows)
        C += rate * dC - decay * C
        H += rate * dH - decay * H
        d += rate * dd
        E[:, :-1] -= decay * E[:, :-1]
        E += rate * dE
        loss -= total
        n_seen += len(rows)
    return loss


def score(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    first: int = 0,
    rounded: Rounding = as_it_is,
) -> Array:
    """Maximum, sum of exponentials and target's logit over the words of E's rows."""
    logits = forward(C, H, d, E, X, rounded)[-1]
    high = logits.max(axis=1)
    total = np.exp(logits - high[:, None]).sum(axis=1)
    target = np.full(len(y), -np.inf)
    here = np.flatnonzero((first <= y) & (y < first + len(E)))
    target[here] = logits[here, y[here] - first]
    return np.stack([high, total, target])


def log_prob(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    rounded: Rounding = as_it_is,
) -> Array:
    """Natural-log probability of each y after its context."""
    high, total, target = score(C, H, d, E, X, y, rounded=rounded)
    return target - high - np.log(total)


def probabilities(
    C: Array,
    H: Array,
    d: Array,
    E: Array,
    X: NDArray[np.int32],
    *,
    logarithm: bool,
    rounded: Rounding = as_it_is,
) -> Array:
    """Probabilities of all words after each context, or their natural logarithms."""
    log_p = log_softmax(forward(C, H, d, E, X, rounded)[-1])
    return log_p if logarithm else np.exp(log_p)
