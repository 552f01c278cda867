"""n-grams: counts, estimation, look-ups, relative frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


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
