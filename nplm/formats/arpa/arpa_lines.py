"""The n-grams of a trie as lines of an ARPA file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.files import _ngram_format
from nplm._kernels.files._ngram_format import NUMBER_BYTES, Spelling
from nplm._kernels.ngrams import _backoff
from nplm.base.array_types import Ids, Mask
from nplm.base.blocks import blocks
from nplm.base.encoded_words import EncodedWords
from nplm.formats._model_files import writing
from nplm.formats._words import check_marks
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import BEGIN, END

BUFFER_BYTES = 1 << 22
NEWLINE = ord("\n")
# The toolkits write this for the logarithm of 0.
LOG_ZERO = -99


def write_ngrams(
    path: str | os.PathLike[str],
    trie: BackoffTrie,
    words: Sequence[str],
    boundary: int | None,
    work: Work,
    *,
    is_whole: bool = False,
) -> None:
    """Write an ARPA file atomically, block by block.

    - `work`: memory, or a folder on disk. Contexts that are not n-grams, which need
      lines of their own, are in memory
    - `is_whole`: as in `Estimate`: then weights on disk are read in turn
    """
    check_marks(words, boundary)
    ngrams = NgramLines(trie, words, boundary, work, is_whole=is_whole)
    n_lines = [ngrams.n_lines(level) for level in range(trie.order)]
    work.stage("writing", sum(n_lines))
    with writing(path) as file:
        file.write(b"\\data\\\n")
        for level, n in enumerate(n_lines):
            file.write(b"ngram %d=%d\n" % (level + 1, n))
        for level in range(trie.order):
            file.write(b"\n\\%d-grams:\n" % (level + 1))
            for part in ngrams.lines(level):
                file.write(part)
                work.release_pages(*trie.every_array)
                work.advance(n_lines_in(part))
        file.write(b"\n\\end\\\n")


class NgramLines:
    """Lines of an ARPA file, order by order; the arguments are `write_ngrams`'s."""

    def __init__(
        self,
        trie: BackoffTrie,
        words: Sequence[str],
        boundary: int | None,
        work: Work,
        *,
        is_whole: bool,
    ) -> None:
        self.trie, self.boundary, self._work = trie, boundary, work
        self._text = NgramText(trie, words, boundary, work)
        self.words = self._text.words
        # A trie in memory is read at random as fast.
        self._in_turn = is_whole and work.on_disk and boundary is not None
        self._unpredicted = [np.empty((0, k + 1), np.int32) for k in range(trie.order)]
        if not (is_whole and boundary is not None):
            self._unpredicted = unpredicted_in(trie, self._contexts_made, work)

    def n_lines(self, level: int) -> int:
        """Count the n-grams of ``level + 1`` words."""
        marks = len(self._marks()) if level == 0 else 0
        return int(self.trie.n_ngrams[level]) + len(self._unpredicted[level]) + marks

    def lines(self, level: int) -> Iterator[bytes | memoryview]:
        """Yield the lines of the n-grams of ``level + 1`` words, in parts."""
        if level == 0:
            yield from self._marks()
        yield from self._unpredicted_lines(level)
        weights = np.empty(0, dtype=np.float32)  # the highest order has none
        if level + 1 < self.trie.order:
            find = self._weights_in_turn if self._in_turn else self._weights
            weights = find(level)
        prob = self.trie.prob[self.trie.followers(level)]
        own = level, 2, _ngram_format.format_ngrams, prob, weights
        yield from self._text.parts(*own)
        self._work.drop(weights)

    @cached_property
    def _contexts_made(self) -> Ids:
        return self.trie.contexts_made(self._work)

    def _weights(self, level: int) -> NDArray[np.float32]:
        """Return the back-off weight of each n-gram, NaN if it is not a context."""
        trie, own = self.trie, self.trie.followers(level)
        n = own.stop - own.start
        weights: NDArray[np.float32] = self._work.array(np.float32, n)
        for part in blocks(n, self._work.n_at_random):
            rows = slice(own.start + part.start, own.start + part.stop)
            contexts = self._contexts_made[rows]
            has_none = contexts < 0
            if self.boundary is not None:
                has_none |= trie.words[rows] == self.boundary
            weights[part] = np.where(has_none, np.float32(np.nan), trie.bow[contexts])
            self._work.release_pages(*trie.every_array)
        return weights

    def _weights_in_turn(self, level: int) -> NDArray[np.float32]:
        """Return the same weights, of a whole trie, without accesses at random."""
        trie, work = self.trie, self._work
        words = trie.words[trie.followers(level)]
        weights: NDArray[np.float32] = work.array(np.float32, len(words))
        for part in blocks(len(words), work.block):
            weights[part] = np.nan
            work.release_pages()
        # The first context of each nearest word, and the end of the last.
        contexts = np.arange(1, trie.n_words + 2, dtype=np.int32)
        for _ in range(level):
            contexts = trie.child_start[contexts]
            work.release_pages(trie.child_start)
        assert self.boundary is not None
        # In blocks of weights that fit in memory.
        size = max(work.memory // 2 // weights.itemsize, 1 << 8)
        for first in range(int(contexts[0]), int(contexts[-1]), size):
            bow = np.array(trie.bow[first : min(first + size, int(contexts[-1]))])
            next_context = contexts[:-1].copy()
            next_context[self.boundary] = -1
            for part in blocks(len(words), work.block):
                own = words[part], next_context, bow, first, weights[part]
                _backoff.weights_in_turn(*own)
                work.release_pages(*trie.every_array)
            next_context[self.boundary] = contexts[self.boundary + 1]
            assert np.array_equal(next_context, contexts[1:])
        return weights

    def _marks(self) -> list[bytes]:
        """Return lines for <s>, and for a missing </s>: KenLM requires both."""
        if self.boundary is None:
            marks = [m for m in (BEGIN, END) if m not in self.words]
            return [f"{LOG_ZERO}\t{mark}\n".encode() for mark in marks]
        weight = ""
        if self.trie.order > 1:
            weight = f"\t{_log10(self.trie.bow[1 + self.boundary])}"
        return [f"{LOG_ZERO}\t{BEGIN}{weight}\n".encode()]

    def _unpredicted_lines(self, level: int) -> Iterator[bytes]:
        grams = self._unpredicted[level]
        prob = self.trie.next_word_prob(grams[:, :-1], grams[:, -1])
        contexts = self.trie.context(grams)
        for gram, p, context in zip(grams.tolist(), prob, contexts):
            names = [self.words[w] for w in gram]
            if gram[0] == self.boundary:
                names[0] = BEGIN
            weight = "" if context < 0 else f"\t{_log10(self.trie.bow[context])}"
            yield f"{_log10(p)}\t{' '.join(names)}{weight}\n".encode()


def unpredicted_in(trie: BackoffTrie, contexts_made: Ids, work: Work) -> list[Ids]:
    """Return the contexts that are not n-grams of the trie, by length minus one.

    The first words of a text are a context that was not predicted, and pruning an
    n-gram may leave longer ones that begin with it. The toolkits require a line for the
    weight of such a context, and a line for each of its prefixes.
    """
    found = [np.empty((0, k + 1), np.int32) for k in range(trie.order)]
    predicted: Mask = work.array(np.bool_, len(trie.context_word))
    for part in blocks(len(contexts_made), work.n_at_random):
        own = contexts_made[part]
        predicted[own[own >= 0]] = True
        work.release_pages()
    for k in range(trie.order - 1, 1, -1):
        first, last = trie.level_start[k : k + 2]
        contexts = first + np.flatnonzero(~predicted[first:last])
        longer = found[k][:, :-1]
        new = trie.index(longer[:, :-1], longer[:, -1]) < 0
        rows = [trie.context_words(contexts, k), longer[new]]
        found[k - 1] = np.unique(np.concatenate(rows), axis=0)
    work.drop(predicted)
    return found


def _log10(value: float) -> str:
    return f"{np.log10(value):.7f}" if value > 0 else str(LOG_ZERO)


def n_lines_in(part: bytes | memoryview) -> int:
    """Return the number of newlines."""
    return int(np.count_nonzero(np.frombuffer(part, np.uint8) == NEWLINE))


class NgramText:
    """Lines of n-grams, order by order: `boundary` is ``</s>``, in contexts ``<s>``."""

    def __init__(
        self, trie: ContextTrie, words: Sequence[str], boundary: int | None, work: Work
    ) -> None:
        self.words = list(words)
        if boundary is not None:
            self.words[boundary] = END
        text = EncodedWords.of(self.words)
        begin = np.frombuffer(BEGIN.encode(), dtype=np.uint8)
        begin_id = -1 if boundary is None else boundary
        arrays = trie.arrays, trie.parents(work), text.spelled_ids
        self._spelling = Spelling(*arrays, begin, begin_id)
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

        `format_lines` is the kernel that writes them; `arrays` have its `n_numbers`
        numbers, an entry for each n-gram of the level.
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
