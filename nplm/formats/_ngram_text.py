"""The n-grams of a trie as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files._ngram_format import NUMBER_BYTES, Spelling
from nplm.base.encoded_words import EncodedWords
from nplm.formats._words import BEGIN
from nplm.models.ngrams.trie.context_trie import ContextTrie

__all__ = ["NgramText"]

BUFFER_BYTES = 1 << 22


class NgramText:
    """Lines of n-grams, order by order.

    - `words`: the word of each id
    - `boundary`: id that is written as ``<s>`` in a context
    - `parents` (n_contexts,): the array of ``trie.parents()``
    """

    def __init__(
        self,
        trie: ContextTrie,
        words: list[str],
        boundary: int | None,
        parents: NDArray[np.int32],
    ) -> None:
        text = EncodedWords.of(words)
        begin = np.frombuffer(BEGIN.encode(), dtype=np.uint8)
        begin_id = -1 if boundary is None else boundary
        self._spelling = Spelling(trie.arrays, parents, text.ids, begin, begin_id)
        self._trie = trie
        self._longest_word = int(np.diff(text.arrays["word_start"]).max()) + len(BEGIN)

    def parts(
        self,
        level: int,
        n_numbers: int,
        format_lines: Callable[..., Any],
        *arrays: NDArray[Any],
    ) -> Iterator[memoryview]:
        """Yield the lines of the n-grams of ``level + 1`` words, in parts.

        - `level`: number of words in the contexts
        - `n_numbers`: number of numbers in a line
        - `format_lines`: the kernel that writes the lines to a buffer
        - `*arrays`: the numbers of the lines: an entry for each n-gram of the level
        """
        trie, own = self._trie, self._trie.followers(level)
        context, first = int(trie.level_start[level]), own.start
        line_bytes = n_numbers * NUMBER_BYTES + (level + 1) * self._longest_word
        buffer = np.empty(max(BUFFER_BYTES, line_bytes), dtype=np.uint8)
        while first < own.stop:
            rest = [array[first - own.start :] for array in arrays]
            state = context, first, own.stop, level, line_bytes, buffer
            context, first, n = format_lines(self._spelling, *rest, *state)
            yield buffer[:n].data
