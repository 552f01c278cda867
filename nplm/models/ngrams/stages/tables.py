"""Tables of n-grams in any order, as of an ARPA file, and the trie of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _counts
from nplm.base.array_types import Counts, Ids
from nplm.models.ngrams.stages import levels
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import TrieBuilder
from nplm.models.ngrams.trie.work import Work

# The probability of a context that is not an n-gram, and the weight of an n-gram that
# is no context in tables that were added.
NOT_AN_NGRAM = NO_CONTEXT = np.float32(np.nan)
# Bytes of memory for each n-gram of a range: its words, numbers and ranks, for sorting.
ROW_BYTES = 200
# n-grams of a range at most: these are sorted in the cache.
MAX_ROWS = 1 << 19
# Arrays of the n-grams of a range, and of its contexts: words, numbers, and rows. The
# word in a column decides the range.
OF_NGRAMS = -2, ("ngrams", "prob", "rows")
OF_CONTEXTS = -1, ("contexts", "bow")
TYPES = np.int32, np.float32, np.int32


class DuplicateNgramError(ValueError):
    """Raised if tables contain an n-gram twice; has its order, second row and words."""

    def __init__(self, order: int, row: int, ngram: Ids) -> None:
        super().__init__(f"row {row} of the {order}-grams repeats an earlier one")
        self.order, self.row, self.ngram = order, row, ngram


class NgramTable(NamedTuple):
    """Some n-grams (n, k) of one length, the newest word in the last column.

    Probabilities are `NOT_AN_NGRAM` of a context alone. The longest have no weights.
    """

    ngrams: Ids
    prob: NDArray[Any]
    bow: NDArray[Any] | None

    @classmethod
    def of_words(cls, ngrams: Ids) -> NgramTable:
        """Make a table of n-grams without numbers."""
        return cls(ngrams, np.zeros(len(ngrams)), None)


class NgramTables:
    """Tables of n-grams of 2 words and more, of `n_words` words.

    The trie is made of a range of words at a time: those that contexts end with. Its
    n-grams and contexts are adjacent in each level.
    """

    def __init__(self, work: Work, n_words: int) -> None:
        self._work = work
        self._n: dict[int, int] = {}
        self._weighted: set[int] = set()  # lengths
        # Numbers of n-grams and contexts that belong to each word.
        self._n_rows = np.zeros(n_words, dtype=np.int64)

    def add(self, table: NgramTable) -> None:
        """Append n-grams, in any order."""
        ngrams, bow = np.ascontiguousarray(table.ngrams), table.bow
        if bow is not None:
            bow = np.where(bow == 1, NO_CONTEXT, bow).astype(np.float32)
        self.add_stored(NgramTable(ngrams, table.prob.astype(np.float32), bow))

    def add_stored(self, table: NgramTable) -> None:
        """Append n-grams with numbers of float32, and `NO_CONTEXT` for weights of 1."""
        k = table.ngrams.shape[1]
        self._n[k] = self._n.get(k, 0) + len(table.ngrams)
        _counts.count_words(table.ngrams, table.bow, self._n_rows)
        for array, values in zip(NgramTable._fields, table):
            if values is not None:
                self._work.append(f"table.{k}.{array}", values)
        if table.bow is not None:
            self._weighted.add(k)

    def trie(
        self,
        order: int,
        unigrams: NgramTable,
        settled: Callable[[NgramTable], NgramTable] = lambda table: table,
        *,
        new_ids: Ids | None = None,
        distinct: bool = True,
    ) -> BackoffTrie:
        """Make the trie, and remove the tables.

        Every context is added with all its suffixes, even if these have no n-grams.
        `settled` returns a table with the final numbers, `NO_CONTEXT` for weights of 1.
        `new_ids` are the final ids of the words, if they change. Of n-grams that occur
        twice one is kept; if `distinct`, DuplicateNgramError.
        """
        n_words, work = len(unigrams.prob), self._work
        sizes = np.zeros((order, 2), dtype=np.int64)
        lengths = range(2, order + 1)
        if lengths:
            n_rows = np.zeros(n_words, dtype=np.int64)
            if new_ids is None:
                new_ids = np.arange(len(self._n_rows), dtype=np.int32)
            np.add.at(n_rows, new_ids, self._n_rows)
            ranges = list(levels.ranges_of_words(n_rows, self._max_rows))
            work.stage("sorting n-grams", int(n_rows.sum()))
            rows_of = _RowsOfRanges(self._blocks, ranges, settled, new_ids, work)
            for i, words in enumerate(ranges):
                self._write_range(i, words, sizes, unigrams, rows_of, distinct)
                work.tell(int(n_rows[slice(*words)].sum()))
        prob = {"prob": unigrams.prob.astype(np.float32)}
        parts = [levels.Part(0, sizes[:-1])] if lengths else []
        return BackoffTrie(n_words, **levels.join_parts(n_words, prob, parts, work))

    @property
    def _max_rows(self) -> int:
        return min(self._work.memory // ROW_BYTES, MAX_ROWS)

    def _blocks(self, k: int) -> Iterator[tuple[int, NgramTable]]:
        """Yield the n-grams of a length in blocks, each with its first row."""
        if not self._n.get(k):
            return
        size, first = self._work.block, 0
        types = (np.int32, size * k), (np.float32, size), (np.float32, size)
        files: list[Iterator[Any]] = [
            self._work.read(f"table.{k}.{array}", *kind)
            for array, kind in zip(NgramTable._fields, types)
        ]
        if k not in self._weighted:
            files[-1] = repeat(None)
        for ngrams, prob, bow in zip(*files):
            yield first, NgramTable(ngrams.reshape(-1, k), prob, bow)
            first += len(prob)

    def _write_range(
        self,
        number: int,
        words: tuple[int, int],
        sizes: Counts,
        unigrams: NgramTable,
        rows_of: _RowsOfRanges,
        distinct: bool,
    ) -> None:
        """Append the levels of contexts that end with a range of words, and sizes."""
        first, last = words
        n_words, order = len(unigrams.prob), len(sizes)
        every = np.arange(n_words, dtype=np.int32)
        ngrams, probs = [every[:, np.newaxis]], [unigrams.prob.astype(np.float32)]
        assert unigrams.bow is not None
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
                self._work.append(levels.name_in_part(0, level, name), values)
            sizes[level - 1] += span.stop - span.start, n


class _Chosen(NamedTuple):
    """The n-grams of one length of a range of words, and contexts with a weight."""

    ngrams: Ids
    prob: NDArray[np.float32]
    rows: Ids
    contexts: Ids
    bow: NDArray[np.float32]


class _RowsOfRanges:
    """The rows of tables that belong to a range of words.

    If there are several ranges, the rows are sorted by them first, block by block, so
    that each range reads its own rows alone. `blocks_of` yields the blocks of a length,
    each with its first row.
    """

    def __init__(
        self,
        blocks_of: Callable[[int], Iterator[tuple[int, NgramTable]]],
        ranges: Sequence[tuple[int, int]],
        settled: Callable[[NgramTable], NgramTable],
        new_ids: Ids,
        work: Work,
    ) -> None:
        self._blocks_of, self._settled, self._work = blocks_of, settled, work
        self._n_ranges = len(ranges)
        sizes = [last - first for first, last in ranges]
        of_range = np.arange(len(ranges), dtype=np.int32)
        self._new_ids = new_ids
        self._range_of_word = np.repeat(of_range, sizes)[new_ids]
        # Of n-grams and of contexts: where each range begins in a block.
        self._starts: dict[int, tuple[list[Counts], ...]] = {}

    def __call__(self, k: int, number: int) -> _Chosen:
        """Return the rows of a length; ranges are asked for in turn, each once."""
        if number == 0:
            self._sort(k)
        arrays = []
        for (_, names), starts in zip((OF_NGRAMS, OF_CONTEXTS), self._starts[k]):
            for name, dtype, width in zip(names, TYPES, (k, 1, 1)):
                spans = spans_of([width * start for start in starts], number)
                values = self._work.at(f"range.{k}.{name}", dtype, *spans)
                arrays.append(values.reshape(-1, k) if width > 1 else values)
                if number == self._n_ranges - 1:
                    self._work.remove(f"range.{k}.{name}")
        return _Chosen(*arrays)

    def _sort(self, k: int) -> None:
        """Write the rows of a length to files, those of each block by range."""
        self._starts[k] = [], []
        n_before = [0, 0]
        for first_row, table in self._blocks_of(k):
            ngrams, *numbers = self._settled(table)
            for i, (column, names) in enumerate((OF_NGRAMS, OF_CONTEXTS)):
                if numbers[i] is None:
                    continue
                starts = np.empty(self._n_ranges + 1, np.int64)
                arrays = [np.empty_like(ngrams)]
                arrays += [np.empty(len(ngrams), dtype) for dtype in TYPES[1:]]
                words = k + column, self._new_ids, self._range_of_word
                outputs = *words, first_row, starts, *arrays
                _counts.sort_by_range(ngrams, numbers[i], *outputs)
                self._starts[k][i].append(starts + n_before[i])
                for name, values in zip(names, arrays):
                    self._work.append(f"range.{k}.{name}", values[: starts[-1]])
                n_before[i] += int(starts[-1])
        self._remove_tables(k)

    def _remove_tables(self, k: int) -> None:
        self._work.remove(*(f"table.{k}.{array}" for array in NgramTable._fields))


def spans_of(starts: Sequence[Counts], number: int) -> list[tuple[int, int]]:
    """Return where each block has a range, and its length, from where ranges begin."""
    ends = (start[number : number + 2].tolist() for start in starts)
    return [(first, last - first) for first, last in ends]
