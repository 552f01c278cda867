"""The n-grams of a tree as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nplm._kernels.files._ngram_format import NUMBER_BYTES, Spelling
from nplm.formats._words import BEGIN, WordText
from nplm.ngrams.tree import ContextTree

__all__ = ["NgramText"]

BUFFER_BYTES = 1 << 24


class NgramText:
    """Lines of n-grams, order by order.

    Parameters
    ----------
    tree : ContextTree
        The n-grams.
    words : list of str
        The word of each id.
    boundary : int or None
        Id that is ``<s>`` as a context.
    """

    def __init__(
        self, tree: ContextTree, words: list[str], boundary: int | None
    ) -> None:
        text = WordText(words)
        begin = np.frombuffer(BEGIN.encode(), dtype=np.uint8)
        mark = -1 if boundary is None else boundary
        self._spelling = Spelling(tree.arrays, tree.parents(), text.words, begin, mark)
        self._tree = tree
        self._longest_word = int(np.diff(text.start).max()) + len(BEGIN) + 1

    def parts(
        self, level: int, n_numbers: int, put: Callable[..., Any], *arrays: Any
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
            What it writes beside the words.
        """
        tree = self._tree
        context, last = map(int, tree.level_start[level : level + 2])
        most = int(np.diff(tree.start[context : last + 1]).max(initial=0))
        line = n_numbers * NUMBER_BYTES + (level + 1) * self._longest_word
        buffer = np.empty(max(BUFFER_BYTES, most * line), dtype=np.uint8)
        while context < last:
            context, n = put(
                self._spelling, *arrays, context, last, level, line, buffer
            )
            yield buffer[:n].data
