"""Sort and count n-grams, in runs that fit in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _runs
from nplm.base.array_types import Counts, Ids
from nplm.base.blocks import blocks
from nplm.base.checks import count_ids, trusted_ids
from nplm.models.ngrams.trie.work import Work

NUMBER_BYTES = 8
# Rows written at once.
MAX_PIECE_ROWS = 1 << 16


@dataclass(frozen=True)
class Packing:
    """A packing of n-grams into rows of 64-bit numbers (see ``_runs``).

    A context ends at the nearest `boundary` (`n_words` for none). Without `marks`
    n-grams end before it.
    """

    order: int
    n_words: int
    boundary: int
    marks: bool = True

    @classmethod
    def of(cls, order: int, n_words: int, boundary: int | None) -> Self:
        """Return the packing of windows, whose boundary may be None."""
        return cls(order, n_words, n_words if boundary is None else boundary)

    @cached_property
    def n_bits(self) -> int:
        """Number of bits of a word id."""
        return max(1, (self.n_words - 1).bit_length())

    @cached_property
    def width(self) -> int:
        """Number of 64-bit numbers in a row, without its count."""
        return -(-self.order // (64 // self.n_bits))

    @property
    def row_bytes(self) -> int:
        """Size of a row with its count, in bytes."""
        return (self.width + 1) * NUMBER_BYTES

    def nearest(self, number: int) -> int:
        """Return the nearest word of a row, given its first number."""
        n_in_first = min(self.order, 64 // self.n_bits)
        return int(number) >> (n_in_first - 1) * self.n_bits


class Run:
    """A sorted run of `n_rows` rows at the end of a file, which several threads read.

    A row has `width` 64-bit numbers with its count. If the run `is_distinct`, no two
    rows are equal.
    """

    def __init__(
        self, work: Work, file: str, packing: Packing, *, is_distinct: bool = True
    ) -> None:
        self.is_distinct = is_distinct
        self._work, self.file, self._packing = work, file, packing
        self.width = packing.width + 1
        self._before, self.n_rows = work.size(file) // packing.row_bytes, 0

    def append(self, rows: NDArray[np.uint64]) -> None:
        """Write the next rows."""
        self._work.append(self.file, rows)
        self.n_rows += len(rows)

    def rows(self, first: int, last: int) -> NDArray[np.uint64]:
        """Return the rows from `first` to before `last`."""
        at, n = (self._before + first) * self.width, (last - first) * self.width
        rows = self._work.at(self.file, np.uint64, (at, n))
        return rows.reshape(-1, self.width)

    def first_row(self, word: int) -> int:
        """Return the first row whose nearest word is at least `word`."""

        def nearest(i: int) -> int:
            return self._packing.nearest(self.rows(i, i + 1)[0, 0])

        return bisect_left(range(self.n_rows), word, key=nearest)


class Source(Protocol):
    """N-grams to be counted."""

    def runs(self, packing: Packing, work: Work) -> tuple[list[Run], Counts]:
        """Write sorted runs of n-grams (none for order 1), and count the words."""


class Stream:
    """Consecutive words of a text, after those of the first context."""

    is_counted = False

    def __init__(self, ids: Ids, n_context: int) -> None:
        self._ids, self._n = ids, len(ids) - n_context

    def __len__(self) -> int:
        return self._n

    def pack(self, packing: Packing, rows: NDArray[np.uint64]) -> None:
        """Fill the rows of the n-grams."""
        arguments = packing.order - 1, packing.boundary, packing.n_bits
        _runs.pack_windows(self._ids, *arguments, rows)


@dataclass(frozen=True, eq=False)
class Windows(Source):
    """Contexts and next words, whose counts (n,) add up; with `labels`, of classes."""

    X: Ids
    y: Ids
    counts: Counts | None = None
    labels: Ids | None = None

    @property
    def is_counted(self) -> bool:
        """Whether rows have their counts before they are sorted."""
        return self.counts is not None

    def __len__(self) -> int:
        return len(self.y)

    def pack(self, packing: Packing, rows: NDArray[np.uint64]) -> None:
        """Fill the rows of the n-grams."""
        for part in blocks(len(self), MAX_PIECE_ROWS):
            ngrams = np.empty((part.stop - part.start, packing.order), dtype=np.int32)
            ngrams[:, :-1], ngrams[:, -1] = self.X[part], self.y[part]
            # Ids are checked, but another thread may have changed the array.
            if self.labels is None:
                ngrams = trusted_ids(ngrams, packing.n_words)
            else:
                ngrams = self.labels[trusted_ids(ngrams, len(self.labels))]
            counts = None if self.counts is None else self.counts[part]
            arguments = packing.boundary, packing.n_bits
            _runs.pack_counted(ngrams, counts, *arguments, rows[part])

    def runs(self, packing: Packing, work: Work) -> tuple[list[Run], Counts]:
        runs, labels, n_words = list[Run](), self.labels, packing.n_words
        if packing.order > 1:
            work.stage("sorting n-grams", len(self))
            runs = write_runs(packing, self._pieces(packing, work), work)
        if labels is None:
            return runs, count_ids(self.y, n_words, self.counts)
        of_words = count_ids(self.y, len(labels), self.counts)
        return runs, np.bincount(labels, of_words, n_words).astype(np.int64)

    def _pieces(self, packing: Packing, work: Work) -> Iterator[Windows]:
        """Cut windows into pieces whose sorting fits in memory."""
        n_bytes = 2 * (packing.width + self.is_counted) * NUMBER_BYTES
        n_rows = max(work.memory // work.n_threads // n_bytes, 16)
        for part in blocks(len(self), n_rows):
            counts = None if self.counts is None else self.counts[part]
            yield Windows(self.X[part], self.y[part], counts, self.labels)


def write_runs(
    packing: Packing, pieces: Iterable[Stream | Windows], work: Work
) -> list[Run]:
    """Sort and count n-grams, in a run for each piece; a file for each thread."""
    runs: list[Run] = []
    buffers = [np.empty((2, 0, 0), dtype=np.uint64)] * work.n_threads

    def sort(thread: int, piece: Stream | Windows) -> None:
        n, width = len(piece), packing.width + piece.is_counted
        if buffers[thread].shape[1] < n:
            buffers[thread] = np.empty((2, 0, 0), dtype=np.uint64)  # the old one first
            buffers[thread] = np.empty((2, n, width), dtype=np.uint64)
        rows, spare = buffers[thread][:, :n]
        piece.pack(packing, rows)
        if _runs.sort_rows(rows, spare, packing.order, packing.n_bits):
            rows = spare
        file, is_distinct = f"runs.{thread}", not piece.is_counted
        run = Run(work, file, packing, is_distinct=is_distinct)
        for part in [rows] if piece.is_counted else _counted(rows):
            run.append(part)
        runs.append(run)
        work.advance(n)

    work.each(sort, pieces)
    return runs


def _counted(rows: NDArray[np.uint64]) -> Iterator[NDArray[np.uint64]]:
    """Yield the distinct ones of sorted rows with their counts."""
    size = min(len(rows), MAX_PIECE_ROWS)
    out, row = np.empty((size, rows.shape[1] + 1), dtype=np.uint64), 0
    while row < len(rows):
        row, n = _runs.count_rows(rows, row, out)
        yield out[:n]


def streams(packing: Packing, ids: str, new_ids: Ids, work: Work) -> Iterator[Stream]:
    """Yield a text in parts that fit in memory, each preceded by its context.

    The file `ids` has int32, -1 at the end of each line; `new_ids` (n_words + 1,) are
    the final ids, then the boundary.
    """
    n_tokens = work.size(ids) // np.dtype(np.int32).itemsize
    # Bytes per row: two copies for the sort, and the stream before and after renaming.
    n_bytes = 2 * packing.width * NUMBER_BYTES + 2 * 4
    n_rows = max(work.memory // work.n_threads // n_bytes, 16)
    # Give every thread some work.
    n_rows = min(n_rows, -(-n_tokens // work.n_threads))
    n_before = packing.order - 1
    before = np.full(n_before, packing.boundary, dtype=np.int32)
    for part in work.read(ids, np.int32, n_rows):
        stream = np.empty(n_before + len(part), dtype=np.int32)
        stream[:n_before] = before
        words = stream[n_before:]
        # In pieces: indexing converts the ids to int64.
        for piece in blocks(len(part), MAX_PIECE_ROWS):
            words[piece] = new_ids[part[piece]]
        before = stream[len(part) :].copy()
        del part  # only the stream stays in memory
        yield Stream(stream, n_before)


def write_runs_of_tables(
    packing: Packing, tables: Iterable[tuple[Ids, Counts]], work: Work, total: int = 0
) -> list[Run]:
    """Sort tables of n-grams and counts into runs; read them alone for order 1."""
    work.stage("sorting n-grams", total)
    if packing.order > 1:
        return write_runs(packing, _regrouped(packing, tables, work), work)
    for ngrams, _ in tables:
        work.advance(len(ngrams))
    return []


def _regrouped(
    packing: Packing, tables: Iterable[tuple[Ids, Counts]], work: Work
) -> Iterator[Windows]:
    """Regroup tables of n-grams and counts into tables that fit in memory."""
    order = packing.order
    # Bytes per row: two copies for the sort, and two of its n-gram and count.
    n_bytes = 2 * packing.row_bytes + 2 * (4 * order + 8)
    n_rows = max(work.memory // work.n_threads // n_bytes, 16)

    def empty_table() -> tuple[Ids, Counts]:
        return np.empty((n_rows, order), dtype=np.int32), np.empty(n_rows, np.int64)

    (ngrams, counts), n = empty_table(), 0
    for rows, counts_of_rows in tables:
        first = 0
        while first < len(rows):
            part = slice(first, first + n_rows - n)
            taken = len(counts_of_rows[part])
            ngrams[n : n + taken] = rows[part]
            counts[n : n + taken] = counts_of_rows[part]
            n, first = n + taken, first + taken
            if n == n_rows:
                yield Windows(ngrams[:, :-1], ngrams[:, -1], counts)
                (ngrams, counts), n = empty_table(), 0
    if n:
        yield Windows(ngrams[:n, :-1], ngrams[:n, -1], counts[:n])
