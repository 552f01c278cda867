"""Static interpolation: several back-off tries mixed into one, or one limited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from nplm.base.array_types import Floats, Ids, Index
from nplm.base.blocks import blocks_of_rows
from nplm.models.ngrams.stages.tables import NgramTable, NgramTables
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.work import Work

# Below this mass of the words that do not follow a context, 1 minus the mass of those
# that do loses too many digits: the words are added up instead.
MIN_MASS_BY_DIFFERENCE = 1e-3
# The largest back-off weight computed. Where a larger one were needed, the words that
# do not follow the context have no mass worth a weight.
MAX_WEIGHT = 1e6


class Member(Protocol):
    """What is mixed: n-grams in the ids of a vocabulary, and their probabilities."""

    trie: BackoffTrie
    n_words: int

    @property
    def order(self) -> int:
        """Number of words in the longest n-gram."""
        return self.trie.order

    def ngrams(self, level: int, work: Work) -> Iterator[Ids]:
        """Yield the n-grams whose contexts have `level` words, perhaps repeatedly."""

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word after contexts (n, n_context)."""


@dataclass(frozen=True, eq=False)
class AlignedTrie(Member):
    """A back-off trie addressed by the word ids of a larger vocabulary.

    A word that the trie lacks has probability 0, and a context reaches back to the
    nearest such word at most, as in SRILM's ``ngram -mix-lm``. `ids` (trie.n_words,)
    are the distinct ids of its words in the larger vocabulary.
    """

    trie: BackoffTrie
    ids: Ids
    n_words: int

    @cached_property
    def trusted_ids(self) -> Ids:
        """The trie's id of each word of the larger vocabulary, or -1."""
        trie_ids = np.full(self.n_words, -1, dtype=np.int32)
        trie_ids[self.ids] = np.arange(len(self.ids), dtype=np.int32)
        return trie_ids

    def ngrams(self, level: int, work: Work) -> Iterator[Ids]:
        for ngrams in ngrams_in_blocks(self.trie, level, work):
            yield self.ids[ngrams]

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        width = min(X.shape[1], self.trie.order - 1)
        X, y = self.trusted_ids[X[:, X.shape[1] - width :]], self.trusted_ids[y]
        # Words of each context from the nearest one to the first that the trie lacks.
        n_known = np.logical_and.accumulate(X[:, ::-1] >= 0, axis=1).sum(axis=1)
        prob = np.zeros(len(y))
        for n in range(width + 1):
            rows = np.flatnonzero((n_known == n) & (y >= 0))
            context = np.ascontiguousarray(X[rows, width - n :])
            prob[rows] = self.trie.next_word_prob(context, y[rows])
        return prob

    def remapped(self) -> BackoffTrie:
        """Return a trie in the larger vocabulary; words that this one lacks have 0."""
        trie = _union([self], Work())
        for level in range(trie.order):
            for begin, end in trie.blocks(level):
                words, row, place = trie.after(level, begin, end)
                trie.prob[place] = self.next_word_prob(words[row], trie.words[place])
                words = self.trusted_ids[words]
                known = np.flatnonzero((words >= 0).all(axis=1))
                number = self.trie.context(words[known])
                trie.bow[begin + known] = self.trie.bow[number]
        return trie


@dataclass(frozen=True, eq=False)
class LimitedTrie(Member):
    """A back-off trie restricted to the words with the distinct `ids` (n_words,).

    As unigrams, the dropped words give their probability to the kept word of index
    `unknown`, or, `evenly`, to all; without either, unigrams are scaled to sum to 1.
    """

    trie: BackoffTrie
    ids: Ids
    unknown: int | None
    evenly: bool = False

    @property
    def n_words(self) -> int:  # type: ignore[override]
        """The number of words that are kept."""
        return len(self.ids)

    @cached_property
    def unigrams(self) -> Floats:
        """The probability of each kept word as a unigram, shape (n_words,)."""
        prob = self.trie.prob[: self.trie.n_words].astype(np.float64)
        kept = prob[self.ids]
        # Added up, not subtracted: the sum of a file's probabilities may not be 1.
        dropped = np.delete(prob, self.ids).sum()
        if self.evenly:
            return kept + dropped / len(kept)
        if self.unknown is None:
            return kept * (prob.sum() / kept.sum()) if kept.any() else kept
        kept[self.unknown] += dropped
        return kept

    def ngrams(self, level: int, work: Work) -> Iterator[Ids]:
        new_ids = np.full(self.trie.n_words, -1, dtype=np.int32)
        new_ids[self.ids] = np.arange(self.n_words, dtype=np.int32)
        for ngrams in ngrams_in_blocks(self.trie, level, work):
            renamed = new_ids[ngrams]
            yield renamed[(renamed >= 0).all(axis=1)]

    def next_word_prob(self, X: Ids, y: Ids) -> Floats:
        if X.shape[1] == 0:
            return self.unigrams[y]
        return self.trie.next_word_prob(self.ids[X], self.ids[y])


def mixed_trie(
    members: Sequence[Member], weights: Sequence[float], work: Work
) -> BackoffTrie:
    """Mix back-off models in one vocabulary, with the n-grams of all of them.

    The probability of each n-gram is the weighted average of the members', and back-off
    weights are those that make the probabilities after every context sum to 1. If words
    that do not follow a context have no mass in the shorter contexts, the probabilities
    of those that do are scaled to sum to 1.
    """
    trie = _union(members, work)
    mapped = [array for m in members for array in m.trie.every_array]
    work.stage("mixing", len(trie.words))
    for level in range(trie.order):
        for begin, end in trie.blocks(level, work.block):
            words, row, place = trie.after(level, begin, end)
            X, y = words[row], trie.words[place]
            prob = np.zeros(len(y))
            for member, weight in zip(members, weights):
                prob += weight * member.next_word_prob(X, y)
            trie.prob[place] = prob
            if level > 0:  # the numbers of shorter contexts are there
                trie.bow[begin:end] = _balance(trie, words, X, row, place)
            work.advance(len(y))
            work.release_pages(*trie.every_array, *mapped)
    return trie


def _union(members: Sequence[Member], work: Work) -> BackoffTrie:
    """Return a trie of the n-grams of all members; its numbers are to be filled in."""
    n_words = members[0].n_words
    ids = np.arange(n_words, dtype=np.int32)[:, np.newaxis]
    unigrams = [m.next_word_prob(ids[:, :0], ids[:, 0]) for m in members]
    tables = NgramTables(work, n_words, np.sum(unigrams, axis=0))
    order = max(member.order for member in members)
    work.stage("reading", sum(int(m.trie.n_ngrams[1 : m.order].sum()) for m in members))
    for member in members:
        for level in range(1, order):
            for ngrams in member.ngrams(level, work):
                tables.add(NgramTable.of_words(ngrams))
    every = NgramTable.of_words(ids)._replace(bow=np.ones(n_words))
    return tables.trie(order, every, distinct=False)


def ngrams_in_blocks(trie: BackoffTrie, level: int, work: Work) -> Iterator[Ids]:
    """Yield the n-grams whose contexts have `level` words."""
    if level >= trie.order:
        return
    for begin, end in trie.blocks(level, work.block):
        words, row, place = trie.after(level, begin, end)
        yield np.column_stack([words[row], trie.words[place]])
        work.advance(len(row))
        work.release_pages(*trie.every_array)


def _balance(
    trie: BackoffTrie, contexts: Ids, X: Ids, row: Index, place: slice
) -> Floats:
    """Return back-off weights of contexts; scale the probabilities if none will do."""
    y, n = trie.words[place], len(contexts)
    mass = np.bincount(row, trie.prob[place], n).astype(np.float64)
    left = np.maximum(1 - mass, 0)
    lower = trie.next_word_prob(np.ascontiguousarray(X[:, 1:]), y)
    others = 1 - np.bincount(row, lower, n).astype(np.float64)
    small = np.flatnonzero(others < MIN_MASS_BY_DIFFERENCE)
    begins = np.searchsorted(row, np.arange(n + 1))
    for part in blocks_of_rows(len(small), trie.n_words):
        shorter = np.ascontiguousarray(contexts[small[part], 1:])
        for context, proba in zip(small[part], trie.distribution(shorter)):
            proba[y[begins[context] : begins[context + 1]]] = 0
            others[context] = proba.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        weight, scale = left / others, (1 - others) / mass
    usable = weight <= MAX_WEIGHT
    trie.prob[place] *= np.where(usable | (mass == 0), 1, scale)[row]
    return np.where(usable, weight, 1)
