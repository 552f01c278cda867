"""Features of words that are known before a network learns its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["aligned"]


def aligned(
    vocabulary: NDArray[Any],
    words: Sequence[str],
    vectors: ArrayLike,
    rng: np.random.RandomState,
) -> NDArray[np.float32]:
    """Give the vector of each word of a vocabulary, drawn where there is none.

    See `Vocabulary.embeddings`.
    """
    given = np.asarray(vectors, dtype=np.float64)
    if given.ndim != 2 or len(given) != len(words):
        raise ValueError(
            f"vectors must have a row for each of the {len(words)} words, got shape "
            f"{given.shape}."
        )
    bad = np.argwhere(~np.isfinite(given))
    if len(bad):
        row, column = bad[0].tolist()
        raise ValueError(
            f"vectors has {given[row, column]} at row {row}, column {column} (of "
            f"{words[row]!r})."
        )
    rows = {word: i for i, word in enumerate(words)}
    if len(rows) != len(words):
        twice = next(word for i, word in enumerate(words) if rows[word] != i)
        raise ValueError(f"words has {twice!r} twice: leave one of them out.")
    found = np.array([rows.get(word, -1) for word in vocabulary])
    here = found >= 0
    if not here.any():
        raise ValueError(
            f"none of the words is in the vocabulary: compare {list(words[:3])} with "
            f"{vocabulary[-3:].tolist()}; upper and lower case differ."
        )
    made = np.empty((len(vocabulary), given.shape[1]))
    made[here] = given[found[here]]
    mean, deviation = made[here].mean(axis=0), made[here].std(axis=0)
    made[~here] = mean + deviation * rng.normal(size=(int(np.sum(~here)), len(mean)))
    return made.astype(np.float32)
