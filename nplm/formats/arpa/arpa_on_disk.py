"""Lines of an ARPA file from a trie on disk, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff
from nplm.base.blocks import blocks
from nplm.formats._ngram_text import NgramText
from nplm.formats.arpa.arpa_lines import NgramLines
from nplm.models.ngrams.external.estimation import fill_parents
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie, fill_contexts_made

__all__ = ["LinesOnDisk", "PrunedLinesOnDisk"]

NEWLINE = ord("\n")
WEIGHTS = "weights"


class LinesOnDisk(NgramLines):
    """Lines of an ARPA file from a trie that was estimated on disk.

    The trie is not pruned: each n-gram below the highest order that does not end a
    sentence is a context, and each context is an n-gram.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams, mapped into memory.
    words : list of str
        The word of each id; that of the boundary is ``</s>``.
    boundary : int or None
        Id that is written as ``<s>`` in a context.
    scratch : Scratch
        The temporary folder.
    """

    def __init__(
        self,
        trie: BackoffTrie,
        words: list[str],
        boundary: int | None,
        scratch: Scratch,
    ) -> None:
        self._scratch = scratch
        super().__init__(trie, words, boundary)

    def lines(self, level: int) -> Iterator[bytes | memoryview]:
        """Yield the lines of the n-grams of ``level + 1`` words, in parts."""
        if level == 0:
            n_lines = sum(map(self.n_lines, range(self.trie.order)))
            self._scratch.stage("writing", n_lines)
        for part in super().lines(level):
            yield part
            self._forget()
            is_end = np.frombuffer(part, np.uint8) == NEWLINE
            self._scratch.tell(int(np.count_nonzero(is_end)))
        if level + 1 < self.trie.order:
            self._scratch.remove(WEIGHTS)

    def _text(self) -> NgramText:
        self._parents = fill_parents(self.trie, self._scratch)
        self._forget()
        return NgramText(self.trie, self.words, self.boundary, self._parents)

    def _unpredicted(self) -> list[NDArray[np.int32]]:
        return [np.empty((0, k), dtype=np.int32) for k in range(1, self.trie.order + 1)]

    def _weights(self, level: int) -> NDArray[np.float32]:
        trie, scratch = self.trie, self._scratch
        if level + 1 == trie.order:
            return np.empty(0, dtype=np.float32)
        words = trie.words[trie.followers(level)]
        weights = scratch.array(WEIGHTS, np.float32, len(words))
        for part in blocks(len(words), scratch.block):
            weights[part] = np.nan
            self._forget()
        # The first context of each nearest word, and the end of the last.
        contexts = np.arange(1, trie.n_words + 2, dtype=np.int32)
        for _ in range(level):
            contexts = trie.child_start[contexts]
            self._forget()
        assert self.boundary is not None
        # Contexts are accessed at random, so in blocks of weights that fit in memory.
        size = max(scratch.memory // 2 // weights.itemsize, 1 << 8)
        for first in range(int(contexts[0]), int(contexts[-1]), size):
            bow = np.array(trie.bow[first : min(first + size, int(contexts[-1]))])
            next_context = contexts[:-1].copy()
            next_context[self.boundary] = -1
            for part in blocks(len(words), scratch.block):
                own = words[part], next_context, bow, first, weights[part]
                _backoff.weights_in_turn(*own)
                self._forget()
            next_context[self.boundary] = contexts[self.boundary + 1]
            assert np.array_equal(next_context, contexts[1:])
        return weights

    def _forget(self) -> None:
        trie = self.trie
        own = trie.context_word, trie.child_start, trie.start, trie.words
        self._scratch.forget(*own, trie.prob, trie.bow)


class PrunedLinesOnDisk(LinesOnDisk):
    """Lines of an ARPA file from any trie on disk.

    Contexts that are not n-grams, which need lines of their own, are in memory.
    """

    @cached_property
    def _contexts_made(self) -> NDArray[np.int32]:
        trie, scratch = self.trie, self._scratch
        n = trie.followers(trie.order - 1).start
        made: NDArray[np.int32] = scratch.array("made", np.int32, n)
        fill_contexts_made(trie, self._parents, made, self._forget, scratch.n_at_random)
        return made

    def _unpredicted(self) -> list[NDArray[np.int32]]:
        return NgramLines._unpredicted(self)

    def _predicted(self) -> NDArray[np.bool_]:
        made, scratch = self._contexts_made, self._scratch
        n_contexts = len(self.trie.context_word)
        predicted: NDArray[np.bool_] = scratch.array("predicted", np.bool_, n_contexts)
        for part in blocks(len(made), scratch.n_at_random):
            own = made[part]
            predicted[own[own >= 0]] = True
            self._forget()
        return predicted

    def _weights(self, level: int) -> NDArray[np.float32]:
        trie, own = self.trie, self.trie.followers(level)
        if level + 1 == trie.order:
            return np.empty(0, dtype=np.float32)
        n = own.stop - own.start
        weights: NDArray[np.float32] = self._scratch.array(WEIGHTS, np.float32, n)
        for part in blocks(n, self._scratch.n_at_random):
            rows = slice(own.start + part.start, own.start + part.stop)
            contexts = self._contexts_made[rows]
            has_none = contexts < 0
            if self.boundary is not None:
                has_none |= trie.words[rows] == self.boundary
            weights[part] = np.where(has_none, np.float32(np.nan), trie.bow[contexts])
            self._forget()
        return weights
