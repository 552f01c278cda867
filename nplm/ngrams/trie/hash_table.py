"""The n-grams of a back-off model in a hash table, to score many windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._blocks import BLOCK_WINDOWS, blocks
from nplm._kernels.ngrams import _hashed
from nplm.ngrams.trie.context_trie import (
    BLOCK_FOLLOWERS,
    ContextTrie,
    WeightedTrie,
    blocks_of_contexts,
)

__all__ = [
    "BUCKET_BYTES",
    "BUCKET_SLOTS",
    "MAX_HASHED_ORDER",
    "SLOT_BYTES",
    "HashTable",
    "empty_slots",
    "fill_keys",
    "fill_window",
    "sizes_of_levels",
]

MAX_HASHED_ORDER = _hashed.MAX_ORDER
SLOT_BYTES = 16
BUCKET_SLOTS = 4
BUCKET_BYTES = BUCKET_SLOTS * SLOT_BYTES
# Key 0, probability -1 and weight 1, as two numbers of 8 bytes.
EMPTY = np.array([0, 0, -1, 1], dtype="<f4").view("<u8")
# Slots for each n-gram, as in KenLM's probing tables.
SPACE = 1.5


class HashTable:
    """Probabilities and weights of a trie's n-grams by the hash of their words.

    The same probabilities as the trie's, bit for bit, several times as fast. 48
    bits of the hash stand for the words, and where it is looked for for the rest:
    an n-gram that is not there is taken for another once in some 10**13 look-ups.

    Parameters
    ----------
    trie : WeightedTrie
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
        trie: WeightedTrie,
        slots: NDArray[np.uint8],
        slot_start: NDArray[np.int64],
    ) -> None:
        self.slots, self.slot_start = slots, slot_start
        # Word w is the root's follower w, and the context 1 + w.
        words = trie.prob[: trie.n_words], trie.bow[1 : trie.n_words + 1]
        self.table = _hashed.Table(slots, slot_start, *words)

    @classmethod
    def of(cls, trie: WeightedTrie) -> Self:
        """Put the n-grams of a trie into a table: of equal tries, the same bytes.

        Parameters
        ----------
        trie : WeightedTrie
            Of order 2 to ``MAX_HASHED_ORDER``.

        Returns
        -------
        table : HashTable
        """
        parent = trie.parents()
        keys = np.empty(len(trie.context_word), dtype=np.uint64)
        fill_keys(trie, parent, keys)
        for n_slots in sizes_of_levels(trie.n_ngrams, trie.level_start):
            slot_start = np.concatenate([[0], np.cumsum(n_slots)])
            slots = empty_slots(int(slot_start[-1]))
            missing = np.empty((2, 0), dtype=np.int32)
            for level in range(trie.order - 1, 0, -1):
                first, last = slot_start[level : level + 2] * SLOT_BYTES
                window = _hashed.Window(slots[first:last], int(n_slots[level]), 0)
                made = fill_window(trie, parent, keys, level, window, missing)
                if made is None:
                    break
                missing = made
            else:
                return cls(trie, slots, slot_start)
        raise AssertionError("unreachable: sizes grow until they fit")

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of each next word; see ``BackoffTrie.next_word_prob``."""
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _hashed.hashed_prob(self.table, X[rows], y[rows], out[rows])
        return out


def sizes_of_levels(
    n_ngrams: NDArray[np.int64], level_start: NDArray[Any]
) -> Iterator[NDArray[np.int64]]:
    """Give the slots of each level of a trie, ever more of them.

    A pruned trie has contexts and suffixes beside its n-grams: the first sizes may not
    be enough.
    """
    # A level's slots serve the n-grams of k + 1 words and contexts as long.
    n_contexts = np.append(np.diff(level_start)[1:], 0)
    n_slots = np.maximum(n_ngrams, n_contexts)
    n_slots[0] = 0
    while True:
        n_slots[1:] = SPACE * n_slots[1:] + 2 * np.iinfo(np.uint8).max
        n_slots -= n_slots % BUCKET_SLOTS
        yield n_slots.copy()


def fill_keys(
    trie: ContextTrie,
    parent: NDArray[np.int32],
    keys: NDArray[np.uint64],
    done: Callable[[], Any] = lambda: None,
    size: int = BLOCK_FOLLOWERS,
) -> None:
    """Fill the key of each context; `done` is called after `size` of them."""
    for level in range(trie.order):
        first, last = map(int, trie.level_start[level : level + 2])
        for begin in range(first, last, size):
            end = min(begin + size, last)
            _hashed.context_keys(trie.arrays, parent, level, begin, end, keys)
            done()


def fill_window(
    trie: WeightedTrie,
    parent: NDArray[np.int32],
    keys: NDArray[np.uint64],
    level: int,
    window: _hashed.Window,
    missing: NDArray[np.int32],
    done: Callable[[], Any] = lambda: None,
    size: int = BLOCK_FOLLOWERS,
) -> NDArray[np.int32] | None:
    """Put what belongs into a window of a level: of equal tries, the same bytes.

    Parameters
    ----------
    trie : WeightedTrie
        The n-grams.
    parent : ndarray of int32, shape (n_contexts,)
        Of each context.
    keys : ndarray of uint64, shape (n_contexts,)
        Those of `fill_keys`.
    level : int
        Words in the contexts of the n-grams.
    window : Window
        Empty slots.
    missing : ndarray of int32, shape (2, n)
        What this function returned of the level above: all of it, if there were
        several windows, in the order of a single one.
    done : callable
        Called after `size` n-grams.
    size : int
        So many are looked at at once.

    Returns
    -------
    made : ndarray of int32, shape (2, n_made), or None
        Context and word of the suffixes that the trie lacks; None if the window is
        the whole circle and has no room.
    """
    arrays, levels = trie.arrays, [*trie.level_start.tolist(), trie.level_start[-1]]

    def contexts(level: int) -> Iterator[tuple[int, int]]:
        if level >= trie.order:
            return
        own = levels[level], levels[level + 1]
        for block in blocks_of_contexts(trie.start, *own, size):
            yield block
            done()

    for block in contexts(level):
        if not _hashed.put_ngrams(arrays, keys, trie.prob, *block, window):
            return None
    for block in contexts(level + 1):
        if not _hashed.put_weights(keys, trie.bow, *block, window):
            return None
    found = []
    for block in contexts(level + 1):
        n = int(trie.start[block[1]] - trie.start[block[0]])
        made = np.empty((2, n), dtype=np.int32)
        n_made = _hashed.put_suffixes(arrays, parent, keys, *block, window, made)
        if n_made < 0:
            return None
        found.append(made[:, :n_made].copy())
    for block in contexts(level + 2):
        _hashed.put_filters(arrays, parent, keys, *block, window)
    made = np.empty_like(missing)
    n_made = _hashed.put_missing(arrays, parent, keys, missing, window, made)
    if n_made < 0:
        return None
    return np.concatenate([*found, made[:, :n_made]], axis=1)


def empty_slots(n_slots: int) -> NDArray[np.uint8]:
    """Return empty slots that begin at a line of the cache, as a bucket does."""
    # Not np.zeros: large np.empty arrays get huge pages.
    memory = np.empty(n_slots * SLOT_BYTES + BUCKET_BYTES, dtype=np.uint8)
    skipped = -memory.ctypes.data % BUCKET_BYTES
    slots = memory[skipped : skipped + n_slots * SLOT_BYTES]
    slots.view(EMPTY.dtype).reshape(n_slots, -1)[:] = EMPTY
    return slots
