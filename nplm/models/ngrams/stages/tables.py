"""Tables of n-grams in any order, as of an ARPA file, and the trie of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _counts
from nplm.base.array_types import Counts, Floats, Ids, Index
from nplm.models.ngrams.stages import levels
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import TrieBuilder
from nplm.models.ngrams.trie.work import Work

# The probability of a context that is not an n-gram, and the weight of an n-gram that
# is no context in tables that were added.
NOT_AN_NGRAM = NO_CONTEXT = np.float32(np.nan)
# Bytes of memory for each n-gram of a range: its words, numbers and ranks, for sorting.
ROW_BYTES = 200
# n-grams of a range: these are sorted in the cache.
MAX_ROWS = 1 << 19
# Ranges of words by which n-grams are written to files as they are added.
N_RANGES = 512
# Files of the n-grams of a length, and of contexts with a weight: words, numbers, and
# rows. The word in a column decides the range.
Kind = tuple[int, tuple[str, ...]]
OF_NGRAMS: Kind = -2, ("ngrams", "prob", "rows")
OF_CONTEXTS: Kind = -1, ("contexts", "bow")
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

    `shares` (n_words,) are the probabilities of words, which estimate how many rows
    each has: without them, or with wrong ones, some rows are sorted into ranges twice.
    `marks` are words that may be left out, or get one id; their rows are in the range
    of the last of them.
    """

    def __init__(
        self,
        work: Work,
        n_words: int,
        shares: Floats | None = None,
        marks: Sequence[int] = (),
    ) -> None:
        self._work = work
        self._n: dict[int, int] = {}
        expected, least = np.full(n_words, 1 / n_words), np.finfo(float).tiny
        if shares is not None:
            expected += shares / max(shares.sum(), least)
        expected[list(marks)] = 0
        places = N_RANGES * (np.cumsum(expected) / max(expected.sum(), least))
        first_words = np.unique(places.astype(np.int32), return_index=True)[1]
        # A range begins with a word that stays.
        is_first = ~np.isin(first_words, marks)
        is_first[0] = True
        self._first_words = first_words[is_first]
        range_of_word = _numbered(self._first_words, n_words)
        range_of_word[list(marks)] = range_of_word[list(marks[-1:])]
        n_ranges = len(self._first_words)
        self._rows = _SortedRows("range", n_ranges, range_of_word, work)

    def add(self, table: NgramTable) -> None:
        """Append n-grams, in any order."""
        ngrams, bow = np.ascontiguousarray(table.ngrams), table.bow
        if bow is not None:
            bow = np.where(bow == 1, NO_CONTEXT, bow).astype(np.float32)
        self.add_stored(NgramTable(ngrams, table.prob.astype(np.float32), bow))

    def add_stored(self, table: NgramTable) -> None:
        """Append n-grams with numbers of float32, and `NO_CONTEXT` for weights of 1."""
        k = table.ngrams.shape[1]
        first_row = self._n.get(k, 0)
        self._n[k] = first_row + len(table.ngrams)
        self._rows.add(k, OF_NGRAMS, table.ngrams, table.prob, first_row)
        if table.bow is not None:
            self._rows.add(k, OF_CONTEXTS, table.ngrams, table.bow)

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
            work.stage("sorting n-grams", int(self._rows.sizes.sum()))
            for words, rows, number in self._ranges(n_words, new_ids):
                chosen = {k: rows.chosen(k, number, settled, new_ids) for k in lengths}
                self._write_range(words, sizes, unigrams, chosen, distinct)
                work.advance(int(rows.sizes[slice(*number)].sum()))
            self._rows.remove()
        prob = {"prob": unigrams.prob.astype(np.float32)}
        parts = [levels.Part(0, sizes[:-1])] if lengths else []
        return BackoffTrie(n_words, **levels.join_parts(n_words, prob, parts, work))

    def _ranges(
        self, n_words: int, new_ids: Ids | None
    ) -> Iterator[tuple[tuple[int, int], _SortedRows, tuple[int, int]]]:
        """Yield ranges of final ids, and the rows of each: which of which files."""
        most = self._work.memory // ROW_BYTES
        old_ids = self._first_words
        first_words = old_ids if new_ids is None else new_ids[old_ids]
        bounds = [0, *first_words[1:].tolist(), n_words]
        for ranges in levels.ranges_of_words(self._rows.sizes, min(most, MAX_ROWS)):
            first, last = (bounds[number] for number in ranges)
            n_rows = int(self._rows.sizes[slice(*ranges)].sum())
            if n_rows <= most or last - first < 2:
                yield (first, last), self._rows, ranges
                continue
            if new_ids is None:
                new_ids = np.arange(n_words, dtype=np.int32)
            counts = self._rows.counts(ranges, new_ids, n_words)[first:last]
            parts = list(levels.ranges_of_words(counts, min(most, MAX_ROWS)))
            range_of_word = _numbered([first + part[0] for part in parts], n_words)
            numbers = len(parts), range_of_word[new_ids]
            rows = _SortedRows("part of range", *numbers, self._work)
            self._rows.move(ranges, rows)
            for i, part in enumerate(parts):
                yield (first + part[0], first + part[1]), rows, (i, i + 1)
            rows.remove()

    def _write_range(
        self,
        words: tuple[int, int],
        sizes: Counts,
        unigrams: NgramTable,
        chosen: dict[int, _Chosen],
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
        for k, table in chosen.items():
            ngrams.append(table.ngrams)
            probs.append(table.prob)
            rows.append(table.rows)
            if k < order:
                contexts[k], bows[k] = table.contexts, table.bow
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


class _SortedRows:
    """Rows of n-grams and contexts in files, each block of them sorted by range."""

    def __init__(
        self, name: str, n_ranges: int, range_of_word: Ids, work: Work
    ) -> None:
        self._name, self._work, self._range_of_word = name, work, range_of_word
        # Number of rows in each range.
        self.sizes = np.zeros(n_ranges, dtype=np.int64)
        # Where each range begins in each block, and the end of the block.
        self._starts: dict[tuple[int, Kind], list[Counts]] = {}

    def add(
        self,
        k: int,
        kind: Kind,
        ngrams: Ids,
        values: NDArray[np.float32],
        rows: Ids | int = 0,
    ) -> None:
        """Append the rows that have a value; `rows` has their numbers, or the first."""
        column, names = kind
        starts, n = np.empty(len(self.sizes) + 1, np.int64), len(ngrams)
        arrays = np.empty_like(ngrams), np.empty(n, np.float32), np.empty(n, np.int32)
        inputs = ngrams, values, k + column, self._range_of_word
        _counts.sort_by_range(*inputs, starts, *arrays)
        self.sizes += np.diff(starts)
        before = self._starts.setdefault((k, kind), [])
        before.append(starts + (before[-1][-1] if before else 0))
        words, numbers, order = (out[: starts[-1]] for out in arrays)
        order = order + np.int32(rows) if isinstance(rows, int) else rows[order]
        for name, array in zip(names, (words, numbers, order)):
            self._work.append(self._file(k, name), array)

    def chosen(
        self,
        k: int,
        ranges: tuple[int, int],
        settled: Callable[[NgramTable], NgramTable],
        new_ids: Ids | None,
    ) -> _Chosen:
        """Return the n-grams and contexts of some ranges, with their final numbers."""
        arrays: list[NDArray[Any]] = []
        for field, kind in enumerate((OF_NGRAMS, OF_CONTEXTS), 1):
            spans = spans_of(self._starts.get((k, kind), []), ranges)
            ngrams, values, *rows = self._read(k, kind, spans)
            table = NgramTable(ngrams, values, values if field == 2 else None)
            final: Any = settled(table)[field]
            if final is not values:
                stays = ~np.isnan(final)
                ngrams, values = ngrams[stays], final[stays]
                rows = [numbers[stays] for numbers in rows]
            if new_ids is not None:
                renamed = np.empty_like(ngrams)
                _counts.rename(ngrams.reshape(-1), new_ids, renamed.reshape(-1))
                ngrams = renamed
            arrays += ngrams, values, *rows
        return _Chosen(*arrays)

    def counts(self, ranges: tuple[int, int], new_ids: Ids, n_words: int) -> Counts:
        """Return the number of rows of each word in some ranges."""
        counts = np.zeros(n_words, dtype=np.int64)
        for _, (column, _), (ngrams, *_) in self._blocks(ranges):
            words = new_ids[ngrams[:, column]]
            np.add.at(counts, words, 1)
        return counts

    def move(self, ranges: tuple[int, int], other: _SortedRows) -> None:
        """Append the rows of some ranges to others."""
        for k, kind, arrays in self._blocks(ranges):
            other.add(k, kind, *arrays)

    def remove(self) -> None:
        """Remove the files."""
        for k, (_, names) in self._starts:
            self._work.remove(*(self._file(k, name) for name in names))

    def _file(self, k: int, array: str) -> str:
        return f"{self._name}.{k}.{array}"

    def _blocks(
        self, ranges: tuple[int, int]
    ) -> Iterator[tuple[int, Kind, list[NDArray[Any]]]]:
        """Yield the rows of some ranges by length, kind and block."""
        for (k, kind), starts in self._starts.items():
            for span in spans_of(starts, ranges):
                yield k, kind, self._read(k, kind, [span])

    def _read(
        self, k: int, kind: Kind, spans: list[tuple[int, int]]
    ) -> list[NDArray[Any]]:
        """Return the words, numbers and rows in parts of files."""
        words, *others = kind[1]
        of_words = [(k * first, k * n) for first, n in spans]
        ngrams = self._work.at(self._file(k, words), np.int32, *of_words)
        return [ngrams.reshape(-1, k)] + [
            self._work.at(self._file(k, name), dtype, *spans)
            for name, dtype in zip(others, TYPES[1:])
        ]


def _numbered(first_words: Sequence[int] | Index, n_words: int) -> Ids:
    """Return the number of each word's range, from the words with which ranges begin.

    The first range has the words before it, too.
    """
    begins = np.zeros(n_words, dtype=np.int32)
    begins[first_words[1:]] = 1
    return np.cumsum(begins, dtype=np.int32)


def spans_of(
    starts: Sequence[Counts], ranges: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return where each block has some ranges, and their length."""
    ends = (start[list(ranges)].tolist() for start in starts)
    return [(first, last - first) for first, last in ends]
