"""n-gram counts of all orders, as a tree of contexts in sorted arrays.

A context is reached from the root by its nearest word first, so the children of
a context are its extensions by one more, older, word: the way back from a long
context to the shorter ones is the way up. Contexts are numbered level by level
(the root is 0), children of one context side by side and sorted by word; then
six flat arrays hold the whole tree, and every stage of an estimation is one
sweep over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels import _backoff, _counts

__all__ = ["ContextTree", "NgramCounts"]

MAX_NGRAMS = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class ContextTree:
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
        X = np.empty((len(contexts), level), dtype=np.int32)
        for column in range(level):
            X[:, column] = self.context_word[contexts]
            contexts = np.searchsorted(self.child_start, contexts, side="right") - 1
        return X

    def context(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find the number of each whole context, -1 where it is not in the tree.

        Parameters
        ----------
        X : ndarray of int32, shape (n, level)
            Contexts of at most ``order - 1`` words; ids are unchecked.

        Returns
        -------
        context : ndarray of int32, shape (n,)
        """
        out = np.empty(len(X), dtype=np.int32)
        _backoff.find_contexts(self.child_start, self.context_word, X, self.path(), out)
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
        _backoff.find_ngrams(self.start, self.words, self.context(X), y, out)
        return out

    def path(self) -> NDArray[np.int32]:
        """Scratch for a look-up: the contexts on the way down."""
        return np.empty(self.order, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class NgramCounts(ContextTree):
    """How often each n-gram of each order occurs.

    Attributes
    ----------
    counts : ndarray of int64, shape (n_ngrams,)
        The count of each follower after its context.

    Examples
    --------
    >>> from nplm import windows
    >>> X, y = windows([0, 1, 0, 1, 2, 0, 1, 0], 1)
    >>> counts = NgramCounts.from_windows(X, y, n_words=3)
    >>> counts.n_ngrams
    array([3, 4])
    >>> counts.counts[counts.followers(1)]  # of 0 1, 1 0, 1 2 and 2 0
    array([3, 2, 1, 1])
    """

    counts: NDArray[np.int64]

    @classmethod
    def from_windows(
        cls,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        *,
        n_words: int,
        boundary: int | None = None,
    ) -> Self:
        """Count the n-grams that end in the next word of each window.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, n_context)
            Contexts, the nearest word in the last column; a strided view is fine.
        y : ndarray of int32, shape (n_samples,)
            Next words. Ids of both are below `n_words`, unchecked.
        n_words : int
            Size of the vocabulary.
        boundary : int, optional
            A context ends at the nearest word with this id: nothing older than
            it is counted.

        Returns
        -------
        counts : NgramCounts
            Of order ``n_context + 1``.

        Raises
        ------
        ValueError
            If there are more than 2**31 - 1 windows, or n-grams of all orders.
        """
        if len(y) > MAX_NGRAMS:
            raise ValueError(
                f"{len(y)} windows are too many to count at once; give at most "
                f"{MAX_NGRAMS}."
            )
        builder = _Builder(n_words, np.bincount(y, minlength=n_words))
        if X.shape[1] == 0:
            return cls(*builder.arrays())
        nearest = np.ascontiguousarray(X[:, -1])
        builder.add_context_level(
            np.array([0, n_words], dtype=np.int32), np.arange(n_words, dtype=np.int32)
        )
        # The number, within its level, of each window's context of k words.
        context = nearest
        for k in range(1, X.shape[1] + 1):
            builder.add_followers(context, y)
            if k == X.shape[1]:
                break
            if boundary is not None:
                longer = X[:, -k] != boundary
                X, y, context = X[longer], y[longer], context[longer]
            context = builder.rank_contexts(context, X[:, -1 - k])
        return cls(*builder.arrays())

    def continuation_counts(self) -> NDArray[np.int64]:
        """Return the modified counts a(c, w) of Kneser-Ney smoothing.

        The number of distinct words before each n-gram; the raw count for the
        longest order, and where the context begins at a boundary (Kneser and Ney
        1995; section 3 of Chen and Goodman 1999).

        Returns
        -------
        counts : ndarray of int64, shape (n_ngrams,)
        """
        out = np.empty_like(self.counts)
        slot = np.empty(self.n_words, dtype=np.int32)
        _counts.continuation_counts(
            self.child_start, self.start, self.words, self.counts, slot, out
        )
        return out

    def totals(self) -> NDArray[np.int64]:
        """Return how often each context was seen, shape (n_contexts,)."""
        up_to = np.concatenate([[0], np.cumsum(self.counts)])
        return np.diff(up_to[self.start])


class _Builder:
    """The arrays of a tree, level by level from the root."""

    def __init__(self, n_words: int, unigrams: NDArray[np.int64]) -> None:
        self.n_words = n_words
        self.level_start = [0, 1]
        self.n_ngrams = n_words
        self.context_word = [np.zeros(1, dtype=np.int32)]
        self.child_start: list[NDArray[np.int32]] = []
        self.start = [np.zeros(1, dtype=np.int32)]
        self.words = [np.arange(n_words, dtype=np.int32)]
        self.counts = [unigrams.astype(np.int64, copy=False)]

    def add_context_level(
        self, child_start: NDArray[np.int32], context_word: NDArray[np.int32]
    ) -> None:
        """Append a level: `child_start` counts from the level's first context."""
        n_contexts = self.level_start[-1]
        self.child_start.append(_shifted(child_start[:-1], n_contexts))
        self.context_word.append(context_word)
        self.level_start.append(n_contexts + len(context_word))

    def rank_contexts(
        self, context: NDArray[np.int32], older: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Append the contexts one word longer; number each window's within them."""
        child_start = np.empty(self._n_last() + 1, dtype=np.int32)
        words = np.empty(len(context), dtype=np.int32)
        rank = np.empty(len(context), dtype=np.int32)
        n = _counts.rank_pairs(context, older, self.n_words, child_start, words, rank)
        self.add_context_level(child_start, words[:n].copy())
        return rank

    def add_followers(self, context: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        """Count the next words of the contexts of the last level."""
        start = np.empty(self._n_last() + 1, dtype=np.int32)
        words = np.empty(len(y), dtype=np.int32)
        counts = np.empty(len(y), dtype=np.int64)
        n = _counts.count_pairs(context, y, self.n_words, start, words, counts)
        if self.n_ngrams + n > MAX_NGRAMS:
            raise ValueError(
                f"more than {MAX_NGRAMS} n-grams; lower order, or count less text."
            )
        self.start.append(_shifted(start[:-1], self.n_ngrams))
        self.words.append(words[:n].copy())
        self.counts.append(counts[:n].copy())
        self.n_ngrams += n

    def arrays(self) -> tuple[Any, ...]:
        """Return what `NgramCounts` is made of, in order."""
        n_contexts = self.level_start[-1]
        childless = np.full(self._n_last() + 1, n_contexts, dtype=np.int32)
        end = np.array([self.n_ngrams], dtype=np.int32)
        return (
            self.n_words,
            np.array(self.level_start, dtype=np.int32),
            np.concatenate(self.context_word),
            np.concatenate([*self.child_start, childless]),
            np.concatenate([*self.start, end]),
            np.concatenate(self.words),
            np.concatenate(self.counts),
        )

    def _n_last(self) -> int:
        return self.level_start[-1] - self.level_start[-2]


def _shifted(offsets: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    return (offsets + np.int32(by)).astype(np.int32, copy=False)
