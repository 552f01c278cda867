"""Word classes (_exchange)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
