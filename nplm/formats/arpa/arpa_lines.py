"""The n-grams of a trie as lines of an ARPA file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _ngram_format
from nplm.formats._model_files import writing
from nplm.formats._ngram_text import NgramText
from nplm.formats._words import BEGIN, END
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie

__all__ = ["NgramLines", "write_lines"]

# The toolkits write this for the logarithm of 0.
LOG_ZERO = -99


def write_lines(path: str | os.PathLike[str], ngrams: NgramLines) -> None:
    """Write an ARPA file atomically."""
    orders = range(ngrams.trie.order)
    with writing(path) as file:
        file.write(b"\\data\\\n")
        for level in orders:
            file.write(b"ngram %d=%d\n" % (level + 1, ngrams.n_lines(level)))
        for level in orders:
            file.write(b"\n\\%d-grams:\n" % (level + 1))
            file.writelines(ngrams.lines(level))
        file.write(b"\n\\end\\\n")


class NgramLines:
    """Lines of an ARPA file, order by order.

    Parameters
    ----------
    trie : BackoffTrie
        The n-grams.
    words : list of str
        The word of each id; that of the boundary is ``</s>``.
    boundary : int or None
        Id that is written as ``<s>`` in a context.
    """

    def __init__(
        self, trie: BackoffTrie, words: list[str], boundary: int | None
    ) -> None:
        self.trie, self.words, self.boundary = trie, words, boundary
        self.text = self._text()
        self.unpredicted = self._unpredicted()

    def _text(self) -> NgramText:
        return NgramText(self.trie, self.words, self.boundary)

    def n_lines(self, level: int) -> int:
        """Count the n-grams of ``level + 1`` words."""
        marks = len(self._marks()) if level == 0 else 0
        return int(self.trie.n_ngrams[level]) + len(self.unpredicted[level]) + marks

    def lines(self, level: int) -> Iterator[bytes | memoryview]:
        """Yield the lines of the n-grams of ``level + 1`` words, in parts."""
        if level == 0:
            yield from self._marks()
        yield from self._unpredicted_lines(level)
        yield from self.text.parts(
            level,
            2,
            _ngram_format.format_ngrams,
            self.trie.prob[self.trie.followers(level)],
            self._weights(level),
        )

    @cached_property
    def _contexts_made(self) -> NDArray[np.int32]:
        return self.trie.contexts_made()

    def _weights(self, level: int) -> NDArray[np.float32]:
        """Return the back-off weight of each n-gram, NaN if it is not a context.

        The highest order has no weights.
        """
        trie, own = self.trie, self.trie.followers(level)
        if level + 1 == trie.order:
            return np.empty(0, dtype=np.float32)
        contexts = self._contexts_made[own]
        has_none = contexts < 0
        if self.boundary is not None:
            has_none |= trie.words[own] == self.boundary
        return np.where(has_none, np.float32(np.nan), trie.bow[contexts])

    def _marks(self) -> list[bytes]:
        """Return lines for <s>, and for a missing </s>: KenLM requires both."""
        if self.boundary is None:
            marks = [m for m in (BEGIN, END) if m not in self.words]
            return [f"{LOG_ZERO}\t{mark}\n".encode() for mark in marks]
        weight = ""
        if self.trie.order > 1:
            weight = f"\t{_log10(self.trie.bow[1 + self.boundary])}"
        return [f"{LOG_ZERO}\t{BEGIN}{weight}\n".encode()]

    def _unpredicted(self) -> list[NDArray[np.int32]]:
        """Return the contexts that are not n-grams of the trie, by length minus one.

        The first words of a text are a context that was not predicted, and pruning an
        n-gram may leave longer ones that begin with it. The toolkits require a line
        for the weight of such a context, and a line for each of its prefixes.
        """
        trie = self.trie
        found = [np.empty((0, k), dtype=np.int32) for k in range(1, trie.order + 1)]
        predicted = self._predicted()
        for k in range(trie.order - 1, 1, -1):
            first, last = trie.level_start[k : k + 2]
            contexts = first + np.flatnonzero(~predicted[first:last])
            longer = found[k][:, :-1]
            new = trie.index(longer[:, :-1], longer[:, -1]) < 0
            rows = [trie.context_words(contexts, k), longer[new]]
            found[k - 1] = np.unique(np.concatenate(rows), axis=0)
        return found

    def _predicted(self) -> NDArray[np.bool_]:
        """Return whether each context is an n-gram of the trie."""
        predicted = np.zeros(len(self.trie.context_word), dtype=bool)
        predicted[self._contexts_made[self._contexts_made >= 0]] = True
        return predicted

    def _unpredicted_lines(self, level: int) -> Iterator[bytes]:
        grams = self.unpredicted[level]
        prob = self.trie.next_word_prob(grams[:, :-1], grams[:, -1])
        contexts = self.trie.context(grams)
        for gram, p, context in zip(grams.tolist(), prob, contexts):
            names = [self.words[w] for w in gram]
            if gram[0] == self.boundary:
                names[0] = BEGIN
            weight = "" if context < 0 else f"\t{_log10(self.trie.bow[context])}"
            yield f"{_log10(p)}\t{' '.join(names)}{weight}\n".encode()


def _log10(value: float) -> str:
    return f"{np.log10(value):.7f}" if value > 0 else str(LOG_ZERO)
