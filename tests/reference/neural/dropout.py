"""Dropout (_dropout)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.reference import Array, UInt64


def mask(seed, t, K, n, rate, run_length=1):
    """Return the factors of n numbers of the examples t, ..., t + K - 1.

    The examples of a run have the factors of its first one.
    """
    firsts = np.arange(K, dtype=np.uint64) // np.uint64(run_length)
    firsts = firsts * np.uint64(run_length) + np.uint64(t)
    return factors(seed, firsts * np.uint64((n + 3) // 4), n, rate)


def mask_of_contexts(seed, t, X, n, rate):
    """Return the factors of n numbers of each context of a mini-batch after t examples.

    Equal contexts have the same ones.
    """
    codes = np.full(len(X), t, np.uint64)
    for words in X.T[::-1]:  # the nearest first
        codes ^= words.astype(np.uint64)
        codes *= np.uint64(0x9E3779B97F4A7C15)
        codes ^= codes >> np.uint64(29)
    return factors(seed, codes, n, rate)


def factors(seed, firsts, n, rate):
    """Return the factors of n numbers of each example.

    Each is 0 with probability `rate`, rounded to 65,536 steps, and else a scale with
    which the mean is 1. Each number of splitmix64 (Steele, Lea and Flood, 2014) makes
    four. `firsts`: how many of its numbers come before those of each example.
    """
    threshold, of_each = min(int(rate * 65536 + 0.5), 65535), (n + 3) // 4
    numbers = splitmix64(seed, firsts[:, None] + np.arange(of_each, dtype=np.uint64))
    parts = numbers[:, :, None] >> np.array([0, 16, 32, 48], np.uint64)
    kept = (parts & np.uint64(0xFFFF)) >= threshold
    every = kept.reshape(len(firsts), 4 * of_each)[:, :n]
    return every * (65536 / (65536 - threshold))


def splitmix64(seed, before):
    """Return its numbers, `before` each of which so many came."""
    z = (before + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(by)
        z *= np.uint64(factor)
    return z ^ (z >> np.uint64(31))


class Masks(NamedTuple):
    """Factors of x, of a, of s if that is projected, and of the blocks' units.

    1 without dropout.
    """

    x: Array | float = 1.0
    a: Array | float = 1.0
    s: Array | float = 1.0
    blocks: tuple[Array, ...] = ()

    def of_block(self, i):
        """Return the factors of the units of block i, from 0."""
        return self.blocks[i] if self.blocks else 1.0


NOTHING_LEFT_OUT = Masks()


@dataclass
class Dropout:
    """Dropout rates of x, a and s, and the seed of each and of the blocks' units.

    `run_length`: number of consecutive examples that have one mask, of what follows x.
    With runs, equal contexts of a mini-batch have one mask of x.
    """

    rates: tuple[float, float, float]
    seeds: UInt64
    run_length: int = 1

    def masks(self, weights, t, X):
        """Return the masks of the examples with the contexts X, after t examples."""
        h, n_inputs = weights.n_hidden, weights.H.shape[1]
        m = 0 if weights.R is None else len(weights.R)
        widths = tuple(len(block.d) for block in weights.blocks)
        sizes = (n_inputs, h, m, *widths)
        rates = self.rates + (self.rates[1],) * len(widths)
        x, a, s, *blocks = (
            mask(int(seed), t, len(X), n, rate, self.run_length)
            for seed, n, rate in zip(self.seeds, sizes, rates)
        )
        if self.run_length > 1:
            x = mask_of_contexts(int(self.seeds[0]), t, X, n_inputs, rates[0])
        return Masks(x, a, s, tuple(blocks))
