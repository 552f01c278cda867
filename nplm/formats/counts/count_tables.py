"""Tables of n-gram counts, made by a database or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.base.checks import check_ids
from nplm.base.files.atomic_files import opened
from nplm.formats._words import check_words
from nplm.formats.counts.sources import Words
from nplm.models.ngrams.counts import MAX_TOTAL
from nplm.models.ngrams.discounts import check_counts
from nplm.models.ngrams.external.runs import Packing, write_counted_runs
from nplm.models.ngrams.external.scratch import Scratch

__all__ = ["CountTables", "Tables"]

# Rows looked at at once.
BATCH_ROWS = 1 << 16
# Odd, its bits at random.
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


class CountTables:
    """Tables of n-grams that another program has counted, for `estimate_binary`.

    A row is an n-gram of the highest order, its words' ids from the oldest to the
    newest, and how often it occurs: a row for each place of each line of a text, the
    end of the line too, counted. So each line is followed by the boundary, and before
    its first word the boundary stands as often as there are columns (what stands before
    the nearest boundary is taken as boundary, whatever it is). ``a b``, with 0 the
    boundary, is of order 3 the rows ``0 0 a``, ``0 a b`` and ``a b 0``.

    Parameters
    ----------
    tables : iterable
        Of any of these, in any number: the name of a Parquet file, or of a folder of
        such; what gives Arrow's data (a ``pyarrow`` table, batch or reader, a polars
        frame, a relation of DuckDB); a pair of arrays, of shapes (n, k) and (n,). Of
        columns the last has the counts. Rows may be in any order, and equal ones add
        up. Of more columns than the order of the model the last are taken.
    words : sequence of str
        The word of each id.
    boundary : str, default="</s>"
        The one of `words` that ends a line.
    unknown : str or None, default="<unk>"
        The one of them that stands for words left out, if it is there.

    See Also
    --------
    nplm.KneserNeyLM.fit_counts : Of tables that memory holds.

    Examples
    --------
    >>> import tempfile
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import CountTables, estimate_binary, load_binary
    >>> ngrams = [[0, 0, 1], [0, 1, 2], [1, 2, 0]]  # a b, thrice
    >>> tables = CountTables([(ngrams, [3, 3, 3])], ["</s>", "a", "b"])
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.nplm"
    ...     estimated = estimate_binary(model, tables, path)
    ...     model, words = load_binary(path)
    >>> estimated.n_lines, estimated.n_tokens
    (3, 6)
    """

    def __init__(
        self,
        tables: Iterable[Any],
        words: Sequence[str],
        boundary: str = "</s>",
        unknown: str | None = "<unk>",
    ) -> None:
        if isinstance(tables, (str, os.PathLike)) or _is_arrow(tables):
            raise TypeError(
                f"tables is one {type(tables).__name__}: give a list of it, for there "
                "may be several."
            )
        own = check_words(list(words), len(words))
        if boundary not in own:
            raise ValueError(
                f"boundary={boundary!r} is none of the words: name the one that ends a "
                "line."
            )
        self.tables, self.words, self.boundary = tables, own, boundary
        self.unknown = unknown if unknown in own else None


class Tables:
    """`CountTables` as an estimation begins with them."""

    def __init__(self, given: CountTables) -> None:
        ids = {word: i for i, word in enumerate(given.words)}
        unknown = -1 if given.unknown is None else ids[given.unknown]
        self._tables = given.tables
        self._words = Words(given.words, ids[given.boundary], unknown)
        self.n_known = len(ids)
        self.counts = np.zeros(self.n_known, dtype=np.int64)
        self._before = np.zeros_like(self.counts)
        # Of the contexts that n-grams leave behind, less those that they begin with.
        self._balance = np.zeros((), dtype=np.uint64)

    def words(self, scratch: Scratch) -> Words:
        """Return the words."""
        return self._words

    def runs(self, packing: Packing, scratch: Scratch) -> list[str]:
        """Write runs of n-grams (none of single words); name their files."""
        runs: list[str] = []
        scratch.stage("sorting n-grams", 0)
        tables = self._checked(packing.order)
        if packing.order > 1:
            runs = write_counted_runs(packing, tables, scratch)
        else:
            for ngrams, _ in tables:
                scratch.tell(len(ngrams))
        if not self.counts.any():
            raise ValueError(
                "the tables have no n-gram: nothing to estimate from. If tables is an "
                "iterator, or one of them a reader, it gives its rows only once: make "
                "it anew."
            )
        self._check_whole(packing.order)
        return runs

    def _checked(
        self, order: int
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """Give n-grams of `order` words, and tally what they begin with and leave."""
        total = 0.0
        for table in self._tables:
            for given, numbers in _batches(table):
                ngrams = check_ids(given, "ngrams", ndim=2, n_words=self.n_known)
                counts = check_counts(numbers, len(ngrams))
                if ngrams.shape[1] < order:
                    raise ValueError(
                        f"{_name(table)} has n-grams of {ngrams.shape[1]} words, but "
                        f"order is {order}: count longer ones, or lower order."
                    )
                ngrams, counts = ngrams[counts > 0, -order:], counts[counts > 0]
                total += float(counts.sum(dtype=np.float64))
                if total >= MAX_TOTAL:
                    raise ValueError(
                        f"the counts add up to {total:.3g}, more than {MAX_TOTAL}: "
                        "they overflow; divide them, or count less text."
                    )
                np.add.at(self.counts, ngrams[:, -1], counts)
                if order > 1:
                    self._tally(ngrams, counts)
                yield ngrams, counts

    def _tally(self, ngrams: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        """Weigh the contexts that n-grams begin with against those they leave."""
        boundary = self._words.boundary
        np.add.at(self._before, ngrams[:, -2], counts)
        states = ngrams.T.astype(np.uint64)
        for newer, older in pairwise(states[-2::-1]):
            older[newer == boundary] = boundary
        weight = counts.astype(np.uint64)
        self._balance -= (weight * _hashes(states[:-1])).sum()
        states[:, states[-1] == boundary] = boundary
        self._balance += (weight * _hashes(states[1:])).sum()

    def _check_whole(self, order: int) -> None:
        """Raise if n-grams do not lead from one to the next, as those of lines do."""
        # Of single words only that lines end can be seen.
        odd = np.flatnonzero((self.counts != self._before) & (order > 1))
        boundary = self._words.boundary
        if not self.counts[boundary]:
            end = self._words.spelled()[boundary]
            found = f"{end!r} never comes, so that no line ends"
        elif len(odd):
            word = int(odd[0])
            found = (
                f"{self._words.spelled()[word]!r} comes {self.counts[word]} times, but "
                f"{self._before[word]} times before a word"
            )
        elif self._balance:
            found = "contexts come that no n-gram leads to"
        else:
            return
        raise ValueError(
            f"the tables are not of whole lines: {found}. Count each place of each "
            "line, and the boundary behind it; leave no n-gram out."
        )


def _hashes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash columns of words, so that sums of equal ones alone are equal."""
    found = np.zeros(words.shape[1], dtype=np.uint64)
    for own in words:
        found = (found ^ own) * MULTIPLIER
        found ^= found >> np.uint64(29)
        found *= MULTIPLIER
        found ^= found >> np.uint64(32)
    return found


def _batches(table: Any) -> Iterator[tuple[Any, Any]]:
    """Give the n-grams and counts of a table, some rows at a time."""
    if isinstance(table, (str, os.PathLike)):
        for path in _files(Path(table)):
            for batch in _parquet_batches(path):
                yield _columns(batch, os.fspath(path))
    elif hasattr(table, "__arrow_c_stream__"):
        reader = _arrow("pyarrow").RecordBatchReader.from_stream(table)
        for batch in reader:
            for part in blocks(batch.num_rows, BATCH_ROWS):
                own = batch.slice(part.start, part.stop - part.start)
                yield _columns(own, _name(table))
    elif hasattr(table, "__arrow_c_array__"):
        batch = _arrow("pyarrow").record_batch(table)
        yield from _batches(_arrow("pyarrow").table([*batch], names=batch.schema.names))
    elif isinstance(table, (tuple, list)) and len(table) == 2:
        for part in blocks(max(map(len, table)), BATCH_ROWS):
            yield table[0][part], table[1][part]
    else:
        raise TypeError(
            f"{_name(table)} is no table: give the name of a Parquet file, Arrow data, "
            "or a pair of n-grams and counts."
        )


def _parquet_batches(path: Path) -> Iterator[Any]:
    """Give the rows of a Parquet file, some at a time."""
    parquet = _arrow("pyarrow.parquet")
    # pyarrow's errors name no file; of damage it raises many kinds.
    errors = (_arrow("pyarrow").ArrowException, ValueError, TypeError, OverflowError)
    opened(path).close()  # its errors name the file
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from file.iter_batches(BATCH_ROWS, use_threads=False)
    except MemoryError:
        raise
    except (*errors, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as a Parquet file: {str(error).rstrip('.')}. It is "
            "of another kind, damaged or cut short: write it again."
        ) from error


def _files(path: Path) -> list[Path]:
    """List the Parquet files of a folder, or the one file."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("**/*.parquet"))
    if not found:
        raise ValueError(f"{path} has no file that ends in .parquet.")
    return found


def _columns(batch: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Split a batch of Arrow's into n-grams and counts."""
    if batch.num_columns < 2:
        raise ValueError(
            f"{name} has {batch.num_columns} columns: give those of the words, and "
            "last that of the counts."
        )
    for field, column in zip(batch.schema, batch.columns):
        if column.null_count:
            raise ValueError(
                f"{name} has no value in {column.null_count} rows of {field.name!r}: "
                "where a line has not begun the boundary stands."
            )
        if not _arrow("pyarrow").types.is_integer(field.type):
            raise ValueError(
                f"{name} has {field.type} in {field.name!r}, where whole numbers "
                "should be: ids of words, and last the counts."
            )
    *ngrams, counts = (column.to_numpy(zero_copy_only=False) for column in batch)
    return np.column_stack(ngrams), counts


def _is_arrow(table: Any) -> bool:
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")


def _name(table: Any) -> str:
    is_path = isinstance(table, (str, os.PathLike))
    return os.fspath(table) if is_path else f"the {type(table).__name__}"


def _arrow(module: str) -> Any:
    """Import pyarrow, which only its users need."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "tables of Arrow and Parquet need pyarrow: pip install pyarrow."
        ) from error
