"""The n-grams of a trie as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files._ngram_format import NUMBER_BYTES, Spelling
from nplm.formats._words import BEGIN, WordText
from nplm.models.ngrams.trie.context_trie import ContextTrie

__all__ = ["NgramText"]

BUFFER_BYTES = 1 << 22


class NgramText:
    """Lines of n-grams, order by order.

    Parameters
    ----------
    trie : ContextTrie
        The n-grams.
    words : list of str
        The word of each id.
    boundary : int or None
        Id that is ``<s>`` as a context.
    parents : ndarray of int32, shape (n_contexts,), optional
        Those of ``trie.parents()``, where it is too large to make them in memory.
    """

    def __init__(
        self,
        trie: ContextTrie,
        words: list[str],
        boundary: int | None,
        parents: NDArray[np.int32] | None = None,
    ) -> None:
        text = WordText(words)
        begin = np.frombuffer(BEGIN.encode(), dtype=np.uint8)
        mark = -1 if boundary is None else boundary
        parents = trie.parents() if parents is None else parents
        self._spelling = Spelling(trie.arrays, parents, text.words, begin, mark)
        self._trie = trie
        self._longest_word = int(np.diff(text.start).max()) + len(BEGIN) + 1

    def parts(
        self,
        level: int,
        n_numbers: int,
        put: Callable[..., Any],
        *arrays: NDArray[Any],
    ) -> Iterator[memoryview]:
        """Lines of the n-grams of ``level + 1`` words, in parts.

        Parameters
        ----------
        level : int
            Words in the contexts.
        n_numbers : int
            Numbers in a line.
        put : callable
            The kernel that writes the lines.
        *arrays : ndarray
            What it writes beside the words: an entry for each n-gram of the level.
        """
        trie, own = self._trie, self._trie.followers(level)
        context, first = int(trie.level_start[level]), own.start
        line = n_numbers * NUMBER_BYTES + (level + 1) * self._longest_word
        buffer = np.empty(max(BUFFER_BYTES, line), dtype=np.uint8)
        while first < own.stop:
            left = [array[first - own.start :] for array in arrays]
            at = context, first, own.stop, level, line, buffer
            context, first, n = put(self._spelling, *left, *at)
            yield buffer[:n].data
