"""Tables of n-grams in any order, as of an ARPA file, and the trie of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _counts
from nplm.base.array_types import Counts, Floats, Ids, Index
from nplm.models.ngrams.stages import levels
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.bits import word_bits
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
# Files of ranges. The pages of one that was read are used again.
N_FILES = 16
# The word whose range decides: of n-grams with a probability, and of contexts with a
# weight.
OF_NGRAMS, OF_CONTEXTS = -2, -1


class DuplicateNgramError(ValueError):
    """Raised if tables contain an n-gram twice; has its words."""

    def __init__(self, ngram: Ids) -> None:
        super().__init__(f"{ngram.tolist()} repeats an earlier n-gram")
        self.ngram = ngram


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
        n_ranges, self._n_bits = len(self._first_words), word_bits(n_words)
        numbers = n_ranges, range_of_word, self._n_bits
        self._rows = SortedRows("range", *numbers, work)

    def add(self, table: NgramTable) -> None:
        """Append n-grams, in any order."""
        ngrams, bow = np.ascontiguousarray(table.ngrams), table.bow
        if bow is not None:
            bow = np.where(bow == 1, NO_CONTEXT, bow).astype(np.float32)
        self.add_stored(NgramTable(ngrams, table.prob.astype(np.float32), bow))

    def add_stored(self, table: NgramTable) -> None:
        """Append n-grams with numbers of float32, and `NO_CONTEXT` for weights of 1."""
        k = table.ngrams.shape[1]
        self._rows.add((k, OF_NGRAMS), table.ngrams, table.prob)
        if table.bow is not None:
            self._rows.add((k, OF_CONTEXTS), table.ngrams, table.bow)

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
                chosen = {
                    k: _chosen(rows, k, number, settled, new_ids) for k in lengths
                }
                rows.remove_before(number[1])
                self._write_range(words, sizes, unigrams, chosen, distinct)
                work.advance(int(rows.sizes[slice(*number)].sum()))
        prob = {"prob": unigrams.prob.astype(np.float32)}
        parts = [levels.Part(0, sizes[:-1])] if lengths else []
        return BackoffTrie(n_words, **levels.join_parts(n_words, prob, parts, work))

    def _ranges(
        self, n_words: int, new_ids: Ids | None
    ) -> Iterator[tuple[tuple[int, int], SortedRows, tuple[int, int]]]:
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
            counts = np.zeros(n_words, dtype=np.int64)
            for (_, column), ngrams, _ in self._rows.blocks(ranges):
                np.add.at(counts, new_ids[ngrams[:, column]], 1)
            own = counts[first:last]
            parts = list(levels.ranges_of_words(own, min(most, MAX_ROWS)))
            range_of_word = _numbered([first + part[0] for part in parts], n_words)
            numbers = len(parts), range_of_word[new_ids], self._n_bits
            rows = SortedRows("part of range", *numbers, self._work)
            for block in self._rows.blocks(ranges):
                rows.add(*block)
            self._rows.remove_before(ranges[1])
            for i, part in enumerate(parts):
                yield (first + part[0], first + part[1]), rows, (i, i + 1)

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
        for k, table in chosen.items():
            ngrams.append(table.ngrams)
            probs.append(table.prob)
            if k < order:
                contexts[k], bows[k] = table.contexts, table.bow
        builder = TrieBuilder(n_words)
        positions, numbers = builder.add_tables(ngrams, contexts=contexts)
        for level in range(1, order):
            position, n = positions[level], builder.n_followers[level]
            if distinct and len(position) != n:
                by_position = np.argsort(position, kind="stable")
                repeated = by_position[1:][np.diff(position[by_position]) == 0]
                raise DuplicateNgramError(ngrams[level][repeated.min()])
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
    contexts: Ids
    bow: NDArray[np.float32]


def _chosen(
    rows: SortedRows,
    k: int,
    ranges: tuple[int, int],
    settled: Callable[[NgramTable], NgramTable],
    new_ids: Ids | None,
) -> _Chosen:
    """Return the n-grams and contexts of some ranges, with their final numbers."""
    arrays: list[NDArray[Any]] = []
    for field, column in enumerate((OF_NGRAMS, OF_CONTEXTS), 1):
        ngrams, values = rows.read((k, column), k, ranges)
        table = NgramTable(ngrams, values, values if field == 2 else None)
        final: Any = settled(table)[field]
        if final is not values:
            stays = ~np.isnan(final)
            ngrams, values = ngrams[stays], final[stays]
        if new_ids is not None:
            words = ngrams.reshape(-1)
            _counts.rename(words, new_ids, words)
        arrays += ngrams, values
    return _Chosen(*arrays)


class SortedRows:
    """Rows of words with a number each, in files: each block of them sorted by range.

    - `sizes` (n_ranges,): number of rows in each range
    - `range_of_word`: the range of a row is that of its word in one column
    - `n_bits`: bits of a word
    """

    def __init__(
        self, name: str, n_ranges: int, range_of_word: Ids, n_bits: int, work: Work
    ) -> None:
        self._name, self._work = name, work
        self._range_of_word, self._n_bits = range_of_word, n_bits
        self.sizes = np.zeros(n_ranges, dtype=np.int64)
        # The first range of each file, and the end; the bytes in each file.
        n_files = min(n_ranges, N_FILES)
        self._bounds = [n_ranges * i // n_files for i in range(n_files + 1)]
        self._n_bytes = [0] * n_files
        # Of each block the first row of each range and the end, and the byte of each
        # file at which its row 0 would be.
        self._blocks: dict[tuple[int, int], list[tuple[Counts, list[int]]]] = {}

    def add(
        self, kind: tuple[int, int], rows: Ids, values: NDArray[np.float32]
    ) -> None:
        """Append the rows that have a value; a kind ends with their column."""
        size = _counts.record_bytes(rows.shape[1], self._n_bits)
        starts = np.empty(len(self.sizes) + 1, dtype=np.int64)
        records = np.empty(len(rows) * size, dtype=np.uint8)
        column = kind[1] % rows.shape[1]
        inputs = rows, values, column, self._range_of_word, self._n_bits
        _counts.pack_by_range(*inputs, starts, records)
        self.sizes += np.diff(starts)
        offsets = []
        ends = (starts[self._bounds] * size).tolist()
        for file, (first, last) in enumerate(pairwise(ends)):
            offsets.append(self._n_bytes[file] - first)
            if first < last:
                self._work.append(self._file(file), records[first:last])
                self._n_bytes[file] += last - first
        self._blocks.setdefault(kind, []).append((starts, offsets))

    def read(
        self, kind: tuple[int, int], width: int, ranges: tuple[int, int]
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the rows of some ranges, of `width` words, and their values."""
        return self._read(self._blocks.get(kind, []), width, ranges)

    def blocks(
        self, ranges: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int], Ids, NDArray[np.float32]]]:
        """Yield the rows of some ranges by kind and block: n-grams of their length."""
        for kind, own in self._blocks.items():
            for block in own:
                yield kind, *self._read([block], kind[0], ranges)

    def remove_before(self, end: int) -> None:
        """Remove the files whose ranges are all before `end`."""
        for file, last in enumerate(self._bounds[1:]):
            if last <= end:
                self._work.remove(self._file(file))

    def _file(self, number: int) -> str:
        return f"{self._name}.{number}"

    def _read(
        self,
        blocks: list[tuple[Counts, list[int]]],
        width: int,
        ranges: tuple[int, int],
    ) -> tuple[Ids, NDArray[np.float32]]:
        size, (first, last) = _counts.record_bytes(width, self._n_bits), ranges
        n = np.empty((len(blocks), last - first), dtype=np.int64)
        for i, (starts, _) in enumerate(blocks):
            n[i] = np.diff(starts[first : last + 1])
        # One range after the other, and the blocks of each: n-grams of a range are in
        # the order in which they were added.
        firsts = np.cumsum(n.T).reshape(n.T.shape).T - n
        rows = np.empty((int(n.sum()), width), dtype=np.int32)
        values = np.empty(len(rows), dtype=np.float32)
        for file, (begin, end) in enumerate(pairwise(self._bounds)):
            begin, end = max(begin, first), min(end, last)
            if begin >= end or not blocks:
                continue
            spans = []
            for starts, offsets in blocks:
                at, stop = (starts[[begin, end]] * size).tolist()
                spans.append((offsets[file] + at, stop - at))
            own = slice(begin - first, end - first)
            places = np.stack([firsts[:, own].ravel(), n[:, own].ravel()], axis=1)
            records = self._work.at(self._file(file), np.uint8, *spans)
            _counts.unpack_rows(records, self._n_bits, places, rows, values)
        return rows, values


def _numbered(first_words: Sequence[int] | Index, n_words: int) -> Ids:
    """Return the number of each word's range, from the words with which ranges begin.

    The first range has the words before it, too.
    """
    begins = np.zeros(n_words, dtype=np.int32)
    begins[first_words[1:]] = 1
    return np.cumsum(begins, dtype=np.int32)
