"""A packed trie and a hash table together have all that the trie has."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import KneserNeyLM, windows
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.packed_trie import PackedTrie, fill_packed, packed_sizes

STRUCTURE = ("level_start", "context_word", "child_start", "start", "words", "prob")


def trie_of(order, n_words, seed=0):
    ids = np.random.default_rng(seed).zipf(1.3, size=4000) % n_words
    X, y = windows(ids, order - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return KneserNeyLM(order, n_words=n_words).fit(X, y).trie_, X


@pytest.mark.parametrize("order", [2, 3, 6])
@pytest.mark.parametrize("n_words", [2, 60, 64, 65])
@pytest.mark.parametrize("pruned", [False, True])
def test_packed_trie_and_table_restore_the_trie(order, n_words, pruned):
    trie, _ = trie_of(order, n_words)
    if pruned:
        trie = trie.pruned(np.random.default_rng(0).random(len(trie.words)) < 0.3)
    again = PackedTrie.of(trie).unpacked(HashTable.of(trie))
    for name in STRUCTURE:
        assert_array_equal(getattr(again, name), getattr(trie, name))
    # The weight of the root is not used.
    assert_array_equal(again.bow[1:], trie.bow[1:])


@pytest.mark.parametrize("size", [1, 32, 96])
def test_packed_trie_does_not_depend_on_blocks(size):
    trie, _ = trie_of(4, 70)
    whole = PackedTrie.of(trie)
    sizes = packed_sizes(70, 4, len(trie.context_word), len(trie.words))
    parts = {name: np.zeros(n, kind) for name, (kind, n) in sizes.items()}
    calls = []
    fill_packed(trie, parts, lambda: calls.append(None), size)
    assert len(calls) > len(trie.words) // max(size, 32)
    for name, array in parts.items():
        assert_array_equal(array, getattr(whole, name))
    names = ("context_word", "child_start", "start", "words")
    arrays = {name: np.empty_like(getattr(trie, name)) for name in names}
    whole.fill(arrays, size=64)
    for name in names:
        assert_array_equal(arrays[name], getattr(trie, name))


@pytest.mark.parametrize("order", [2, 3, 5])
def test_distribution_of_a_packed_trie_is_that_of_the_trie_bit_for_bit(order):
    trie, X = trie_of(order, 60)
    X = np.concatenate([X[:300], np.random.default_rng(1).permuted(X, axis=0)[:300]])
    found = PackedTrie.of(trie).distribution(HashTable.of(trie), X.astype(np.int32))
    assert_array_equal(found, trie.distribution(X.astype(np.int32)))
