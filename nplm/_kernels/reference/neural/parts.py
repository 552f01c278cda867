"""From words to hidden units: the parts below the output units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.reference.neural.arrays import Array, Rows
from nplm._kernels.reference.neural.weights import Weights

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
    their parts, and of output rows those of the next words: Adam's moments of others
    wait.
    """
    arrays = weights.arrays()
    rows: Rows = [slice(None)] * len(arrays)
    rows[place_of(weights, weights.E)] = weights.output.met(y, len(weights.E))
    if weights.parts is not None and weights.C is not None:
        words = np.unique(X).astype(np.intp)
        rows[0], rows[-1] = words, np.unique(np.nonzero(weights.parts[words])[1])
    return rows


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
    C = features(weights)
    if weights.P is None:
        return concatenation(C, X, weights.n_window)
    return distant_averages(C, weights.P, X, weights.n_window)


def inputs_gradient(
    weights: Weights, X: NDArray[np.int32], dx: Array
) -> tuple[Array, Array | None]:
    """Carry dL/dx to C and P."""
    C, P, n_window = features(weights), weights.P, weights.n_window
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


def linear_layer(H: Array, d: Array, x: Array) -> Array:
    """Give the sums of an energy's context: those of the next word come on top."""
    return d + x @ H.T


def projection(R: Array, v: Array) -> Array:
    """Give s, as many numbers as a word has features, from v = [a | x] or a."""
    return v @ R.T
