"""Tables of n-grams in any order, as of an ARPA file, and the trie of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nplm.models.ngrams.stages.levels import (
    Part,
    join_parts,
    name_in_part,
    ranges_of_words,
)
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import TrieBuilder
from nplm.models.ngrams.trie.work import Work

__all__ = ["NOT_AN_NGRAM", "DuplicateNgramError", "NgramTable", "NgramTables"]

# The probability of a context that is not an n-gram.
NOT_AN_NGRAM = np.nan
# Bytes of memory for each n-gram of a range: its words, numbers and ranks, for sorting.
ROW_BYTES = 200
# The arrays of `_Chosen`, and their types: first the words, of which that in the column
# decides the range.
OF_NGRAMS = -2, {"ngrams": np.int32, "prob": np.float32, "rows": np.int32}
OF_CONTEXTS = -1, {"contexts": np.int32, "bow": np.float32}


class DuplicateNgramError(ValueError):
    """Raised if tables contain an n-gram twice; has its order, second row and words."""

    def __init__(self, order: int, row: int, ngram: NDArray[np.int32]) -> None:
        super().__init__(f"row {row} of the {order}-grams repeats an earlier one")
        self.order, self.row, self.ngram = order, row, ngram


class NgramTable(NamedTuple):
    """Some n-grams of one length.

    - `ngrams` (n, k): the words, the newest in the last column
    - `prob`, `bow` (n,): probabilities (`NOT_AN_NGRAM` of a context alone), and weights
      as contexts (1 for the longest)
    """

    ngrams: NDArray[np.int32]
    prob: NDArray[np.float64]
    bow: NDArray[np.float64]

    @classmethod
    def of_words(cls, ngrams: NDArray[np.int32]) -> NgramTable:
        """Make a table of n-grams without numbers."""
        return cls(ngrams, np.zeros(len(ngrams)), np.ones(len(ngrams)))


class NgramTables:
    """Tables of n-grams of 2 words and more.

    The trie is made of a range of words at a time: those that contexts end with. Its
    n-grams and contexts are adjacent in each level.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._n: dict[int, int] = {}

    def add(self, table: NgramTable) -> None:
        """Append n-grams, in any order."""
        k = table.ngrams.shape[1]
        self._n[k] = self._n.get(k, 0) + len(table.ngrams)
        for array, values in zip(NgramTable._fields, table):
            self._work.append(f"table.{k}.{array}", np.ascontiguousarray(values))

    def trie(
        self,
        order: int,
        unigrams: NgramTable,
        settled: Callable[[NgramTable], NgramTable] = lambda table: table,
        *,
        distinct: bool = True,
    ) -> BackoffTrie:
        """Make the trie, and remove the tables.

        Every context is added with all its suffixes, even if these have no n-grams.

        - `unigrams`: every word of the vocabulary once, in order
        - `settled`: returns a table with the final ids and weights
        - `distinct`: whether to refuse n-grams that occur twice, which else are one
          n-gram with the numbers of one of them

        Raises DuplicateNgramError if an n-gram occurs twice and `distinct` is True.
        """
        n_words, work = len(unigrams.prob), self._work
        sizes = np.zeros((order, 2), dtype=np.int64)
        lengths = range(2, order + 1)
        if lengths:
            n_rows = self._rows_of_words(lengths, n_words, settled)
            ranges = list(ranges_of_words(n_rows, work.memory // ROW_BYTES))
            work.stage("sorting n-grams", int(n_rows.sum()))
            rows_of = _RowsOfRanges(self._blocks, ranges, n_words, settled, work)
            for i, words in enumerate(ranges):
                self._write_range(i, words, sizes, unigrams, rows_of, distinct)
                work.tell(int(n_rows[slice(*words)].sum()))
        prob = {"prob": unigrams.prob.astype(np.float32)}
        parts = [Part(0, sizes[:-1])] if lengths else []
        return BackoffTrie(n_words, **join_parts(n_words, prob, parts, work))

    def _rows_of_words(
        self,
        lengths: range,
        n_words: int,
        settled: Callable[[NgramTable], NgramTable],
    ) -> NDArray[np.int64]:
        """Return the number of n-grams and contexts that belong to each word."""
        n_rows = np.zeros(n_words, dtype=np.int64)
        n_at_most = 2 * sum(self._n.values())
        if n_at_most <= self._work.memory // ROW_BYTES:
            n_rows[0] = n_at_most  # all words are in one range
            return n_rows
        for k in lengths:
            for _, table in self._blocks(k):
                ngrams, _, bow = settled(table._replace(ngrams=table.ngrams[:, -2:]))
                newest = ngrams[bow != 1, 1] if k < lengths[-1] else ngrams[:0, 1]
                for words in (ngrams[:, 0], newest):
                    n_rows += np.bincount(words, minlength=n_words)
        return n_rows

    def _blocks(self, k: int) -> Iterator[tuple[int, NgramTable]]:
        """Yield the n-grams of a length in blocks, each with its first row."""
        if not self._n.get(k):
            return
        size, first = self._work.block, 0
        types = (np.int32, size * k), (np.float64, size), (np.float64, size)
        files = (
            self._work.read(f"table.{k}.{array}", *kind)
            for array, kind in zip(NgramTable._fields, types)
        )
        for ngrams, prob, bow in zip(*files):
            yield first, NgramTable(ngrams.reshape(-1, k), prob, bow)
            first += len(prob)

    def _write_range(
        self,
        number: int,
        words: tuple[int, int],
        sizes: NDArray[np.int64],
        unigrams: NgramTable,
        rows_of: _RowsOfRanges,
        distinct: bool,
    ) -> None:
        """Append the levels of the contexts that end with a range of words.

        `sizes` has the numbers of contexts and n-grams of each level so far.
        """
        first, last = words
        n_words, order = len(unigrams.prob), len(sizes)
        every = np.arange(n_words, dtype=np.int32)
        ngrams, probs = [every[:, np.newaxis]], [unigrams.prob.astype(np.float32)]
        contexts, bows = {}, {1: unigrams.bow[first:last].astype(np.float32)}
        rows: list[NDArray[Any]] = [every]
        for k in range(2, order + 1):
            chosen = rows_of(k, number)
            ngrams.append(chosen.ngrams)
            probs.append(chosen.prob)
            rows.append(chosen.rows)
            if k < order:
                contexts[k], bows[k] = chosen.contexts, chosen.bow
        builder = TrieBuilder(n_words)
        positions, numbers = builder.add_tables(ngrams, contexts=contexts)
        for level in range(1, order):
            position, n = positions[level], builder.n_followers[level]
            if distinct and len(position) != n:
                by_position = np.argsort(position, kind="stable")
                repeated = by_position[1:][np.diff(position[by_position]) == 0]
                at = repeated[np.argmin(rows[level][repeated])]
                row, ngram = int(rows[level][at]), ngrams[level][at]
                raise DuplicateNgramError(level + 1, row, ngram)
            begin, end = builder.level_start[level : level + 2]
            span = slice(first, last) if level == 1 else slice(0, end - begin)
            prob = np.empty(n, dtype=np.float32)
            prob[position] = probs[level]
            bow = np.ones(span.stop - span.start, dtype=np.float32)
            if level == 1:
                bow[:] = bows[1]
            else:
                bow[numbers[level] - begin] = bows[level]
            n_before = sum(builder.n_followers[:level])
            start = builder.start[level][span] - n_before + sizes[level - 1, 1]
            arrays: dict[str, object] = {
                # Those of the contexts of one word are known.
                "context_word": builder.context_word[level] if level > 1 else every[:0],
                # The longest contexts have no children.
                "child_start": every[:0],
                "start": start.astype(np.int32),
                "words": builder.words[level],
                "prob": prob,
                "bow": bow,
            }
            if level < order - 1:
                children = builder.child_start[level][span] - end + sizes[level, 0]
                arrays["child_start"] = children.astype(np.int32)
            for name, values in arrays.items():
                self._work.append(name_in_part(0, level, name), values)
            sizes[level - 1] += span.stop - span.start, n


class _Chosen(NamedTuple):
    """The n-grams and the contexts of one length that belong to a range of words.

    - `ngrams`, `prob`, `rows`: words of the n-grams, probabilities, rows in their table
    - `contexts`, `bow`: words of the contexts, and their weights, other than 1
    """

    ngrams: NDArray[np.int32]
    prob: NDArray[np.float32]
    rows: NDArray[np.int32]
    contexts: NDArray[np.int32]
    bow: NDArray[np.float32]

    @classmethod
    def of(cls, table: NgramTable, first_row: int) -> Self:
        """Return the n-grams and the contexts of a table with final ids."""
        ngrams, prob, bow = table
        rows, contexts = np.flatnonzero(~np.isnan(prob)), np.flatnonzero(bow != 1)
        return cls(
            ngrams[rows],
            prob[rows].astype(np.float32),
            (first_row + rows).astype(np.int32),
            ngrams[contexts],
            bow[contexts].astype(np.float32),
        )

    @classmethod
    def joined(cls, k: int, parts: Sequence[Self]) -> Self:
        """Join parts of a length."""
        if len(parts) == 1:
            return parts[0]
        none = NgramTable(np.empty((0, k), np.int32), np.empty(0), np.empty(0))
        return cls(*map(np.concatenate, zip(cls.of(none, 0), *parts)))


class _RowsOfRanges:
    """The rows of tables that belong to a range of words.

    If there are several ranges, the rows are sorted by them first, block by block, so
    that each range reads its own rows alone.

    - `blocks_of`: yields the blocks of a length, each with its first row
    - `ranges`: first and end of each range of words
    - `settled`: as of `NgramTables.trie`
    """

    def __init__(
        self,
        blocks_of: Callable[[int], Iterator[tuple[int, NgramTable]]],
        ranges: Sequence[tuple[int, int]],
        n_words: int,
        settled: Callable[[NgramTable], NgramTable],
        work: Work,
    ) -> None:
        self._blocks_of, self._settled, self._work = blocks_of, settled, work
        self._n_ranges = len(ranges)
        of_word = np.empty(n_words, np.min_scalar_type(self._n_ranges))
        for i, (first, last) in enumerate(ranges):
            of_word[first:last] = i
        self._range_of_word = of_word
        # Of n-grams and of contexts: where each range begins in a block.
        self._starts: dict[int, tuple[list[NDArray[np.int64]], ...]] = {}

    def __call__(self, k: int, number: int) -> _Chosen:
        """Return the rows of a length; ranges are asked for in turn, each once."""
        if self._n_ranges == 1:
            every = _Chosen.joined(k, list(self._chosen(k)))
            self._remove_tables(k)
            return every
        if number == 0:
            self._sort(k)
        arrays = []
        for (_, types), starts in zip((OF_NGRAMS, OF_CONTEXTS), self._starts[k]):
            for name, dtype in types.items():
                width = k if name in ("ngrams", "contexts") else 1
                parts = [np.empty(0, dtype)]
                for start in starts:
                    i, j = start[number : number + 2].tolist()
                    span = dtype, width * i, width * (j - i)
                    parts.append(self._work.at(f"range.{k}.{name}", *span))
                values = np.concatenate(parts)
                arrays.append(values.reshape(-1, k) if width > 1 else values)
                if number == self._n_ranges - 1:
                    self._work.remove(f"range.{k}.{name}")
        return _Chosen(*arrays)

    def _chosen(self, k: int) -> Iterator[_Chosen]:
        for first_row, table in self._blocks_of(k):
            yield _Chosen.of(self._settled(table), first_row)

    def _sort(self, k: int) -> None:
        """Write the rows of a length to files, those of each block by range."""
        self._starts[k] = [], []
        n_before = [0, 0]
        for chosen in self._chosen(k):
            for i, (column, types) in enumerate((OF_NGRAMS, OF_CONTEXTS)):
                arrays = [getattr(chosen, name) for name in types]
                number = self._range_of_word[arrays[0][:, column]]
                by_range = np.argsort(number, kind="stable")
                sizes = np.bincount(number, minlength=self._n_ranges)
                starts = n_before[i] + np.concatenate([[0], np.cumsum(sizes)])
                self._starts[k][i].append(starts)
                n_before[i] = int(starts[-1])
                for name, values in zip(types, arrays):
                    self._work.append(f"range.{k}.{name}", values[by_range])
        self._remove_tables(k)

    def _remove_tables(self, k: int) -> None:
        self._work.remove(*(f"table.{k}.{array}" for array in NgramTable._fields))
