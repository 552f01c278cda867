"""Word classes (_exchange)."""

from dataclasses import dataclass

import numpy as np

from tests.reference import Float64, Int32, Int64, UInt64


@dataclass
class Neighbours:
    """The neighbours of each word of a text, and their counts."""

    start: Int32
    neighbour: Int32
    count: Int32
    totals: Int64
    table: Float64


@dataclass
class Classes:
    """A class for each word, and the counts of the class bigrams."""

    n_open: int
    labels: Int32
    counts: Int32
    nonzero: UInt64
    totals: Int64
    tally: Float64


def bigram_objective(counts, totals):
    """Log-likelihood of the class bigrams, without terms that no class changes.

    N times the mutual information of neighbouring classes, less ``N log N``.
    """
    cells, sums = counts[counts > 0], totals[totals > 0]
    return float((cells * np.log(cells)).sum() - (sums * np.log(sums)).sum())


def exchange(words, uniforms, temperatures, neighbours, classes):
    """Move each word in turn to its best class, or draw one: all counted anew."""
    labels, counts, totals = classes.labels, classes.counts, classes.totals
    n_words, n_classes = len(labels), len(counts[0])
    before = np.repeat(np.arange(n_words), np.diff(neighbours.start[1]))
    after, n = neighbours.neighbour[1], neighbours.count[1]

    def count_classes():
        counts[:] = 0
        np.add.at(counts[0], (labels[before], labels[after]), n)
        counts[1] = counts[0].T
        totals[:] = counts.sum(axis=1)
        return bigram_objective(counts[0], totals)

    for w, uniform, temperature in zip(words, uniforms, temperatures):
        g = labels[w]
        gains = np.empty(classes.n_open)
        for h in range(classes.n_open):
            labels[w] = h
            gains[h] = count_classes()
        gain = gains - gains.max()
        if temperature > 0:
            p = np.where(gain / temperature > -30, np.exp(gain / temperature), 0.0)
            labels[w] = np.searchsorted(p.cumsum(), uniform * p.sum(), side="right")
        else:
            labels[w] = gain.argmax() if gain[g] < -1e-6 else g
        classes.tally += (gains[labels[w]] - gains[g], labels[w] != g, 1)
    count_classes()
    bits = np.zeros((2, n_classes, 64 * classes.nonzero.shape[2]), dtype=np.uint8)
    bits[:, :, :n_classes] = counts > 0
    packed = np.packbits(bits, axis=2, bitorder="little")
    classes.nonzero[:] = packed.view(np.uint64)
