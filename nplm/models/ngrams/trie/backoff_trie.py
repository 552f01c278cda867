"""BackoffTrie: the probabilities and back-off weights of an n-gram model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff
from nplm.base.blocks import BLOCK_WINDOWS, blocks, blocks_of_rows
from nplm.models.ngrams.trie.context_trie import (
    BLOCK_FOLLOWERS,
    TrieBuilder,
    WeightedTrie,
    blocks_of_contexts,
)

__all__ = ["BackoffTrie", "DuplicateNgramError", "fill_contexts_made"]


class DuplicateNgramError(ValueError):
    """Raised if a table contains an n-gram twice; has its order and second row."""

    def __init__(self, order: int, row: int) -> None:
        super().__init__(f"row {row} of the {order}-grams repeats an earlier one")
        self.order, self.row = order, row


@dataclass(frozen=True, eq=False)
class BackoffTrie(WeightedTrie):
    """Trie of a back-off model, with the semantics of an ARPA file.

    The probability of a word is that of the longest n-gram stored, times the
    back-off weights of all longer contexts. Interpolated models are stored in the
    same way, with their probabilities already interpolated.
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
        """Build the trie from tables of n-grams, as in an ARPA file.

        Parameters
        ----------
        ngrams : sequence of ndarray of int32, shape (n, k)
            The n-grams of k = 1, 2, ... words, in any order. The unigrams contain
            every word of the vocabulary once.
        prob : sequence of ndarray of float64, shape (n,)
            Probabilities of the n-grams.
        bow : sequence of ndarray of float64, shape (n,)
            Back-off weights of the n-grams as contexts; none for the highest order.
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
        # A weight of 1 needs no context: contexts not in the trie have it too.
        weighted = [np.flatnonzero(own != 1) for own in bow]
        contexts = {k: ngrams[k - 1][rows] for k, rows in enumerate(weighted, 1)}
        builder = TrieBuilder(n_words)
        positions, made = builder.add_tables(ngrams, contexts=contexts)
        for k, (position, n) in enumerate(zip(positions, builder.n_followers)):
            if len(position) != n:
                order = np.argsort(position, kind="stable")
                repeated = order[1:][np.diff(position[order]) == 0]
                raise DuplicateNgramError(k + 1, int(repeated.min()))
        structure = builder.structure()
        trie_prob = np.empty(builder.n_ngrams, dtype=np.float32)
        first = 0
        for position, own in zip(positions, prob):
            trie_prob[first + position] = own
            first += len(own)
        trie_bow = np.ones(builder.level_start[-1], dtype=np.float32)
        for k, numbers in made.items():
            trie_bow[numbers] = bow[k - 1][weighted[k - 1]]
        return cls(**structure, prob=trie_prob, bow=trie_bow)

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of each next word given its context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column. Ids are not checked.
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
        """Return the probability of several words after each context.

        Each context is looked up once for all its words.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column. Ids are not checked.
        words : ndarray of int32, shape (n_samples, n_candidates)
            The words of each row.

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
        """Return the total probability of a set of words after each context.

        Parameters
        ----------
        words : ndarray of int32, shape (n,)
            Distinct words.

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
        """Return the number of the longest context of the trie that ends each row.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column. Ids are not checked.

        Returns
        -------
        contexts : ndarray of int32, shape (n_samples,)
        """
        out = np.empty(len(X), dtype=np.int32)
        for rows in blocks(len(X), BLOCK_WINDOWS):
            _backoff.longest_contexts(self.arrays, X[rows], self.path(), out[rows])
        return out

    def distribution(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the probability of every word after each context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column. Ids are not checked.

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
        """Return the number of the context c w for each n-gram (c, w), or -1.

        Returns
        -------
        made : ndarray of int32
            One entry for each n-gram below the highest order.
        """
        made = np.empty(self.followers(self.order - 1).start, dtype=np.int32)
        fill_contexts_made(self, self.parents(), made)
        return made

    def pruned(self, keep: NDArray[np.bool_]) -> BackoffTrie:
        """Drop n-grams, and contexts that no longer lead to any.

        Parameters
        ----------
        keep : ndarray of bool, shape (n_ngrams,)
            The n-grams to keep. Unigrams are always kept.

        Returns
        -------
        trie : BackoffTrie
        """
        self.verified()
        keep = keep.copy()
        keep[: self.n_words] = True
        start = _count_up_to(keep)[self.start]
        useful = start[1:] > start[:-1]
        # All children of the root stay. Other contexts stay if they have followers,
        # or a child that stays.
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


def fill_contexts_made(
    trie: BackoffTrie,
    parents: NDArray[np.int32],
    made: NDArray[np.int32],
    done: Callable[[], Any] = lambda: None,
    size: int = BLOCK_FOLLOWERS,
) -> None:
    """Fill ``trie.contexts_made()``; call `done` after every `size` n-grams."""
    slot = np.full(trie.n_words, -1, dtype=np.int32)
    last = int(trie.level_start[trie.order - 1])
    for block in blocks_of_contexts(trie.start, 0, last, size):
        _backoff.contexts_made(trie.arrays, parents, *block, slot, trie.path(), made)
        done()


def _count_up_to(flags: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the number of flags set before each index, and in total."""
    count = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=count[1:])
    return count


def _kept_offsets(
    offsets: NDArray[np.int32], useful: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return the offsets of the kept contexts; dropped ones own no entries."""
    return np.append(offsets[:-1][useful], offsets[-1:])
