"""BackoffTrie: the probabilities and back-off weights of an n-gram model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _backoff
from nplm.base.array_types import Floats, Ids
from nplm.base.blocks import BLOCK_WINDOWS, blocks, blocks_of_rows
from nplm.models.ngrams.trie.context_trie import ContextTrie, blocks_of_contexts
from nplm.models.ngrams.trie.work import BLOCK_FOLLOWERS, Work


@dataclass(frozen=True, eq=False)
class BackoffTrie(ContextTrie):
    """Trie of a back-off model, with the semantics of an ARPA file.

    The probability of a word is that of the longest n-gram stored, `prob` (n_ngrams,),
    times the back-off weights, `bow` (n_contexts,), of all longer contexts.
    Interpolated models are stored in the same way, with their probabilities already
    interpolated. The ids of contexts `X` (n_samples, order - 1), the nearest word last,
    are not checked.
    """

    prob: NDArray[np.float32]
    bow: NDArray[np.float32]

    def unpacked(self, work: Work | None = None) -> BackoffTrie:
        """Return the trie itself; see `MappedTrie.unpacked`."""
        return self

    def with_word(self) -> BackoffTrie:
        """Return the trie of one word more, the last one, of probability 0."""
        n, start, child_start = self.n_words, self.start, self.child_start
        # The new word is follower n of the root, and context n + 1 if there are any.
        context_word, bow, level_start = self.context_word, self.bow, self.level_start
        start = np.append(start[:1], start[1:] + np.int32(1))
        if self.order > 1:
            start = np.insert(start, n + 1, start[n + 1])
            child_start = np.append(child_start[:1], child_start[1:] + np.int32(1))
            child_start = np.insert(child_start, n + 1, child_start[n + 1])
            context_word, bow = (
                np.insert(context_word, n + 1, n),
                np.insert(bow, n + 1, 1),
            )
            level_start = np.append(level_start[:2], level_start[2:] + np.int32(1))
        words, prob = np.insert(self.words, n, n), np.insert(self.prob, n, 0)
        structure = level_start, context_word, child_start, start, words
        return BackoffTrie(n + 1, *structure, prob, bow)

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word given its context."""
        return self.words_prob(X, y[:, np.newaxis])[:, 0]

    def words_prob(self, X: Ids, words: Ids) -> Floats:
        """Return the probability of words (n, k) after contexts, looked up once."""
        out = np.empty(words.shape)
        arrays, path = (self.arrays, self.prob, self.bow), self.path()
        for rows in blocks(len(X), max(1, BLOCK_WINDOWS // max(1, words.shape[1]))):
            _backoff.backoff_prob(*arrays, X[rows], words[rows], path, out[rows])
        return out

    def masses(self, words: Ids) -> Floats:
        """Return the total probability of a set of words after each context."""
        chosen = np.zeros(self.n_words, dtype=np.uint8)
        chosen[words] = 1
        mass = np.empty(len(self.context_word))
        arrays = self.arrays, self.prob, self.bow, self.parents(), chosen
        for part in blocks(len(mass), BLOCK_WINDOWS):
            _backoff.backoff_masses(*arrays, part.start, part.stop, mass)
        return mass

    def longest_contexts(self, X: Ids) -> Ids:
        """Return the number of the longest context of the trie that ends each row."""
        out = np.empty(len(X), dtype=np.int32)
        for rows in blocks(len(X), BLOCK_WINDOWS):
            _backoff.longest_contexts(self.arrays, X[rows], self.path(), out[rows])
        return out

    def distribution(self, X: Ids) -> Floats:
        """Return the probability of every word after each context."""
        out = np.empty((len(X), self.n_words))
        arrays, path = (self.arrays, self.prob, self.bow), self.path()
        for rows in blocks_of_rows(len(X), self.n_words):
            _backoff.backoff_distribution(*arrays, X[rows], path, out[rows])
        return out

    def contexts_made(self, work: Work | None = None) -> Ids:
        """Return the number of the context c w for each n-gram (c, w), or -1."""
        work = work or Work()
        parents, path = self.parents(work), self.path()
        n = self.followers(self.order - 1).start
        context_of = work.array(np.int32, n)
        slot = np.full(self.n_words, -1, dtype=np.int32)
        last = int(self.level_start[self.order - 1])
        size = min(work.n_at_random, BLOCK_FOLLOWERS)
        for block in blocks_of_contexts(self.start, 0, last, size):
            _backoff.contexts_made(self.arrays, parents, *block, slot, path, context_of)
            work.release_pages(*self.every_array)
        work.drop(parents)
        return context_of
