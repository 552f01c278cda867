"""Dropout (_dropout)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.reference import UInt64
from tests.reference.neural.arrays import Array
from tests.reference.neural.weights import Weights


def mask(seed: int, t: int, K: int, n: int, rate: float, run_length: int = 1) -> Array:
    """Return the factors of n numbers of the examples t, ..., t + K - 1.

    Each is 0 with probability `rate`, rounded to 65,536 steps, and else a scale with
    which the mean is 1. Each number of splitmix64 (Steele, Lea and Flood, 2014) makes
    four; an example uses as many numbers as it needs. The examples of a run have the
    factors of its first one.
    """
    threshold, of_each = min(int(rate * 65536 + 0.5), 65535), (n + 3) // 4
    numbers = splitmix64(seed, t * of_each, K * of_each)
    parts = numbers[:, None] >> np.array([0, 16, 32, 48], np.uint64)
    kept = (parts & np.uint64(0xFFFF)) >= threshold
    every = kept.reshape(K, 4 * of_each)[:, :n] * (65536 / (65536 - threshold))
    return every[np.arange(K) // run_length * run_length]


def splitmix64(seed: int, first: int, n: int) -> UInt64:
    """Return n of its numbers, of which `first` came before."""
    count = np.arange(first + 1, first + n + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z: UInt64 = np.multiply(count, np.uint64(0x9E3779B97F4A7C15))
        z += np.uint64(seed)
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

    def of_block(self, i: int) -> Array | float:
        """Return the factors of the units of block i, from 0."""
        return self.blocks[i] if self.blocks else 1.0


NOTHING_LEFT_OUT = Masks()


@dataclass
class Dropout:
    """Dropout rates of x, a and s, and the seed of each and of the blocks' units.

    `run_length`: number of consecutive examples that have one mask.
    """

    rates: tuple[float, float, float]
    seeds: UInt64
    run_length: int = 1

    def masks(self, weights: Weights, t: int, K: int) -> Masks:
        """Return the masks of K examples, after t examples."""
        h, n_inputs = weights.n_hidden, weights.H.shape[1]
        m = 0 if weights.R is None else len(weights.R)
        widths = tuple(len(block.d) for block in weights.blocks)
        sizes = (n_inputs, h, m, *widths)
        rates = self.rates + (self.rates[1],) * len(widths)
        x, a, s, *blocks = (
            mask(int(seed), t, K, n, rate, self.run_length)
            for seed, n, rate in zip(self.seeds, sizes, rates)
        )
        return Masks(x, a, s, tuple(blocks))
