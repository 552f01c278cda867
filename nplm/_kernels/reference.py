"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification that the compiled kernels are tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


# -- word classes (_exchange) ---------------------------------------------------


def bigram_objective(counts: NDArray[np.int32], totals: NDArray[np.int64]) -> float:
    """Log-likelihood of the class bigrams, but for what no class can change.

    N times the mutual information of neighbouring classes, less ``N log N``.
    """
    cells, sums = counts[counts > 0], totals[totals > 0]
    return float((cells * np.log(cells)).sum() - (sums * np.log(sums)).sum())


def exchange(
    words: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    temperatures: NDArray[np.float64],
    n_open: int,
    start: NDArray[np.int32],
    neighbour: NDArray[np.int32],
    count: NDArray[np.int32],
    word_totals: NDArray[np.int64],
    table: NDArray[np.float64],
    labels: NDArray[np.int32],
    counts: NDArray[np.int32],
    nonzero: NDArray[np.uint64],
    totals: NDArray[np.int64],
    sums: NDArray[np.int32],
    seen: NDArray[np.int32],
    gains: NDArray[np.float64],
    tally: NDArray[np.float64],
) -> None:
    """Move each word in turn to its best class, or draw one: all counted anew."""
    n_words, n_classes = len(labels), len(gains)
    before = np.repeat(np.arange(n_words), np.diff(start[1]))
    after, n = neighbour[1], count[1]

    def count_classes() -> float:
        counts[:] = 0
        np.add.at(counts[0], (labels[before], labels[after]), n)
        counts[1] = counts[0].T
        totals[:] = counts.sum(axis=1)
        return bigram_objective(counts[0], totals)

    for w, uniform, temperature in zip(words, uniforms, temperatures):
        g = labels[w]
        for h in range(n_open):
            labels[w] = h
            gains[h] = count_classes()
        gain = gains[:n_open] - gains[:n_open].max()
        if temperature > 0:
            p = np.where(gain / temperature > -30, np.exp(gain / temperature), 0.0)
            labels[w] = np.searchsorted(p.cumsum(), uniform * p.sum(), side="right")
        else:
            labels[w] = gain.argmax() if gain[g] < -1e-6 else g
        tally += (gains[labels[w]] - gains[g], labels[w] != g)
    count_classes()
    bits = np.zeros((2, n_classes, 64 * nonzero.shape[2]), dtype=np.uint8)
    bits[:, :, :n_classes] = counts > 0
    nonzero[:] = np.packbits(bits, axis=2, bitorder="little").view(np.uint64)


# -- n-grams: counting (_counts), estimation (_kneser_ney), look-ups (_backoff,
# -- _interpolation) -----------------------------------------------------------


def rank_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    n_right: int,
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    rank: NDArray[np.int32],
) -> int:
    """Give each distinct pair (left, right) its number in sorted order."""
    key = left.astype(np.int64) * n_right + right
    pairs, rank[:] = np.unique(key, return_inverse=True)
    words[: len(pairs)] = pairs % n_right
    start[:] = np.searchsorted(pairs // n_right, np.arange(len(start)))
    return len(pairs)


def count_pairs(
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    n_right: int,
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Count the distinct pairs (left, right)."""
    key = left.astype(np.int64) * n_right + right
    pairs, n = np.unique(key, return_counts=True)
    words[: len(pairs)] = pairs % n_right
    counts[: len(pairs)] = n
    start[:] = np.searchsorted(pairs // n_right, np.arange(len(start)))
    return len(pairs)


def continuation_counts(
    child_start: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    counts: NDArray[np.int64],
    slot: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Count the distinct words before each n-gram, N1+(. c w)."""
    out[:] = counts
    for c in range(len(child_start) - 1):
        longer = slice(start[child_start[c]], start[child_start[c + 1]])
        if longer.start < longer.stop:
            own = slice(start[c], start[c + 1])
            out[own] = np.bincount(words[longer], minlength=len(slot))[words[own]]


def kneser_ney(
    level: int,
    first: int,
    last: int,
    child_start: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    counts: NDArray[np.int64],
    discounts: NDArray[np.float64],
    min_counts: NDArray[np.int64],
    interpolate: bool,
    lower: NDArray[np.float64],
    prob: NDArray[np.float64],
    bow: NDArray[np.float64],
) -> None:
    """Fill the probability of n-grams and the weight of their contexts."""
    n_words = len(lower)

    def estimate(c: int, lower: NDArray[np.float64]) -> None:
        own = slice(start[c], start[c + 1])
        a, low = counts[own], lower[words[own]]
        D = np.where(a > 0, discounts[level, np.clip(a, 1, 3) - 1], 0.0)
        if a.sum() == 0:
            bow[c], prob[own] = 1, low
            return
        kept = (a > 0) & (a >= min_counts[level])
        gamma = D.sum() / a.sum()
        p = (a - D) / a.sum()
        if interpolate or kept.sum() == n_words:
            p = p + gamma * low
        if kept.sum() == n_words:
            bow[c] = gamma
        else:
            bow[c] = (1 - p[kept].sum()) / (1 - low[kept].sum())
        prob[own] = np.where(kept, p, bow[c] * low)

    if level == 0:
        estimate(0, np.full(n_words, 1 / n_words))
        return
    for parent in range(first, last):
        own = slice(start[parent], start[parent + 1])
        p_lower = np.zeros(n_words)
        p_lower[words[own]] = prob[own]
        for c in range(child_start[parent], child_start[parent + 1]):
            estimate(c, p_lower)


def _contexts(
    child_start: NDArray[np.int32], context_word: NDArray[np.int32], x: NDArray[Any]
) -> list[int]:
    """Return the contexts of the tree that end the row x, shortest first."""
    path = [0]
    for word in x[::-1]:
        children = np.arange(child_start[path[-1]], child_start[path[-1] + 1])
        found = children[context_word[children] == word]
        if len(found) == 0:
            break
        path.append(int(found[0]))
    return path


def backoff_distribution(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    X: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Probability of every word after each context."""
    for row, x in enumerate(X):
        out[row] = prob[: out.shape[1]]
        for c in _contexts(child_start, context_word, x)[1:]:
            own = slice(start[c], start[c + 1])
            out[row] *= bow[c]
            out[row, words[own]] = prob[own]


def backoff_prob(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Probability of each next word given its context."""
    rows = np.empty((len(X), start[1]))
    tree = (child_start, context_word, start, words, prob, bow)
    backoff_distribution(*tree, X, path, rows)
    out[:] = rows[np.arange(len(y)), y]


def relative_frequencies(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Fill ``out[i, k]`` with p_k(y[i]) of the paper's mixture."""
    n_words = start[1]
    out[:, 0] = 1 / n_words
    for row, x in enumerate(X):
        seen = _contexts(child_start, context_word, x)
        seen = [c for c in seen if totals[c] > 0]
        for k, c in enumerate(seen):
            own = slice(start[c], start[c + 1])
            out[row, k + 1] = counts[own][words[own] == y[row]].sum() / totals[c]
        out[row, len(seen) + 1 :] = out[row, len(seen)]


def context_frequencies(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    totals: NDArray[np.int64],
    X: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Fill `out` with how often each whole context was seen, 0 if never."""
    for row, x in enumerate(X):
        seen = _contexts(child_start, context_word, x)
        out[row] = totals[seen[-1]] if len(seen) == len(x) + 1 else 0


def mixed_frequencies(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    weights: NDArray[np.float64],
    X: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Fill each row of `out` with the mixture of all orders for every word."""
    tree = (child_start, context_word, start, words, counts, totals)
    members = np.empty((len(X), weights.shape[1]))
    for word in range(out.shape[1]):
        y = np.full(len(X), word, dtype=np.int32)
        relative_frequencies(*tree, X, y, path, members)
        out[:, word] = (weights * members).sum(axis=1)


# -- n-grams: scoring by hash (_hashed), n-grams that are contexts (_backoff) --


def hashed_prob(
    table: dict[tuple[int, ...], tuple[float, float]],
    prob: Array,
    bow: Array,
    X: NDArray[np.int32],
    y: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Probability of each next word, from n-grams in a dictionary.

    ``table[words]`` is the probability of the n-gram (negative: none) and the
    weight of these words as a context.
    """
    for row, (x, word) in enumerate(zip(X.tolist(), y.tolist())):
        scale, rest = 1.0, x
        while rest and table.get((*rest, word), (-1, 1))[0] < 0:
            one = len(rest) == 1
            scale *= (
                float(bow[1 + rest[0]]) if one else table.get(tuple(rest), (-1, 1))[1]
            )
            rest = rest[1:]
        out[row] = scale * (table[(*rest, word)][0] if rest else float(prob[word]))


def contexts_made(
    level_start: NDArray[np.int32],
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    parent: NDArray[np.int32],
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    slot: NDArray[np.int32],
    path: NDArray[np.int32],
    made: NDArray[np.int32],
) -> None:
    """For each n-gram (c, w), the number of the context c w, or -1."""
    spelled: list[tuple[int, ...]] = [()]
    for c in range(1, len(context_word)):
        spelled.append((int(context_word[c]), *spelled[parent[c]]))
    number = {gram: c for c, gram in enumerate(spelled)}
    for c, gram in enumerate(spelled):
        for i in range(start[c], min(start[c + 1], len(made))):
            made[i] = number.get((*gram, int(words[i])), -1)


def find_contexts(
    child_start: NDArray[np.int32],
    context_word: NDArray[np.int32],
    X: NDArray[np.int32],
    path: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Find the number of each whole context, or -1."""
    for row, x in enumerate(X):
        contexts = _contexts(child_start, context_word, x)
        out[row] = contexts[-1] if len(contexts) == len(x) + 1 else -1


def find_ngrams(
    start: NDArray[np.int32],
    words: NDArray[np.int32],
    contexts: NDArray[np.int32],
    y: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Index of each n-gram ``(contexts[i], y[i])`` in `words`, or -1."""
    for i, c in enumerate(contexts):
        place = np.flatnonzero(words[start[c] : start[c + 1]] == y[i])
        out[i] = start[c] + place[0] if c >= 0 and len(place) else -1
