"""The n-grams of a tree as lines of an ARPA file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _ngram_format
from nplm.formats._ngram_text import NgramText
from nplm.formats._words import BEGIN, END
from nplm.ngrams.backoff import BackoffTree

__all__ = ["NgramLines"]

# What the toolkits write for the logarithm of zero.
LOG_ZERO = -99


class NgramLines:
    """Lines of an ARPA file, order by order.

    Parameters
    ----------
    tree : BackoffTree
        The n-grams.
    words : list of str
        The word of each id.
    boundary : int or None
        Id that is ``<s>`` as a context.
    """

    def __init__(
        self, tree: BackoffTree, words: list[str], boundary: int | None
    ) -> None:
        self.tree, self.words, self.boundary = tree, words, boundary
        self.made = tree.contexts_made()
        self.text = NgramText(tree, words, boundary)
        self.unpredicted = self._unpredicted()

    def n_lines(self, level: int) -> int:
        """Count the n-grams of ``level + 1`` words."""
        marks = len(self._marks()) if level == 0 else 0
        return int(self.tree.n_ngrams[level]) + len(self.unpredicted[level]) + marks

    def lines(self, level: int) -> Iterator[bytes | memoryview]:
        """Lines of the n-grams of ``level + 1`` words, in parts."""
        if level == 0:
            yield from self._marks()
        yield from self._unpredicted_lines(level)
        has_weights = level + 1 < self.tree.order
        yield from self.text.parts(
            level,
            2,
            _ngram_format.format_ngrams,
            self.tree.prob,
            self.tree.bow,
            self.made if has_weights else self.made[:0],
        )

    def _marks(self) -> list[bytes]:
        """<s>, and </s> where the model has none: KenLM reads no file without."""
        if self.boundary is None:
            marks = [m for m in (BEGIN, END) if m not in self.words]
            return [f"{LOG_ZERO}\t{mark}\n".encode() for mark in marks]
        weight = ""
        if self.tree.order > 1:
            weight = f"\t{_log10(self.tree.bow[1 + self.boundary])}"
        return [f"{LOG_ZERO}\t{BEGIN}{weight}\n".encode()]

    def _unpredicted(self) -> list[NDArray[np.int32]]:
        """Contexts that are no n-gram of the tree, by length less one.

        The first words of a text are a context without having been predicted,
        and cutting an n-gram may leave longer ones that begin with it. The
        toolkits want a line for their weight, and one for what it begins with.
        """
        tree = self.tree
        found = [np.empty((0, k), dtype=np.int32) for k in range(1, tree.order + 1)]
        predicted = np.zeros(len(tree.context_word), dtype=bool)
        predicted[self.made[self.made >= 0]] = True
        for k in range(tree.order - 1, 1, -1):
            first, last = tree.level_start[k : k + 2]
            contexts = first + np.flatnonzero(~predicted[first:last])
            longer = found[k][:, :-1]
            new = tree.index(longer[:, :-1], longer[:, -1]) < 0
            rows = [tree.context_words(contexts, k), longer[new]]
            found[k - 1] = np.unique(np.concatenate(rows), axis=0)
        return found

    def _unpredicted_lines(self, level: int) -> Iterator[bytes]:
        grams = self.unpredicted[level]
        prob = self.tree.next_word_prob(grams[:, :-1], grams[:, -1])
        contexts = self.tree.context(grams)
        for gram, p, context in zip(grams.tolist(), prob, contexts):
            names = [self.words[w] for w in gram]
            if gram[0] == self.boundary:
                names[0] = BEGIN
            weight = "" if context < 0 else f"\t{_log10(self.tree.bow[context])}"
            yield f"{_log10(p)}\t{' '.join(names)}{weight}\n".encode()


def _log10(value: float) -> str:
    return f"{np.log10(value):.7f}" if value > 0 else str(LOG_ZERO)
