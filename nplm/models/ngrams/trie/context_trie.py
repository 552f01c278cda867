"""A trie of contexts in sorted arrays, and how it is built.

A context is reached from the root by its nearest word first, so the children of
a context are its extensions by one more, older, word: the way back from a long
context to the shorter ones is the way up. Contexts are numbered level by level
(the root is 0), children of one context side by side and sorted by word; then
six flat arrays hold the whole trie, and every stage of an estimation is one
pass over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff, _counts
from nplm._kernels.ngrams._trie import Trie

__all__ = [
    "BLOCK_FOLLOWERS",
    "ContextTrie",
    "TrieBuilder",
    "WeightedTrie",
    "blocks_of_contexts",
]

MAX_NGRAMS = np.iinfo(np.int32).max
# Followers of the contexts of a block: an interrupt waits for no more.
BLOCK_FOLLOWERS = 1 << 20


@dataclass(frozen=True, eq=False)
class ContextTrie:
    """Contexts of up to ``order - 1`` words, and the words that follow each.

    The root's followers and children are dense (every word of the vocabulary):
    follower w of the root has index w, and the context of the single word w is
    number ``1 + w``.

    Attributes
    ----------
    n_words : int
        Size of the vocabulary.
    level_start : ndarray of int32, shape (order + 1,)
        Contexts of k words are those from ``level_start[k]`` to
        ``level_start[k + 1]``.
    context_word : ndarray of int32, shape (n_contexts,)
        The oldest word of each context (0 for the root, which has none).
    child_start : ndarray of int32, shape (n_contexts + 1,)
        Children of context c are those from ``child_start[c]`` to
        ``child_start[c + 1]``.
    start : ndarray of int32, shape (n_contexts + 1,)
        Followers of context c are those from ``start[c]`` to ``start[c + 1]``.
    words : ndarray of int32, shape (n_ngrams,)
        The word of each follower, sorted within a context.
    """

    n_words: int
    level_start: NDArray[np.int32]
    context_word: NDArray[np.int32]
    child_start: NDArray[np.int32]
    start: NDArray[np.int32]
    words: NDArray[np.int32]

    @cached_property
    def arrays(self) -> Trie:
        """The structure as kernels take it."""
        return Trie(
            self.level_start,
            self.context_word,
            self.child_start,
            self.start,
            self.words,
        )

    def verified(self) -> Self:
        """Return the trie with numbers that are known to be in range.

        Look-ups stay within the arrays whatever these say; what goes through all of
        them needs numbers of a trie. A trie that was built here has them; one of a
        file that was not verified checks them, and raises ValueError if they are not.
        """
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What is kept beside the fields is quickly made again.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def order(self) -> int:
        """The longest n-gram: the longest context and the next word."""
        return len(self.level_start) - 1

    @property
    def n_ngrams(self) -> NDArray[np.int64]:
        """Number of n-grams of each order, shape (order,)."""
        offsets = self.start[self.level_start].astype(np.int64)
        return offsets[1:] - offsets[:-1]

    def followers(self, level: int) -> slice:
        """Where the followers of the contexts of `level` words stand."""
        first, last = self.level_start[level : level + 2]
        return slice(int(self.start[first]), int(self.start[last]))

    def parents(self) -> NDArray[np.int32]:
        """Return the context one word shorter of each, the root its own.

        Returns
        -------
        parent : ndarray of int32, shape (n_contexts,)
        """
        self.verified()
        contexts = np.arange(len(self.context_word), dtype=np.int32)
        parent = np.zeros_like(contexts)
        # Children stand in the order of their parents, from the root's on.
        parent[1:] = np.repeat(contexts, np.diff(self.child_start))
        return parent

    def context_words(self, contexts: NDArray[Any], level: int) -> NDArray[np.int32]:
        """Spell contexts of one level out, the nearest word in the last column.

        Parameters
        ----------
        contexts : ndarray of int, shape (n,)
            Numbers of contexts of `level` words.
        level : int
            Their length.

        Returns
        -------
        X : ndarray of int32, shape (n, level)
        """
        self.verified()
        X = np.empty((len(contexts), level), dtype=np.int32)
        for column in range(level):
            X[:, column] = self.context_word[contexts]
            contexts = np.searchsorted(self.child_start, contexts, side="right") - 1
        return X

    def ngrams(self, level: int) -> NDArray[np.int32]:
        """Spell out the n-grams after the contexts of `level` words.

        Returns
        -------
        ngrams : ndarray of int32, shape (n, level + 1)
            In the order of `words`, the next word in the last column.
        """
        self.verified()
        first, last = self.level_start[level : level + 2]
        contexts = np.arange(first, last, dtype=np.int32)
        n_followers = np.diff(self.start[first : last + 1])
        spelled = self.context_words(contexts, level)
        return np.column_stack(
            [np.repeat(spelled, n_followers, axis=0), self.words[self.followers(level)]]
        )

    def context(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find the number of each whole context, -1 where it is not in the trie.

        Parameters
        ----------
        X : ndarray of int32, shape (n, level)
            Contexts of at most ``order - 1`` words; ids are unchecked.

        Returns
        -------
        context : ndarray of int32, shape (n,)
        """
        out = np.empty(len(X), dtype=np.int32)
        _backoff.find_contexts(self.arrays, X, self.path(), out)
        return out

    def index(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find where each n-gram stands in `words`, -1 where it is not stored.

        Parameters
        ----------
        X : ndarray of int32, shape (n, level)
            Whole contexts, of at most ``order - 1`` words; ids are unchecked.
        y : ndarray of int32, shape (n,)
            The words that follow them.

        Returns
        -------
        index : ndarray of int32, shape (n,)
        """
        out = np.empty(len(y), dtype=np.int32)
        _backoff.find_ngrams(self.arrays, self.context(X), y, out)
        return out

    def path(self) -> NDArray[np.int32]:
        """Scratch for a look-up: the contexts on the way down."""
        return np.empty(self.order, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class WeightedTrie(ContextTrie):
    """Contexts and followers with what a back-off model knows of them.

    Attributes
    ----------
    prob : ndarray of float32, shape (n_ngrams,)
        The probability of each follower after its context.
    bow : ndarray of float32, shape (n_contexts,)
        The weight of each context for words that do not follow it.
    """

    prob: NDArray[np.float32]
    bow: NDArray[np.float32]


def blocks_of_contexts(
    start: NDArray[np.int32], first: int, last: int, size: int | None = None
) -> Iterator[tuple[int, int]]:
    """Cut contexts `first` to `last` into blocks of about `size` followers.

    Parameters
    ----------
    start : ndarray of int32, shape (n_contexts + 1,)
        The first follower of each.
    first, last : int
        The contexts.
    size : int, optional
        A block has no more, unless it is one context; by default `BLOCK_FOLLOWERS`.

    Yields
    ------
    first, last : int
        The contexts of a block: between two of them an interrupt is heard.
    """
    size = BLOCK_FOLLOWERS if size is None else size
    while first < last:
        # Of the type of the array, or searchsorted would copy that.
        most = np.int32(min(int(start[first]) + size, np.iinfo(np.int32).max))
        end = first + int(np.searchsorted(start[first : last + 1], most, side="right"))
        end = min(max(end - 1, first + 1), last)
        yield first, end
        first = end


class TrieBuilder:
    """The arrays of a trie, level by level from the root."""

    def __init__(self, n_words: int) -> None:
        self.n_words = n_words
        self.level_start = [0, 1]
        self.n_ngrams = n_words
        self.context_word = [np.zeros(1, dtype=np.int32)]
        self.child_start: list[NDArray[np.int32]] = []
        self.start = [np.zeros(1, dtype=np.int32)]
        self.words = [np.arange(n_words, dtype=np.int32)]
        self.counts: list[NDArray[np.int64]] = []

    def add_context_level(
        self, child_start: NDArray[np.int32], context_word: NDArray[np.int32]
    ) -> None:
        """Append a level: `child_start` counts from the level's first context."""
        n_contexts = self.level_start[-1]
        if n_contexts + len(context_word) > MAX_NGRAMS:
            raise ValueError(
                f"more than {MAX_NGRAMS} contexts; lower order, or count less text."
            )
        self.child_start.append(_shifted(child_start[:-1], n_contexts))
        self.context_word.append(context_word)
        self.level_start.append(n_contexts + len(context_word))

    def rank_contexts(
        self, context: NDArray[np.int32], older: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Append the contexts one word longer; number each window's within them."""
        child_start, words, rank = self._ranked(context, older)
        self.add_context_level(child_start, words.copy())
        return rank

    def add_followers(self, context: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        """Count the next words of the contexts of the last level."""
        start = np.empty(self._n_last() + 1, dtype=np.int32)
        words = np.empty(len(y), dtype=np.int32)
        counts = np.empty(len(y), dtype=np.int64)
        n = _counts.count_pairs(context, y, self.n_words, start, words, counts)
        self._append_followers(start, words[:n])
        self.counts.append(counts[:n].copy())

    def rank_followers(
        self, context: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Append the next words of the last level; number each row's within them."""
        start, words, rank = self._ranked(context, y)
        self._append_followers(start, words)
        return rank

    def add_tables(
        self,
        ngrams: Sequence[NDArray[np.int32]],
        *,
        rows_of_contexts: Sequence[NDArray[np.intp]] = (),
    ) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """Append all n-grams of tables, of 1, 2, ... words.

        Contexts are added with their suffixes, whether there are n-grams of these
        or not, and so are the n-grams of the tables' rows `rows_of_contexts`.
        Returns where each row stands among the n-grams of its order, and the
        numbers of the latter contexts.
        """
        order = len(ngrams)
        places, made = [ngrams[0][:, 0]], []
        # What is to be a context of k words or more, and the number, within its
        # level, of the context of its nearest k. Rows of one context that stand
        # together, as they do in most files, are looked at once.
        runs = [_Runs(table[:, :-1]) for table in ngrams]
        paths = {k: runs[k].contexts for k in range(1, order)}
        for k, rows in enumerate(rows_of_contexts[: order - 1], 1):
            paths[-k] = ngrams[k - 1][rows]
        number = {key: rows[:, -1] for key, rows in paths.items()}
        for k in range(1, order):
            if k == 1:
                self.add_context_level(
                    np.array([0, self.n_words], dtype=np.int32),
                    np.arange(self.n_words, dtype=np.int32),
                )
            else:
                ranked = self.rank_contexts(
                    np.concatenate(list(number.values())),
                    np.concatenate([paths[key][:, -k] for key in number]),
                )
                ends = np.cumsum([len(rows) for rows in number.values()])
                parts = np.split(ranked, ends[:-1])
                number = dict(zip(number, parts))
            if -k in number:
                made.append(number.pop(-k) + np.int32(self.level_start[k]))
            context = runs[k].expanded(number.pop(k))
            places.append(self.rank_followers(context, ngrams[k][:, -1]))
        return places, made

    def structure(self) -> dict[str, Any]:
        """Return what a `ContextTrie` is made of, by name."""
        n_contexts = self.level_start[-1]
        childless = np.full(self._n_last() + 1, n_contexts, dtype=np.int32)
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

    def _ranked(
        self, context: NDArray[np.int32], words: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Offsets, words and row numbers of the distinct (context, word)."""
        # The kernels number rows in int32.
        if len(context) > MAX_NGRAMS:
            raise ValueError(
                f"{len(context)} rows of n-grams are too many to sort at once; give "
                f"at most {MAX_NGRAMS}: lower order, or count less text."
            )
        start = np.empty(self._n_last() + 1, dtype=np.int32)
        distinct = np.empty(len(context), dtype=np.int32)
        rank = np.empty(len(context), dtype=np.int32)
        n = _counts.rank_pairs(context, words, self.n_words, start, distinct, rank)
        return start, distinct[:n], rank

    def _append_followers(
        self, start: NDArray[np.int32], words: NDArray[np.int32]
    ) -> None:
        if self.n_ngrams + len(words) > MAX_NGRAMS:
            raise ValueError(
                f"more than {MAX_NGRAMS} n-grams; lower order, or count less text."
            )
        self.start.append(_shifted(start[:-1], self.n_ngrams))
        self.words.append(words.copy())
        self.n_ngrams += len(words)

    def _n_last(self) -> int:
        return self.level_start[-1] - self.level_start[-2]


class _Runs:
    """Rows, the equal ones that stand together taken as one."""

    def __init__(self, rows: NDArray[np.int32]) -> None:
        begins = np.ones(len(rows), dtype=bool)
        if len(rows):
            begins[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        self.contexts = rows[begins]
        self._run = np.cumsum(begins, dtype=np.int32) - np.int32(1)

    def expanded(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """Repeat the value of each run for its rows."""
        return values[self._run]


def _shifted(offsets: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    return (offsets + np.int32(by)).astype(np.int32, copy=False)
