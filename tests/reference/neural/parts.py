"""The parts below the output units: features, inputs and hidden units."""

import numpy as np

from tests.reference.neural.rounding import as_it_is
from tests.reference.neural.weights import Block

# -- features (_features) ----------------------------------------------------------


def composed(own, parts, G):
    """Features of words: own ones, and weighted ones of their parts."""
    return own + parts @ G


def features(weights):
    """Return C, by whichever kind the weights are of."""
    own = weights.E[:, :-1] if weights.C is None else weights.C
    if weights.parts is None or weights.G is None:
        return own
    return composed(own, weights.parts, weights.G)


def place_of(weights, array):
    """Return the index of an array among the trained ones."""
    (place,) = (i for i, other in enumerate(weights.arrays()) if other is array)
    return place


def rows_met(weights, X, y):
    """Return the rows of each array that an update visits.

    They are all rows, except for features of words (those of the contexts), composed
    features (also their parts), senses (words of the window) and output rows (next
    words). An energy uses the features of all words.
    """
    arrays = weights.arrays()
    rows = [slice(None)] * len(arrays)
    if weights.C is not None and not weights.fixed and weights.H_next is None:
        rows[0] = np.unique(X).astype(np.intp)
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


def window(X, n_window):
    """Return the window's words, nearest first; X has the nearest last."""
    return X[:, ::-1][:, :n_window]


def concatenation(C, X, n_window):
    """Features of the window's words, nearest first."""
    return C[window(X, n_window)].reshape(len(X), n_window * C.shape[1])


def distant_averages(C, P, X, n_window):
    """Features of the window's words, then weighted sums of those of more words."""
    words = X[:, ::-1][:, : P.shape[1]]
    averages = np.einsum("ji,kim->kjm", P, C[words])
    return np.hstack([concatenation(C, X, n_window), averages.reshape(len(X), -1)])


def sense_rows(S, words):
    """Return the rows of words; words beyond the frequent ones share the last."""
    return np.minimum(words, len(S) - 1)


def by_sense(A, words, m):
    """Return the rows of words, (K, n_window, n_senses, m)."""
    return A[sense_rows(A, words)].reshape(*words.shape, A.shape[1] // m, m)


def sense_shares(Q, C, words):
    """Return the weights of the senses of each word, and the sums of other words."""
    near = C[words]
    others = near.sum(axis=1, keepdims=True) - near
    logits = np.einsum("kism,kim->kis", by_sense(Q, words, C.shape[1]), others)
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True), others


def mixed_senses(S, Q, C, words):
    """Return the mixtures added to the features of the window, (K, n_window, m)."""
    senses = by_sense(S, words, C.shape[1])
    return np.einsum("kis,kism->kim", sense_shares(Q, C, words)[0], senses)


def mixed_senses_gradient(S, Q, C, words, dx):
    """Backpropagate their dL/dx, (K, n_window, m), to S, Q, and the word features."""
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


def inputs(weights, X):
    """Return x, by whichever kind the weights are of."""
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


def inputs_gradient(weights, X, dx):
    """Backpropagate dL/dx to C, and to P, S and Q if present."""
    C, P, n_window = features(weights), weights.P, weights.n_window
    S, Q = weights.S, weights.Q
    own = {}
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


def weighted(weights, v, rounded=as_it_is):
    """Sums of v with weights, of `rounded` factors."""
    return rounded(v) @ rounded(weights).T


def weighted_gradient(weights, v, slopes, rounded=as_it_is):
    """Backpropagate the slopes of the sums to v, and to the weights."""
    slopes = rounded(slopes)
    return slopes @ rounded(weights), slopes.T @ rounded(v)


def tanh_layer(H, d, x, rounded=as_it_is):
    """Activations a of the hidden units."""
    return np.tanh(d + weighted(H, x, rounded))


def linear_layer(H, d, x):
    """Return the sums of the context of an energy, without the next word."""
    return d + x @ H.T


def rectified_layer(H, d, x, rounded=as_it_is):
    """Activations of rectified units."""
    return np.maximum(d + weighted(H, x, rounded), 0)


def layer_norm(a):
    """Return a with mean 0 and variance 1, and what it was multiplied by."""
    centred = a - a.mean(axis=1, keepdims=True)
    by = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return centred * by, by


def residual_block(block, a, mask=1.0, rounded=as_it_is):
    """Return a with what a block adds to it; `mask` is that of its units."""
    v, _ = layer_norm(a)
    u = rectified_layer(block.H, block.d, v, rounded)
    return a + weighted(block.U, u * mask, rounded)


def residual_block_gradient(block, a, da, mask=1.0, rounded=as_it_is):
    """Backpropagate the dL/da above a block to the a below, and to its arrays."""
    v, by = layer_norm(a)
    u = rectified_layer(block.H, block.d, v, rounded)
    du, dU = weighted_gradient(block.U, u * mask, da, rounded)
    du = du * mask * (u > 0)
    dv, dH = weighted_gradient(block.H, v, du, rounded)
    along = (dv * v).mean(axis=1, keepdims=True)
    below = da + by * (dv - dv.mean(axis=1, keepdims=True) - v * along)
    return below, Block(dH, du.sum(axis=0), dU)


def projection(R, v, rounded=as_it_is):
    """Return s, the projection of v = [a | x] or a to the features."""
    return weighted(R, v, rounded)
