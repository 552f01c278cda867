"""Drop n-grams of a trie on disk: ``BackoffTrie.pruned`` in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import blocks_of_contexts

__all__ = ["CutTrie"]


class CutTrie:
    """The n-grams of a trie that are kept, and the contexts that lead to any.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams, mapped into memory.
    keep : ndarray of bool, shape (n_ngrams,)
        The n-grams to keep, on disk. Unigrams are kept in any case.
    scratch : Scratch
        Folder for temporary arrays.

    Attributes
    ----------
    n_words : int
        Size of the vocabulary.
    n_ngrams : ndarray of int64, shape (order,)
        Number of n-grams of each order that are kept.
    level_start : ndarray of int64, shape (order + 1,)
        As in `ContextTrie`, of the contexts that stay.
    is_whole : bool
        False: n-grams may lack their suffixes, and contexts may be no n-grams.
    """

    is_whole = False

    def __init__(
        self, trie: BackoffTrie, keep: NDArray[np.bool_], scratch: Scratch
    ) -> None:
        self._trie, self._keep, self._scratch = trie, keep, scratch
        self.n_words = trie.n_words
        n_contexts = len(trie.context_word)
        keep[: trie.n_words] = True
        # The first n-gram of each context, and the number of the context.
        self._start = scratch.array("kept start", np.int32, n_contexts + 1)
        self._number = scratch.array("kept number", np.int32, n_contexts + 1)
        self._useful = scratch.array("useful", np.bool_, n_contexts)
        self._count_ngrams()
        self._find_useful()
        self._number[0] = n = 0
        for part in blocks(n_contexts, scratch.block):
            counted = np.cumsum(self._useful[part], dtype=np.int32)
            self._number[part.start + 1 : part.stop + 1] = n + counted
            n += int(counted[-1])
            self._forget()
        self.level_start = self._number[trie.level_start].astype(np.int64)
        first = self._start[trie.level_start].astype(np.int64)
        self.n_ngrams: NDArray[np.int64] = first[1:] - first[:-1]

    def fill(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Fill the arrays of a `BackoffTrie`, by name."""
        trie, number, start = self._trie, self._number, self._start
        arrays["level_start"][:] = self.level_start
        n = 0
        for part in blocks(len(trie.context_word), self._scratch.block):
            stays = self._useful[part]
            own = slice(n, n + int(np.count_nonzero(stays)))
            arrays["context_word"][own] = trie.context_word[part][stays]
            arrays["child_start"][own] = number[trie.child_start[part][stays]]
            arrays["start"][own] = start[part][stays]
            arrays["bow"][own] = trie.bow[part][stays]
            n = own.stop
            self._forget(*arrays.values())
        arrays["child_start"][-1], arrays["start"][-1] = number[-1], start[-1]
        n = 0
        for part in blocks(len(trie.words), self._scratch.block):
            stays = self._keep[part]
            own = slice(n, n + int(np.count_nonzero(stays)))
            arrays["words"][own] = trie.words[part][stays]
            arrays["prob"][own] = trie.prob[part][stays]
            n = own.stop
            self._forget(*arrays.values())

    def _count_ngrams(self) -> None:
        trie = self._trie
        n_contexts, n = len(trie.context_word), 0
        self._start[0] = 0
        size = self._scratch.block
        for first, last in blocks_of_contexts(trie.start, 0, n_contexts, size):
            ends = trie.start[first + 1 : last + 1] - trie.start[first]
            kept = self._keep[trie.start[first] : trie.start[last]]
            counted = np.zeros(len(kept) + 1, dtype=np.int32)
            np.cumsum(kept, out=counted[1:])
            self._start[first + 1 : last + 1] = n + counted[ends]
            self._useful[first:last] = np.diff(counted[ends], prepend=np.int32(0)) > 0
            n += int(counted[-1])
            self._forget()

    def _find_useful(self) -> None:
        """Keep all words as contexts, and contexts with a child that stays."""
        trie, useful = self._trie, self._useful
        levels = trie.level_start.tolist()
        useful[: levels[min(2, trie.order)]] = True
        size = self._scratch.block
        for level in range(trie.order - 2, 1, -1):
            own = levels[level], levels[level + 1]
            for first, last in blocks_of_contexts(trie.child_start, *own, size):
                children = trie.child_start[first : last + 1]
                counted = np.zeros(int(children[-1] - children[0]) + 1, np.int32)
                np.cumsum(useful[children[0] : children[-1]], out=counted[1:])
                useful[first:last] |= np.diff(counted[children - children[0]]) > 0
                self._forget()

    def _forget(self, *arrays: NDArray[Any]) -> None:
        trie = self._trie
        own = trie.context_word, trie.child_start, trie.start, trie.words
        self._scratch.forget(*own, trie.prob, trie.bow, *arrays)
