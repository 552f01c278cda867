"""ContextTrie: a trie of contexts in sorted arrays, and its builder.

The path from the root to a context begins with the nearest word, so the children of a
context extend it by one older word, and its parent is the next shorter context.
Contexts are numbered level by level, with the root as 0. The children of a context are
contiguous and sorted by word. Six flat arrays store the whole trie, and every stage of
an estimation is one pass over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff, _counts
from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import AnyArray, Counts, Ids, Index
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.trie.work import BLOCK_FOLLOWERS, MAX_NGRAMS, Work


@dataclass(frozen=True, eq=False)
class ContextTrie:
    """Trie of contexts of up to ``order - 1`` words, and the words that follow them.

    The followers and children of the root are dense: they contain every word of the
    vocabulary. Follower w of the root has index w, and the context of the single word w
    is number ``1 + w``.

    - `level_start` (order + 1,): contexts of k words are those from ``level_start[k]``
      to ``level_start[k + 1]``
    - `context_word` (n_contexts,): the oldest word of each context, 0 for the root
    - `child_start` (n_contexts + 1,): first child of each context
    - `start` (n_contexts + 1,): first follower of each context
    - `words` (n_ngrams,): the word of each follower, sorted within a context
    """

    n_words: int
    level_start: Ids
    context_word: Ids
    child_start: Ids
    start: Ids
    words: Ids

    @cached_property
    def arrays(self) -> Trie:
        """The arrays in the form that kernels take."""
        return Trie(
            self.level_start,
            self.context_word,
            self.child_start,
            self.start,
            self.words,
        )

    def __getstate__(self) -> dict[str, object]:
        # Cached properties are quick to compute again. Another process cannot map a
        # file without a name.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: np.array(value) if getattr(value, "filename", "") is None else value
            for name, value in values.items()
        }

    @property
    def order(self) -> int:
        """Number of words in the longest n-gram."""
        return len(self.level_start) - 1

    @property
    def n_ngrams(self) -> Counts:
        """Number of n-grams of each order, shape (order,)."""
        offsets = self.start[self.level_start].astype(np.int64)
        return offsets[1:] - offsets[:-1]

    def followers(self, level: int) -> slice:
        """Return the slice of the followers of all contexts of `level` words."""
        first, last = self.level_start[level : level + 2]
        return slice(int(self.start[first]), int(self.start[last]))

    def parents(self, work: Work | None = None) -> Ids:
        """Return the parent of each context; the root is its own parent."""
        work, children = work or Work(), self.child_start
        parent = work.array(np.int32, n := len(self.context_word))
        # Children are in the order of their parents, beginning with the root's.
        for first, last in blocks_of_contexts(children, 0, n, work.block):
            numbers = np.arange(first, last, dtype=np.int32)
            n_children = np.diff(children[first : last + 1])
            parent[children[first] : children[last]] = np.repeat(numbers, n_children)
            work.release_pages(children)
        return parent

    def context_words(self, contexts: AnyArray, level: int) -> Ids:
        """Return the words of contexts of a level, the nearest in the last column."""
        X = np.empty((len(contexts), level), dtype=np.int32)
        for column in range(level):
            X[:, column] = self.context_word[contexts]
            contexts = self.parents_of(contexts)
        return X

    def parents_of(self, contexts: AnyArray) -> Index:
        """Return the parents of some contexts; that of the root is out of range."""
        # The type of the array: otherwise searchsorted would copy the array.
        contexts = contexts.astype(self.child_start.dtype, copy=False)
        return np.searchsorted(self.child_start, contexts, side="right") - 1

    def ngrams(self, level: int) -> Ids:
        """Return the n-grams (n, level + 1) of contexts of `level` words, in order."""
        first, last = self.level_start[level : level + 2]
        contexts, row, place = self.after(level, int(first), int(last))
        return np.column_stack([contexts[row], self.words[place]])

    def after(self, level: int, first: int, last: int) -> tuple[Ids, Index, slice]:
        """Return the n-grams after contexts `first` to `last` of `level` words.

        Returns the words of these contexts, the nearest in the last column; the row in
        them of each n-gram; and the place of the n-grams in `words`.
        """
        start = self.start[first : last + 1]
        row = np.repeat(np.arange(last - first), np.diff(start))
        contexts = np.arange(first, last, dtype=np.int32)
        place = slice(int(start[0]), int(start[-1]))
        return self.context_words(contexts, level), row, place

    def context(self, X: Ids) -> Ids:
        """Return the number of each whole context, -1 if it is not in the trie."""
        out = np.empty(len(X), dtype=np.int32)
        _backoff.find_contexts(self.arrays, X, self.path(), out)
        return out

    def index(self, X: Ids, y: Ids) -> Ids:
        """Return the index of each n-gram in `words`, -1 if it is not stored."""
        out = np.empty(len(y), dtype=np.int32)
        _backoff.find_ngrams(self.arrays, self.context(X), y, out)
        return out

    def blocks(self, level: int, size: int | None = None) -> Iterator[tuple[int, int]]:
        """Split the contexts of `level` words, as `blocks_of_contexts` does."""
        first, last = map(int, self.level_start[level : level + 2])
        return blocks_of_contexts(self.start, first, last, size)

    @property
    def every_array(self) -> list[NDArray[Any]]:
        """All arrays, whose pages a pass over a mapped trie releases."""
        return [array for array in vars(self).values() if isinstance(array, np.ndarray)]

    def path(self) -> Ids:
        """Return a scratch array for a look-up: the contexts on the path to its end."""
        return np.empty(self.order, dtype=np.int32)


def blocks_of_contexts(
    start: Ids, first: int, last: int, size: int | None = None
) -> Iterator[tuple[int, int]]:
    """Split contexts `first` to `last` into blocks of about `size` followers.

    `start` (n_contexts + 1,) has the first follower of each context. Only a block of
    one context may have more than `size`. Yields the first context of a block and the
    end.
    """
    size = BLOCK_FOLLOWERS if size is None else size
    while first < last:
        # int32, the type of the array: otherwise searchsorted would copy the array.
        limit = np.int32(min(int(start[first]) + size, np.iinfo(np.int32).max))
        end = first + int(np.searchsorted(start[first : last + 1], limit, side="right"))
        end = min(max(end - 1, first + 1), last)
        yield first, end
        first = end


class TrieBuilder:
    """Build the arrays of a trie level by level, from the root."""

    def __init__(self, n_words: int) -> None:
        self.n_words = n_words
        self.level_start = [0, 1]
        self.n_ngrams = n_words
        self.context_word = [np.zeros(1, dtype=np.int32)]
        self.child_start: list[Ids] = []
        self.start = [np.zeros(1, dtype=np.int32)]
        self.words = [np.arange(n_words, dtype=np.int32)]

    def add_context_level(self, child_start: Ids, context_word: Ids) -> None:
        """Append a level; `child_start` counts from the first context of the level."""
        n_contexts = self.level_start[-1]
        if n_contexts + len(context_word) > MAX_NGRAMS:
            message = "more than {0} contexts; lower {order}, or count less text."
            raise parameter_error(message, MAX_NGRAMS)
        self.child_start.append(_shifted(child_start[:-1], n_contexts))
        self.context_word.append(context_word)
        self.level_start.append(n_contexts + len(context_word))

    def rank_contexts(self, context: Ids, older: Ids) -> Ids:
        """Append the contexts one word longer; return the number of each row's."""
        level = len(self.level_start) - 2
        child_start, words, rank = self._ranked(level, context, older)
        self.add_context_level(child_start, words.copy())
        return rank

    def rank_followers(self, level: int, context: Ids, y: Ids) -> Ids:
        """Append the next words of contexts of a level; return the number of each."""
        start, words, rank = self._ranked(level, context, y)
        if self.n_ngrams + len(words) > MAX_NGRAMS:
            message = "more than {0} n-grams; lower {order}, or count less text."
            raise parameter_error(message, MAX_NGRAMS)
        self.start.append(_shifted(start[:-1], self.n_ngrams))
        self.words.append(words.copy())
        self.n_ngrams += len(words)
        return rank

    def add_tables(
        self,
        ngrams: Sequence[Ids],
        *,
        contexts: Mapping[int, Ids] = MappingProxyType({}),
    ) -> tuple[list[Ids], dict[int, Ids]]:
        """Append all n-grams of the tables of 1, 2, ... words.

        Every context is added with all its suffixes, even if these have no n-grams. So
        are `contexts`, by their length. Returns the index of each row among the n-grams
        of its order, and the numbers of `contexts`.
        """
        paths = {k: table[:, :-1] for k, table in enumerate(ngrams) if k}
        paths |= {-k: rows for k, rows in contexts.items() if k < len(ngrams)}
        numbers = self.add_contexts(len(ngrams) - 1, paths)
        positions = [ngrams[0][:, 0]]
        for k, table in enumerate(ngrams[1:], 1):
            followers = numbers.pop(k), table[:, -1]
            positions.append(self.rank_followers(k, *followers))
        first = {-key: np.int32(self.level_start[-key]) for key in numbers}
        return positions, {k: numbers[-k] + first[k] for k in first}

    def add_contexts(self, n_levels: int, paths: Mapping[int, Ids]) -> dict[int, Ids]:
        """Append all levels of contexts; return the number of each row in its level.

        `paths` has the contexts (n, k) by k or -k. Their suffixes are added.
        """
        number = {key: rows[:, -1] for key, rows in paths.items()}
        done: dict[int, Ids] = {}
        for k in range(1, n_levels + 1):
            if k == 1:
                every = np.arange(self.n_words, dtype=np.int32)
                self.add_context_level(np.array([0, self.n_words], np.int32), every)
            else:
                ranked = self.rank_contexts(
                    np.concatenate(list(number.values())),
                    np.concatenate([paths[key][:, -k] for key in number]),
                )
                ends = np.cumsum([len(rows) for rows in number.values()])
                number = dict(zip(number, np.split(ranked, ends[:-1])))
            done |= {key: number.pop(key) for key in (k, -k) if key in number}
        return done

    def structure(self) -> dict[str, Any]:
        """Return the fields of a `ContextTrie` by name."""
        n_contexts = self.level_start[-1]
        childless = np.full(len(self.context_word[-1]) + 1, n_contexts, dtype=np.int32)
        end = np.array([self.n_ngrams], dtype=np.int32)
        return {
            "n_words": self.n_words,
            "level_start": np.array(self.level_start, dtype=np.int32),
            "context_word": np.concatenate(self.context_word),
            "child_start": np.concatenate([*self.child_start, childless]),
            "start": np.concatenate([*self.start, end]),
            "words": np.concatenate(self.words),
        }

    @property
    def n_followers(self) -> list[int]:
        """Number of n-grams of each order."""
        return [len(words) for words in self.words]

    def _ranked(self, level: int, context: Ids, words: Ids) -> tuple[Ids, Ids, Ids]:
        """Return offsets and words of the distinct (context, word), and row numbers."""
        # The kernels number rows with int32.
        if len(context) > MAX_NGRAMS:
            raise parameter_error(
                "{0} rows of n-grams are too many to sort at once (at most {1}); lower "
                "{order}, or count less text.", len(context), MAX_NGRAMS,
            )  # fmt: skip
        start = np.empty(len(self.context_word[level]) + 1, dtype=np.int32)
        distinct = np.empty(len(context), dtype=np.int32)
        rank = np.empty(len(context), dtype=np.int32)
        n = _counts.rank_pairs(context, words, self.n_words, start, distinct, rank)
        return start, distinct[:n], rank


def _shifted(offsets: Ids, by: int) -> Ids:
    return (offsets + np.int32(by)).astype(np.int32, copy=False)
