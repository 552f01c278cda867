"""The n-grams of a back-off model in a hash table, to score many windows."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from nplm._blocks import BLOCK_WINDOWS, blocks
from nplm._kernels.ngrams import _hashed
from nplm.ngrams.tree import WeightedTree

__all__ = ["BUCKET_BYTES", "MAX_HASHED_ORDER", "SLOT_BYTES", "HashedNgrams"]

MAX_HASHED_ORDER = _hashed.MAX_ORDER
SLOT_BYTES = 16
BUCKET_SLOTS = 4
BUCKET_BYTES = BUCKET_SLOTS * SLOT_BYTES
# Key 0, probability -1 and weight 1, as two numbers of 8 bytes.
EMPTY = np.array([0, 0, -1, 1], dtype="<f4").view("<u8")
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
        Of order 2 to ``MAX_HASHED_ORDER``.
    slots : ndarray of uint8
        The slots, of all levels.
    slot_start : ndarray of int64, shape (order + 1,)
        The first slot of each level.

    Attributes
    ----------
    table : Table
        The same as kernels take it.
    """

    def __init__(
        self,
        tree: WeightedTree,
        slots: NDArray[np.uint8],
        slot_start: NDArray[np.int64],
    ) -> None:
        self.slots, self.slot_start = slots, slot_start
        # Word w is the root's follower w, and the context 1 + w.
        words = tree.prob[: tree.n_words], tree.bow[1 : tree.n_words + 1]
        self.table = _hashed.Table(slots, slot_start, *words)

    @classmethod
    def of(cls, tree: WeightedTree) -> Self:
        """Put the n-grams of a tree into a table: of equal trees, the same bytes.

        Parameters
        ----------
        tree : WeightedTree
            Of order 2 to ``MAX_HASHED_ORDER``.

        Returns
        -------
        hashed : HashedNgrams
        """
        parent = tree.parents()
        keys = np.empty(len(tree.context_word), dtype=np.uint64)
        _hashed.context_keys(tree.arrays, keys)
        # A level's slots serve the n-grams of k + 1 words and contexts as long.
        n_contexts = np.append(np.diff(tree.level_start)[1:], 0)
        n_slots = np.maximum(tree.n_ngrams, n_contexts)
        n_slots[0] = 0
        while True:
            n_slots[1:] = SPACE * n_slots[1:] + 2 * np.iinfo(np.uint8).max
            n_slots -= n_slots % BUCKET_SLOTS
            slot_start = np.concatenate([[0], np.cumsum(n_slots)])
            slots = _empty(int(slot_start[-1]))
            if _hashed.fill_slots(
                tree.arrays,
                parent,
                tree.prob,
                tree.bow,
                keys,
                slot_start,
                slots,
                np.zeros(tree.order, dtype=np.int64),
            ):
                return cls(tree, slots, slot_start)
            # A pruned tree has contexts and suffixes beside its n-grams: grow.

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of each next word; see ``BackoffTree.next_word_prob``."""
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _hashed.hashed_prob(self.table, X[rows], y[rows], out[rows])
        return out


def _empty(n_slots: int) -> NDArray[np.uint8]:
    """Return empty slots that begin at a line of the cache, as a bucket does."""
    # Not np.zeros: large np.empty arrays get huge pages.
    memory = np.empty(n_slots * SLOT_BYTES + BUCKET_BYTES, dtype=np.uint8)
    skipped = -memory.ctypes.data % BUCKET_BYTES
    slots = memory[skipped : skipped + n_slots * SLOT_BYTES]
    slots.view(EMPTY.dtype).reshape(n_slots, -1)[:] = EMPTY
    return slots
