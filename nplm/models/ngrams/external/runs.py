"""Make sorted runs of counted n-grams from text or counts on disk."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _runs
from nplm.base.blocks import blocks
from nplm.models.ngrams.external.scratch import Scratch

__all__ = ["NUMBER_BYTES", "Packing", "Run", "write_counted_runs", "write_runs"]

NUMBER_BYTES = 8
# Rows written at once.
MAX_PIECE_ROWS = 1 << 16


@dataclass(frozen=True)
class Packing:
    """A packing of n-grams into rows of 64-bit numbers (see ``_runs``).

    Attributes
    ----------
    order : int
        Number of words in an n-gram.
    n_words : int
        Size of the vocabulary.
    boundary : int
        A context ends at the nearest word with this id.
    """

    order: int
    n_words: int
    boundary: int

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
    """A run on disk, open for reading by several threads.

    Parameters
    ----------
    scratch : Scratch
        Folder of the run.
    name : str
        File name of the run.
    packing : Packing
        Layout of its rows.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    width : int
        Number of 64-bit numbers in a row, with its count.
    """

    def __init__(self, scratch: Scratch, name: str, packing: Packing) -> None:
        self._file = scratch.reading(name)
        self._packing = packing
        self.width = packing.width + 1
        self.n_rows = scratch.size(name) // packing.row_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, first: int, rows: NDArray[np.uint64]) -> None:
        """Fill `rows` with the rows of the run from `first` on."""
        buffer = rows.data.cast("B")
        offset = first * self._packing.row_bytes
        while len(buffer):
            n = os.preadv(self._file.fileno(), [buffer], offset)
            if n == 0:
                raise OSError(f"{self._file.name} was truncated while being read")
            buffer, offset = buffer[n:], offset + n

    def first_row(self, word: int) -> int:
        """Return the first row whose nearest word is at least `word`."""
        row = np.empty((1, self.width), dtype=np.uint64)

        def nearest(i: int) -> int:
            self.read(i, row)
            return self._packing.nearest(row[0, 0])

        return bisect_left(range(self.n_rows), word, key=nearest)


def write_runs(
    packing: Packing, ids: str, new_ids: NDArray[np.int32], scratch: Scratch
) -> list[str]:
    """Sort and count the n-grams of a text, in runs that fit in memory.

    Parameters
    ----------
    packing : Packing
        Layout of the rows.
    ids : str
        File of the word ids, int32, with -1 at the end of each line. It is removed.
    new_ids : ndarray of int32, shape (n_words + 1,)
        The final id of each id in the file. The last entry is the boundary.
    scratch : Scratch
        Folder to which the runs are written.

    Returns
    -------
    runs : list of str
        File names of the runs.
    """
    n_tokens = scratch.size(ids) // np.dtype(np.int32).itemsize
    # Bytes per row: two copies for the sort, and the stream before and after renaming.
    n_bytes = 2 * packing.width * NUMBER_BYTES + 2 * 4
    n_threads = scratch.threads.n
    n_rows = max(scratch.memory // n_threads // n_bytes, 16)
    # Give every thread some work.
    n_rows = min(n_rows, -(-n_tokens // n_threads))
    runs: list[str] = []
    buffers = np.empty((n_threads, 2, n_rows, packing.width), dtype=np.uint64)
    scratch.stage("sorting n-grams", n_tokens)
    scratch.needs = n_tokens * packing.row_bytes

    def sort(thread: int, block: tuple[int, NDArray[np.int32]]) -> None:
        number, stream = block
        n = len(stream) - packing.order + 1
        rows, spare = buffers[thread, :, :n]
        _runs.pack_windows(
            stream, packing.order - 1, packing.boundary, packing.n_bits, rows
        )
        if _runs.sort_rows(rows, spare, packing.order, packing.n_bits):
            rows = spare
        name = f"run.{number}"
        piece = np.empty((min(n, MAX_PIECE_ROWS), packing.width + 1), dtype=np.uint64)
        with scratch.writing(name) as file:
            row = 0
            while row < n:
                row, n_written = _runs.count_rows(rows, row, piece)
                file.write(piece[:n_written].data)
        runs.append(name)
        scratch.tell(n)

    scratch.each(sort, enumerate(_streams(packing, ids, new_ids, n_rows, scratch)))
    scratch.remove(ids)
    return runs


def _streams(
    packing: Packing,
    ids: str,
    new_ids: NDArray[np.int32],
    n_rows: int,
    scratch: Scratch,
) -> Iterator[NDArray[np.int32]]:
    """Yield the text in parts, each preceded by its context."""
    n_before = packing.order - 1
    before = np.full(n_before, packing.boundary, dtype=np.int32)
    with scratch.reading(ids) as file:
        while len(part := np.fromfile(file, np.int32, n_rows)):
            stream = np.empty(n_before + len(part), dtype=np.int32)
            stream[:n_before] = before
            own = stream[n_before:]
            # In pieces: indexing converts the ids to int64.
            for piece in blocks(len(part), MAX_PIECE_ROWS):
                own[piece] = new_ids[part[piece]]
            before = stream[len(part) :].copy()
            del part  # only the stream stays in memory
            yield stream


def write_counted_runs(
    packing: Packing,
    tables: Iterable[tuple[NDArray[np.int32], NDArray[np.int64]]],
    scratch: Scratch,
) -> list[str]:
    """Sort n-grams that are already counted, in runs that fit in memory.

    Parameters
    ----------
    packing : Packing
        Layout of the rows.
    tables : iterable of (ndarray of int32, shape (n, order), ndarray of int64)
        n-grams in any order, and how often each occurs. Counts of equal n-grams add up.
    scratch : Scratch
        Folder to which the runs are written.

    Returns
    -------
    runs : list of str
        File names of the runs.
    """
    # Bytes per row: two copies for the sort, and two of its n-gram and count.
    n_bytes = 2 * packing.row_bytes + 2 * (4 * packing.order + 8)
    n_threads = scratch.threads.n
    n_rows = max(scratch.memory // n_threads // n_bytes, 16)
    runs: list[str] = []
    buffers = np.empty((n_threads, 2, n_rows, packing.width + 1), dtype=np.uint64)

    def sort(
        thread: int,
        block: tuple[int, tuple[NDArray[np.int32], NDArray[np.int64]]],
    ) -> None:
        number, (ngrams, counts) = block
        rows, spare = buffers[thread, :, : len(ngrams)]
        own = packing.boundary, packing.n_bits
        _runs.pack_counted(ngrams, counts, *own, rows)
        if _runs.sort_rows(rows, spare, packing.order, packing.n_bits):
            rows = spare
        name = f"run.{number}"
        with scratch.writing(name) as file:
            file.write(rows.data)
        runs.append(name)
        scratch.tell(len(ngrams))

    scratch.each(sort, enumerate(_gathered(tables, packing.order, n_rows)))
    return runs


def _gathered(
    tables: Iterable[tuple[NDArray[np.int32], NDArray[np.int64]]],
    order: int,
    n_rows: int,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Regroup tables into tables of `n_rows` rows; the last one may be shorter."""

    def empty_table() -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return np.empty((n_rows, order), dtype=np.int32), np.empty(n_rows, np.int64)

    (ngrams, counts), n = empty_table(), 0
    for own in tables:
        first = 0
        while first < len(own[0]):
            part = slice(first, first + n_rows - n)
            taken = len(own[1][part])
            ngrams[n : n + taken], counts[n : n + taken] = own[0][part], own[1][part]
            n, first = n + taken, first + taken
            if n == n_rows:
                yield ngrams, counts
                (ngrams, counts), n = empty_table(), 0
    if n:
        yield ngrams[:n], counts[:n]
