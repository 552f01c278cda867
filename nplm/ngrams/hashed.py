"""The n-grams of a back-off model in a hash table, to score many windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm._blocks import BLOCK_WINDOWS, blocks
from nplm._kernels.ngrams import _hashed
from nplm.ngrams.tree import WeightedTree

__all__ = ["HashedNgrams"]

SLOT_BYTES = 16
BUCKET_SLOTS = 4
# Slots for each n-gram, as in KenLM's probing tables.
SPACE = 1.5


class HashedNgrams:
    """Probabilities and weights of a tree's n-grams by the hash of their words.

    The same probabilities as the tree's, bit for bit, several times as fast. 48
    bits of the hash stand for the words, and where it is looked for for the rest:
    an n-gram that is not there is taken for another once in some 10**13 look-ups.

    Parameters
    ----------
    tree : WeightedTree
        Of order 2 or more.
    """

    def __init__(self, tree: WeightedTree) -> None:
        self._unigrams = tree.prob[: tree.n_words]
        self._weights = tree.bow[: tree.n_words + 1]
        keys = np.empty(len(tree.context_word), dtype=np.uint64)
        _hashed.context_keys(tree.arrays, keys)
        # A level's slots serve the n-grams of k + 1 words and contexts as long.
        n_contexts = np.append(np.diff(tree.level_start)[1:], 0)
        n_slots = np.maximum(tree.n_ngrams, n_contexts)
        n_slots[0] = 0
        parent = tree.parents()
        while True:
            n_slots[1:] = SPACE * n_slots[1:] + 2 * np.iinfo(np.uint8).max
            n_slots -= n_slots % BUCKET_SLOTS
            self._slot_start = np.concatenate([[0], np.cumsum(n_slots)])
            self._table = _aligned_zeros(int(self._slot_start[-1]) * SLOT_BYTES)
            if _hashed.fill_slots(
                tree.arrays,
                parent,
                tree.prob,
                tree.bow,
                keys,
                self._slot_start,
                self._table,
                np.zeros(tree.order, dtype=np.int64),
            ):
                break
            # A pruned tree has contexts and suffixes beside its n-grams: grow.

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of each next word; see ``BackoffTree.next_word_prob``."""
        out = np.empty(len(y))
        arrays = self._table, self._slot_start, self._unigrams, self._weights
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _hashed.hashed_prob(*arrays, X[rows], y[rows], out[rows])
        return out


def _aligned_zeros(n_bytes: int) -> NDArray[np.uint8]:
    """Return zeros that begin at a line of the cache, as a bucket of slots does."""
    line = SLOT_BYTES * BUCKET_SLOTS
    # Not np.zeros: large np.empty arrays get huge pages.
    table = np.empty(n_bytes + line, dtype=np.uint8)
    table[:] = 0
    skipped = -table.ctypes.data % line
    return table[skipped : skipped + n_bytes]
