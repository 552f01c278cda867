"""Tables of n-gram counts from a database or a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import AnyArray, Counts, Ids
from nplm.base.blocks import blocks
from nplm.base.checks import check_ids
from nplm.base.encoded_words import EncodedWords
from nplm.base.exceptions import optional_module, parameter_error
from nplm.base.files.atomic_files import opened
from nplm.formats._words import StoredWords, check_words
from nplm.formats.counts.sources import TextSource
from nplm.models.ngrams.stages.counts import check_counts, check_total
from nplm.models.ngrams.stages.runs import Packing, Run, write_runs_of_tables
from nplm.models.ngrams.trie.work import Work

BATCH_ROWS = 1 << 16
# An odd number with random bits, for `_hashes`.
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)


class CountTables:
    """Tables of n-gram counts from another program, for `estimate_binary`.

    Each row is an n-gram of the highest order, as word ids from the oldest to the
    newest, and its count. Every position of every line of the text is counted,
    including the end of the line. Each line is followed by the boundary, and its first
    word is preceded by boundaries that fill the columns (words before the nearest
    boundary are read as boundaries). With boundary 0 and order 3, the line ``a b``
    makes the rows ``0 0 a``, ``0 a b`` and ``a b 0``.

    Parameters
    ----------
    tables : iterable
        Any number of: names of Parquet files, or of folders with Parquet files; Arrow
        data (a ``pyarrow`` table, batch or reader, a polars frame, a relation of
        DuckDB); pairs of arrays, of shapes (n, k) and (n,). The last column has the
        counts. Rows may be in any order, and the counts of equal rows add up. If there
        are more columns than the order of the model, the last ones are used.
    words : sequence of str
        The word of each id.
    boundary : str, default="</s>"
        The word in `words` that ends a line.
    unknown : str or None, default="<unk>"
        The word in `words` that stands for unknown words, if there is one.

    See Also
    --------
    nplm.KneserNeyLM.fit_counts : Fit a model to counts in memory.

    Examples
    --------
    >>> from nplm import KneserNeyLM
    >>> from nplm.formats import CountTables, estimate_binary, load_binary
    >>> ngrams = [[0, 0, 1], [0, 1, 2], [1, 2, 0]]  # a b, three times
    >>> tables = CountTables([(ngrams, [3, 3, 3])], ["</s>", "a", "b"])
    >>> model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    >>> estimated = estimate_binary(model, tables, "model.nplm")
    >>> model, words = load_binary("model.nplm")
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
                f"tables is a single {type(tables).__name__}: pass a list, [tables], "
                "as there may be several."
            )
        spelled = check_words(list(words), len(words))
        if boundary not in spelled:
            raise ValueError(
                f"boundary={boundary!r} is not in words: name the word that ends a "
                "line."
            )
        self.tables, self.words, self.boundary = tables, spelled, boundary
        self.unknown = unknown if unknown in spelled else None


class Tables(TextSource):
    """`CountTables` as the source of an estimation."""

    def __init__(self, tables: CountTables) -> None:
        ids = {word: i for i, word in enumerate(tables.words)}
        unknown = -1 if tables.unknown is None else ids[tables.unknown]
        self._tables = tables.tables
        self._boundary = end = ids[tables.boundary]
        self._words = StoredWords(EncodedWords.of(tables.words), end, unknown)
        self.n_known = len(ids)
        self.counts = np.zeros(self.n_known, dtype=np.int64)
        self._before = np.zeros_like(self.counts)
        # Hashes of the contexts after each n-gram, less those of the contexts before.
        self._balance = np.zeros((), dtype=np.uint64)

    def words(self, work: Work) -> StoredWords:
        return self._words

    def runs(self, packing: Packing, work: Work) -> tuple[list[Run], Counts]:
        tables = self._checked(packing.order)
        runs = write_runs_of_tables(packing, tables, work)
        if not self.counts.any():
            raise ValueError(
                "the tables have no n-gram: nothing to estimate from. If tables is an "
                "iterator, or one of them a reader, it can be read only once: create "
                "it again."
            )
        self._check_complete(packing.order)
        return runs, self.counts

    def _checked(self, order: int) -> Iterator[tuple[Ids, Counts]]:
        """Yield n-grams of `order` words and their counts, and tally their contexts."""
        total = 0.0
        for table in self._tables:
            for rows, numbers in _batches(table):
                ngrams = check_ids(rows, "ngrams", ndim=2, n_words=self.n_known)
                counts = check_counts(numbers, len(ngrams))
                if ngrams.shape[1] < order:
                    raise parameter_error(
                        "{0} has n-grams of {1} words, but {order:order} is {2}: count "
                        "longer ones, or lower {order}.",
                        _name(table), ngrams.shape[1], order,
                    )  # fmt: skip
                ngrams, counts = ngrams[counts > 0, -order:], counts[counts > 0]
                total += float(counts.sum(dtype=np.float64))
                check_total(total, "the counts")
                np.add.at(self.counts, ngrams[:, -1], counts)
                if order > 1:
                    self._tally(ngrams, counts)
                yield ngrams, counts

    def _tally(self, ngrams: Ids, counts: Counts) -> None:
        """Add the contexts after n-grams to the balance, subtract those before."""
        boundary = self._boundary
        np.add.at(self._before, ngrams[:, -2], counts)
        states = ngrams.T.astype(np.uint64)
        for newer, older in pairwise(states[-2::-1]):
            older[newer == boundary] = boundary
        weight = counts.astype(np.uint64)
        self._balance -= (weight * _hashes(states[:-1])).sum()
        states[:, states[-1] == boundary] = boundary
        self._balance += (weight * _hashes(states[1:])).sum()

    def _check_complete(self, order: int) -> None:
        """Raise unless the n-grams are those of complete lines."""
        # With order 1, only the presence of line ends can be checked.
        unbalanced = np.flatnonzero((self.counts != self._before) & (order > 1))
        boundary = self._boundary
        if not self.counts[boundary]:
            end = self._words.words[boundary]
            wrong = f"{end!r} never occurs, so no line ends"
        elif len(unbalanced):
            word = int(unbalanced[0])
            wrong = (
                f"{self._words.words[word]!r} occurs {self.counts[word]} times, "
                f"but {self._before[word]} times before a word"
            )
        elif self._balance:
            wrong = "some contexts do not follow from any n-gram"
        else:
            return
        raise ValueError(
            f"the tables do not hold complete lines: {wrong}. Count every position of "
            "every line, and the boundary after it; leave no n-gram out."
        )


def _hashes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash columns of words; unequal multisets almost surely have unequal sums."""
    hashes = np.zeros(words.shape[1], dtype=np.uint64)
    for row in words:
        hashes = (hashes ^ row) * MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
        hashes *= MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _batches(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the n-grams and counts of a table in batches of rows."""
    if isinstance(table, (str, os.PathLike)):
        for path in _files(Path(table)):
            for batch in _parquet_batches(path):
                yield _columns(batch, os.fspath(path))
    elif hasattr(table, "__arrow_c_stream__"):
        reader = _arrow("pyarrow").RecordBatchReader.from_stream(table)
        for batch in reader:
            for part in blocks(batch.num_rows, BATCH_ROWS):
                rows = batch.slice(part.start, part.stop - part.start)
                yield _columns(rows, _name(table))
    elif hasattr(table, "__arrow_c_array__"):
        batch = _arrow("pyarrow").record_batch(table)
        yield from _batches(_arrow("pyarrow").table([*batch], names=batch.schema.names))
    elif isinstance(table, (tuple, list)) and len(table) == 2:
        for part in blocks(max(map(len, table)), BATCH_ROWS):
            yield table[0][part], table[1][part]
    else:
        raise TypeError(
            f"{_name(table)} is not a table: pass the name of a Parquet file, Arrow "
            "data, or a pair of n-grams and counts."
        )


def _parquet_batches(path: Path) -> Iterator[object]:
    """Yield the rows of a Parquet file in batches."""
    parquet = _arrow("pyarrow.parquet")
    # pyarrow raises many types of errors for damaged files, without their names.
    errors = (_arrow("pyarrow").ArrowException, ValueError, TypeError, OverflowError)
    opened(path).close()  # raises errors that name the file
    try:
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from file.iter_batches(BATCH_ROWS, use_threads=False)
    except MemoryError:
        raise
    except (*errors, OSError) as error:
        raise ValueError(
            f"{path} cannot be read as a Parquet file: {str(error).rstrip('.')}. It is "
            "of another format, damaged or truncated: write it again."
        ) from error


def _files(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, or the file itself."""
    if not path.is_dir():
        return [path]
    paths = sorted(path.glob("**/*.parquet"))
    if not paths:
        raise ValueError(f"{path} has no file that ends in .parquet.")
    return paths


def _columns(batch: Any, name: str) -> tuple[AnyArray, AnyArray]:
    """Split an Arrow batch into n-grams and counts."""
    if batch.num_columns < 2:
        raise ValueError(
            f"{name} has {batch.num_columns} columns, but needs at least one for words "
            "and the last for counts."
        )
    for field, column in zip(batch.schema, batch.columns):
        if column.null_count:
            raise ValueError(
                f"{name} has {column.null_count} missing values in {field.name!r}: "
                "fill positions before the start of a line with the boundary."
            )
        if not _arrow("pyarrow").types.is_integer(field.type):
            raise ValueError(
                f"{name} has {field.type} in {field.name!r}, but columns must hold "
                "whole numbers: word ids, and counts in the last."
            )
    *ngrams, counts = (column.to_numpy(zero_copy_only=False) for column in batch)
    return np.column_stack(ngrams), counts


def _is_arrow(table: object) -> bool:
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")


def _name(table: Any) -> str:
    is_path = isinstance(table, (str, os.PathLike))
    return os.fspath(table) if is_path else f"the {type(table).__name__}"


def _arrow(module: str) -> Any:
    return optional_module(module, "A table of Arrow or Parquet", "pyarrow")
