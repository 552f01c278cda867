"""From words to hidden units: the parts below the output units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference.neural.arrays import Array, Rows
from tests.reference.neural.weights import Weights

# -- features (_features) ----------------------------------------------------------


def composed(own: Array, parts: Array, G: Array) -> Array:
    """Features of words: what each has alone, and those of its parts, weighted."""
    return own + parts @ G


def features(weights: Weights) -> Array:
    """Give C, by whichever kind the weights are of."""
    own = weights.E[:, :-1] if weights.C is None else weights.C
    if weights.parts is None or weights.G is None:
        return own
    return composed(own, weights.parts, weights.G)


def place_of(weights: Weights, array: Array) -> int:
    """Give the place of an array among those that are learned."""
    (place,) = (i for i, other in enumerate(weights.arrays()) if other is array)
    return place


def rows_met(weights: Weights, X: NDArray[np.int32], y: NDArray[np.int32]) -> Rows:
    """Give the rows of each array that an update meets.

    All of them, but of composed features only those of words that it has, and of
    their parts, of senses those of the window's words, and of output rows those of the
    next words: Adam's moments of others wait.
    """
    arrays = weights.arrays()
    rows: Rows = [slice(None)] * len(arrays)
    rows[place_of(weights, weights.E)] = weights.output.met(y, len(weights.E))
    if weights.parts is not None and weights.C is not None:
        words = np.unique(X).astype(np.intp)
        rows[0], rows[-1] = words, np.unique(np.nonzero(weights.parts[words])[1])
    if weights.S is not None and weights.Q is not None:
        own = sense_rows(weights.S, window(X, weights.n_window))
        for array in (weights.S, weights.Q):
            rows[place_of(weights, array)] = np.unique(own).astype(np.intp)
    return rows


# -- inputs (_inputs) ------------------------------------------------------------


def window(X: NDArray[np.int32], n_window: int) -> NDArray[np.int32]:
    """Give the window's words, nearest first; X has the nearest last."""
    return X[:, ::-1][:, :n_window]


def concatenation(C: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, nearest first."""
    return C[window(X, n_window)].reshape(len(X), n_window * C.shape[1])


def distant_averages(C: Array, P: Array, X: NDArray[np.int32], n_window: int) -> Array:
    """Features of the window's words, then weighted sums of those of more words."""
    words = X[:, ::-1][:, : P.shape[1]]
    averages = np.einsum("ji,kim->kjm", P, C[words])
    return np.hstack([concatenation(C, X, n_window), averages.reshape(len(X), -1)])


def sense_rows(S: Array, words: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give the rows of words: each its own, and those beyond share the last."""
    return np.minimum(words, len(S) - 1)


def by_sense(A: Array, words: NDArray[np.int32], m: int) -> Array:
    """Give the rows of words, (K, n_window, n_senses, m)."""
    return A[sense_rows(A, words)].reshape(*words.shape, A.shape[1] // m, m)


def sense_shares(Q: Array, C: Array, words: NDArray[np.int32]) -> tuple[Array, Array]:
    """Give the share of each sense of each word, and what the other words sum to."""
    near = C[words]
    others = near.sum(axis=1, keepdims=True) - near
    logits = np.einsum("kism,kim->kis", by_sense(Q, words, C.shape[1]), others)
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True), others


def mixed_senses(S: Array, Q: Array, C: Array, words: NDArray[np.int32]) -> Array:
    """Give what is added to the features of the window's words, (K, n_window, m)."""
    senses = by_sense(S, words, C.shape[1])
    return np.einsum("kis,kism->kim", sense_shares(Q, C, words)[0], senses)


def mixed_senses_gradient(
    S: Array, Q: Array, C: Array, words: NDArray[np.int32], dx: Array
) -> tuple[Array, Array, Array]:
    """Carry their dL/dx, (K, n_window, m), to S, Q, and the words' own features."""
    rows, (shares, others) = sense_rows(S, words), sense_shares(Q, C, words)
    senses, asks = (by_sense(A, words, C.shape[1]) for A in (S, Q))
    slopes = np.einsum("kism,kim->kis", senses, dx)
    slopes = shares * (slopes - (shares * slopes).sum(axis=2, keepdims=True))
    dS, dQ = np.zeros_like(S), np.zeros_like(Q)
    flat = (*words.shape, S.shape[1])
    np.add.at(dS, rows, np.einsum("kis,kim->kism", shares, dx).reshape(flat))
    np.add.at(dQ, rows, np.einsum("kis,kim->kism", slopes, others).reshape(flat))
    d_others = np.einsum("kis,kism->kim", slopes, asks)
    return dS, dQ, d_others.sum(axis=1, keepdims=True) - d_others


def inputs(weights: Weights, X: NDArray[np.int32]) -> Array:
    """Give x, by whichever kind the weights are of."""
    C, n_window = features(weights), weights.n_window
    if weights.P is None:
        x = concatenation(C, X, n_window)
    else:
        x = distant_averages(C, weights.P, X, n_window)
    if weights.S is not None and weights.Q is not None:
        added = mixed_senses(weights.S, weights.Q, C, window(X, n_window))
        near = x[:, : n_window * C.shape[1]]
        near += added.reshape(near.shape)
    return x


def inputs_gradient(
    weights: Weights, X: NDArray[np.int32], dx: Array
) -> tuple[Array, dict[str, Any]]:
    """Carry dL/dx to C, and to P, S and Q where they are there."""
    C, P, n_window = features(weights), weights.P, weights.n_window
    S, Q = weights.S, weights.Q
    own: dict[str, Any] = {}
    K, m = len(X), C.shape[1]
    dC, words = np.zeros_like(C), X[:, ::-1]
    near = dx[:, : n_window * m].reshape(K, n_window, m)
    if S is not None and Q is not None:
        own["S"], own["Q"], more = mixed_senses_gradient(
            S, Q, C, window(X, n_window), near
        )
        near = near + more
    np.add.at(dC, words[:, :n_window], near)
    if P is None:
        return dC, own
    n_averages, n_distant = P.shape
    slopes = dx[:, n_window * m :].reshape(K, n_averages, m)
    np.add.at(dC, words[:, :n_distant], np.einsum("ji,kjm->kim", P, slopes))
    own["P"] = np.einsum("kjm,kim->ji", slopes, C[words[:, :n_distant]])
    return dC, own


# -- hidden units (_hidden) --------------------------------------------------------


def tanh_layer(H: Array, d: Array, x: Array) -> Array:
    """Activations a of the hidden units."""
    return np.tanh(d + x @ H.T)


def linear_layer(H: Array, d: Array, x: Array) -> Array:
    """Give the sums of an energy's context: those of the next word come on top."""
    return d + x @ H.T


def projection(R: Array, v: Array) -> Array:
    """Give s, as many numbers as a word has features, from v = [a | x] or a."""
    return v @ R.T
