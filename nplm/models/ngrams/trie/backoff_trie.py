"""A back-off model: probabilities of n-grams and weights of contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff
from nplm.base.blocks import BLOCK_WINDOWS, blocks, blocks_of_rows
from nplm.models.ngrams.trie.context_trie import TrieBuilder, WeightedTrie

__all__ = ["BackoffTrie"]


class DuplicateNgramError(ValueError):
    """An n-gram that a table has twice: its order, and its second row."""

    def __init__(self, order: int, row: int) -> None:
        super().__init__(f"row {row} of the {order}-grams repeats an earlier one")
        self.order, self.row = order, row


@dataclass(frozen=True, eq=False)
class BackoffTrie(WeightedTrie):
    """Next-word probabilities in the sense of an ARPA file.

    The probability of a word is that of the longest n-gram stored, times the
    weights of the contexts that are longer. Interpolated models are stored in
    the same way, their mixtures worked out.
    """

    @classmethod
    def from_tables(
        cls,
        ngrams: Sequence[NDArray[np.int32]],
        prob: Sequence[NDArray[np.float64]],
        bow: Sequence[NDArray[np.float64]],
        *,
        n_words: int,
    ) -> Self:
        """Build the trie of tables of n-grams, as an ARPA file has them.

        Parameters
        ----------
        ngrams : sequence of ndarray of int32, shape (n, k)
            The n-grams of k = 1, 2, ... words: every word of the vocabulary once,
            then others in any order.
        prob : sequence of ndarray of float64, shape (n,)
            Their probabilities.
        bow : sequence of ndarray of float64, shape (n,)
            Their weights as contexts; nothing for the longest.
        n_words : int
            Size of the vocabulary.

        Returns
        -------
        trie : BackoffTrie

        Raises
        ------
        DuplicateNgramError
            If an n-gram occurs twice.
        """
        # Weights of 1 are those of contexts that are not there.
        weighty = [np.flatnonzero(own != 1) for own in bow]
        builder = TrieBuilder(n_words)
        places, made = builder.add_tables(ngrams, rows_of_contexts=weighty)
        for k, (place, n) in enumerate(zip(places, builder.n_followers)):
            if len(place) != n:
                order = np.argsort(place, kind="stable")
                again = order[1:][np.diff(place[order]) == 0]
                raise DuplicateNgramError(k + 1, int(again.min()))
        structure = builder.structure()
        tree_prob = np.empty(builder.n_ngrams, dtype=np.float32)
        first = 0
        for place, own in zip(places, prob):
            tree_prob[first + place] = own
            first += len(own)
        tree_bow = np.ones(builder.level_start[-1], dtype=np.float32)
        for rows, contexts, own in zip(weighty, made, bow):
            tree_bow[contexts] = own[rows]
        return cls(**structure, prob=tree_prob, bow=tree_bow)

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of each next word given its context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column; ids are unchecked.
        y : ndarray of int32, shape (n_samples,)
            Next words.

        Returns
        -------
        prob : ndarray of float64, shape (n_samples,)
        """
        out = np.empty(len(y))
        arrays, path = (self.arrays, self.prob, self.bow), self.path()
        for rows in blocks(len(y), BLOCK_WINDOWS):
            own = X[rows], y[rows, None], path, out[rows, None]
            _backoff.backoff_prob(*arrays, *own)
        return out

    def words_prob(
        self, X: NDArray[np.int32], words: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of some words after each context.

        A context is looked for once, whatever the number of words.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column; ids are unchecked.
        words : ndarray of int32, shape (n_samples, n_candidates)
            The words.

        Returns
        -------
        prob : ndarray of float64, shape (n_samples, n_candidates)
        """
        out = np.empty(words.shape)
        arrays, path = (self.arrays, self.prob, self.bow), self.path()
        for rows in blocks(len(X), max(1, BLOCK_WINDOWS // max(1, words.shape[1]))):
            _backoff.backoff_prob(*arrays, X[rows], words[rows], path, out[rows])
        return out

    def masses(self, words: NDArray[np.int32]) -> NDArray[np.float64]:
        """Probability of these words together, after each context of the trie.

        Parameters
        ----------
        words : ndarray of int32, shape (n,)
            Each once.

        Returns
        -------
        mass : ndarray of float64, shape (n_contexts,)
        """
        chosen = np.zeros(self.n_words, dtype=np.uint8)
        chosen[words] = 1
        mass = np.empty(len(self.context_word))
        arrays = self.arrays, self.prob, self.bow, self.parents(), chosen
        for part in blocks(len(mass), BLOCK_WINDOWS):
            _backoff.backoff_masses(*arrays, part.start, part.stop, mass)
        return mass

    def longest_contexts(self, X: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find the number of the longest context of the trie that ends each row.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column; ids are unchecked.

        Returns
        -------
        contexts : ndarray of int32, shape (n_samples,)
        """
        out = np.empty(len(X), dtype=np.int32)
        for rows in blocks(len(X), BLOCK_WINDOWS):
            _backoff.longest_contexts(self.arrays, X[rows], self.path(), out[rows])
        return out

    def distribution(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Probability of every word after each context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column; ids are unchecked.

        Returns
        -------
        prob : ndarray of float64, shape (n_samples, n_words)
        """
        out = np.empty((len(X), self.n_words))
        arrays, path = (self.arrays, self.prob, self.bow), self.path()
        for rows in blocks_of_rows(len(X), self.n_words):
            _backoff.backoff_distribution(*arrays, X[rows], path, out[rows])
        return out

    def contexts_made(self) -> NDArray[np.int32]:
        """Find the number of the context c w that each n-gram (c, w) makes, or -1.

        Returns
        -------
        made : ndarray of int32
            For the n-grams of less than the highest order.
        """
        made = np.empty(self.followers(self.order - 1).start, dtype=np.int32)
        _backoff.contexts_made(
            self.arrays,
            self.parents(),
            np.full(self.n_words, -1, dtype=np.int32),
            self.path(),
            made,
        )
        return made

    def pruned(self, keep: NDArray[np.bool_]) -> BackoffTrie:
        """Drop n-grams, and contexts that then lead nowhere.

        Parameters
        ----------
        keep : ndarray of bool, shape (n_ngrams,)
            The n-grams to keep; unigrams are kept in any case.

        Returns
        -------
        trie : BackoffTrie
        """
        self.verified()
        keep = keep.copy()
        keep[: self.n_words] = True
        start = _count_up_to(keep)[self.start]
        useful = start[1:] > start[:-1]
        # The root's children stay dense; other contexts stay if they have
        # followers, or a child that stays.
        useful[: self.level_start[min(2, self.order)]] = True
        for level in range(self.order - 2, 1, -1):
            first, last = self.level_start[level : level + 2]
            children = self.child_start[first : last + 1]
            n_useful = _count_up_to(useful[children[0] : children[-1]])
            useful[first:last] |= np.diff(n_useful[children - children[0]]) > 0
        n_before = _count_up_to(useful)
        return BackoffTrie(
            n_words=self.n_words,
            level_start=n_before[self.level_start],
            context_word=self.context_word[useful],
            child_start=_kept_offsets(n_before[self.child_start], useful),
            start=_kept_offsets(start, useful),
            words=self.words[keep],
            prob=self.prob[keep],
            bow=self.bow[useful],
        )


def _count_up_to(flags: NDArray[np.bool_]) -> NDArray[np.int32]:
    """How many flags are set before each index, and in all."""
    count = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=count[1:])
    return count


def _kept_offsets(
    offsets: NDArray[np.int32], useful: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Offsets of the contexts kept: those dropped between them own nothing."""
    return np.append(offsets[:-1][useful], offsets[-1:])
