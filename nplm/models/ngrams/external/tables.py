"""Tables of n-grams on disk, and the levels of their trie: as of an ARPA file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nplm.models.ngrams.external.levels import (
    Levels,
    Part,
    name_in_part,
    ranges_of_words,
)
from nplm.models.ngrams.external.scratch import Scratch
from nplm.models.ngrams.trie.backoff_trie import DuplicateNgramError
from nplm.models.ngrams.trie.context_trie import TrieBuilder

__all__ = ["NOT_AN_NGRAM", "NgramTables", "Table"]

# The probability of a context that is not an n-gram.
NOT_AN_NGRAM = np.nan
# Bytes of memory for each n-gram of a range: its words, numbers and ranks, for sorting.
ROW_BYTES = 200


class Table(NamedTuple):
    """Some n-grams of one length.

    Attributes
    ----------
    ngrams : ndarray of int32, shape (n, k)
        The words, the newest in the last column.
    prob, bow : ndarray of float64, shape (n,)
        Probabilities (`NOT_AN_NGRAM` of a context alone), and weights as contexts (1
        for the longest).
    """

    ngrams: NDArray[np.int32]
    prob: NDArray[np.float64]
    bow: NDArray[np.float64]


class NgramTables:
    """Tables of n-grams of 2 words and more, on disk.

    The trie is made of a range of words at a time: those that contexts end with. Its
    n-grams and contexts are adjacent in each level.

    Parameters
    ----------
    scratch : Scratch
        The temporary folder.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._n: Counter[int] = Counter()

    def add(self, table: Table) -> None:
        """Append n-grams, in any order."""
        k = table.ngrams.shape[1]
        self._n[k] += len(table.ngrams)
        for array, values in zip(Table._fields, table):
            with self._scratch.appending(f"table.{k}.{array}") as file:
                file.write(np.ascontiguousarray(values).data)

    def row(self, k: int, row: int) -> Table:
        """Return a table of one n-gram."""
        for first, table in self._blocks(k):
            if first <= row < first + len(table.ngrams):
                own = slice(row - first, row - first + 1)
                return Table(table.ngrams[own], table.prob[own], table.bow[own])
        raise IndexError(row)

    def levels(
        self,
        order: int,
        unigrams: Table,
        settled: Callable[[Table], Table],
        *,
        distinct: bool = True,
    ) -> Levels:
        """Write the levels of the trie, and remove the tables.

        Parameters
        ----------
        order : int
            Words in the longest n-gram.
        unigrams : Table
            Every word of the vocabulary once, in order.
        settled : callable
            Returns a table with the final ids and weights.
        distinct : bool, default=True
            Whether to refuse n-grams that occur twice, which else are one n-gram with
            the numbers of one of them.

        Returns
        -------
        levels : Levels
            With probabilities and weights.

        Raises
        ------
        DuplicateNgramError
            If an n-gram occurs twice and `distinct` is True.
        """
        n_words, scratch = len(unigrams.prob), self._scratch
        lengths = range(2, order + 1)
        n_rows = np.zeros(n_words, dtype=np.int64)
        for k in lengths:
            for _, table in self._blocks(k):
                last = table._replace(ngrams=table.ngrams[:, -2:])
                ngrams, _, bow = settled(last)
                newest = ngrams[bow != 1, 1] if k < order else ngrams[:0, 1]
                for words in (ngrams[:, 0], newest):
                    n_rows += np.bincount(words, minlength=n_words)
        scratch.stage("sorting n-grams", int(n_rows.sum()))
        parts: list[Part] = []
        if lengths:
            ranges = ranges_of_words(n_rows, scratch.memory // ROW_BYTES)
            for own in ranges:
                sizes = self._write_part(
                    len(parts), own, order, unigrams, settled, distinct
                )
                parts.append(Part(len(parts), sizes))
                scratch.tell(int(n_rows[slice(*own)].sum()))
        for k in lengths:
            for array in Table._fields if self._n[k] else ():
                scratch.remove(f"table.{k}.{array}")
        prob = {"prob": unigrams.prob.astype(np.float32)}
        return Levels(n_words, prob, parts, scratch)

    def _blocks(self, k: int) -> Iterator[tuple[int, Table]]:
        """Yield the n-grams of a length in blocks, each with its first row."""
        if not self._n[k]:
            return
        size, first = self._scratch.block, 0
        files = [self._scratch.reading(f"table.{k}.{own}") for own in Table._fields]
        try:
            while first < self._n[k]:
                ngrams = np.fromfile(files[0], np.int32, size * k).reshape(-1, k)
                rest = (np.fromfile(file, np.float64, size) for file in files[1:])
                yield first, Table(ngrams, *rest)
                first += len(ngrams)
        finally:
            for file in files:
                file.close()

    def _write_part(
        self,
        number: int,
        words: tuple[int, int],
        order: int,
        unigrams: Table,
        settled: Callable[[Table], Table],
        distinct: bool,
    ) -> list[tuple[int, int]]:
        """Write the levels of the contexts that end with a range of words."""
        first, last = words
        n_words = len(unigrams.prob)
        every = np.arange(n_words, dtype=np.int32)
        ngrams, probs = [every[:, np.newaxis]], [unigrams.prob]
        contexts, bows = {}, {1: unigrams.bow[first:last]}
        rows: list[NDArray[np.intp]] = [np.arange(n_words)]
        for k in range(2, order + 1):
            found = [_chosen(k, first, last, settled, *own) for own in self._blocks(k)]
            parts = [np.concatenate(own) for own in zip(*found)]
            if not parts:
                none = np.empty((0, k), dtype=np.int32), np.empty(0)
                parts = [*none, np.empty(0, dtype=np.intp), *none]
            ngrams.append(parts[0])
            probs.append(parts[1])
            rows.append(parts[2])
            if k < order:
                contexts[k], bows[k] = parts[3:]
        builder = TrieBuilder(n_words)
        positions, made = builder.add_tables(ngrams, contexts=contexts)
        sizes = []
        for level in range(1, order):
            position, n = positions[level], builder.n_followers[level]
            if distinct and len(position) != n:
                by_position = np.argsort(position, kind="stable")
                repeated = by_position[1:][np.diff(position[by_position]) == 0]
                raise DuplicateNgramError(level + 1, int(rows[level][repeated].min()))
            begin, end = builder.level_start[level : level + 2]
            own = slice(first, last) if level == 1 else slice(0, end - begin)
            prob = np.empty(n, dtype=np.float32)
            prob[position] = probs[level]
            bow = np.ones(own.stop - own.start, dtype=np.float32)
            if level == 1:
                bow[:] = bows[1]
            else:
                bow[made[level] - begin] = bows[level]
            n_before = np.int32(sum(builder.n_followers[:level]))
            arrays: dict[str, Any] = {
                # Those of the contexts of one word are known.
                "context_word": builder.context_word[level] if level > 1 else every[:0],
                # The longest contexts have no children.
                "child_start": every[:0],
                "start": builder.start[level][own] - n_before,
                "words": builder.words[level],
                "prob": prob,
                "bow": bow,
            }
            if level < order - 1:
                children = builder.child_start[level][own]
                arrays["child_start"] = children - np.int32(end)
            for name, values in arrays.items():
                path = name_in_part(number, level, name)
                with self._scratch.writing(path) as file:
                    file.write(np.ascontiguousarray(values).data)
            sizes.append((own.stop - own.start, n))
        return sizes


def _chosen(
    k: int,
    first: int,
    last: int,
    settled: Callable[[Table], Table],
    first_row: int,
    table: Table,
) -> tuple[NDArray[Any], ...]:
    """Return the n-grams and the contexts that belong to a range of words.

    Returns the words of the n-grams, their probabilities and rows, and the words and
    weights of the contexts.
    """
    ngrams, prob, bow = settled(table)
    rows = np.flatnonzero(
        (ngrams[:, -2] >= first) & (ngrams[:, -2] < last) & ~np.isnan(prob)
    )
    ends = (ngrams[:, -1] >= first) & (ngrams[:, -1] < last)
    contexts = np.flatnonzero(ends & (bow != 1))
    own = ngrams[rows], prob[rows], first_row + rows
    return *own, ngrams[contexts], bow[contexts]
