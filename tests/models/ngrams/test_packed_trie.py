"""A packed trie and a hash table together have all that the trie has."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import KneserNeyLM, windows
from nplm.models.ngrams.trie import packed_trie
from nplm.models.ngrams.trie.hashing import hash_table_of
from nplm.models.ngrams.trie.packed_trie import MappedTrie, PackedTrie, unpacked
from nplm.models.ngrams.trie.work import Work
from tests.helpers.ngrams import cut_in_memory

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

STRUCTURE = ("level_start", "context_word", "child_start", "start", "words", "prob")


def trie_of(order, n_words, seed=0):
    ids = np.random.default_rng(seed).zipf(1.3, size=4000) % n_words
    X, y = windows(ids, order - 1)
    return KneserNeyLM(order, n_words=n_words).fit(X, y).trie_, X


@pytest.mark.parametrize("order", [2, 3, 6])
@pytest.mark.parametrize("n_words", [2, 60, 64, 65])
@pytest.mark.parametrize("pruned", [False, True])
def test_packed_trie_and_table_restore_the_trie(order, n_words, pruned):
    trie, _ = trie_of(order, n_words)
    if pruned:
        keep = np.random.default_rng(0).random(len(trie.words)) < 0.3
        trie = cut_in_memory(trie, keep)
    again = unpacked(PackedTrie.of(trie, Work()), hash_table_of(trie), Work())
    for name in STRUCTURE:
        assert_array_equal(getattr(again, name), getattr(trie, name))
    # The weight of the root is not used.
    assert_array_equal(again.bow[1:], trie.bow[1:])


@pytest.mark.parametrize("size", [1, 32, 96])
def test_packed_trie_does_not_depend_on_blocks(monkeypatch, size):
    trie, _ = trie_of(4, 70)
    whole = PackedTrie.of(trie, Work())
    calls = []
    monkeypatch.setattr(Work, "block", size)
    monkeypatch.setattr(Work, "release_pages", lambda *arrays: calls.append(None))
    monkeypatch.setattr(packed_trie, "BLOCK", 128)
    parts = PackedTrie.of(trie, Work())
    assert len(calls) > len(trie.words) // max(size, 32)
    for field in fields(whole):
        assert_array_equal(getattr(parts, field.name), getattr(whole, field.name))
    again = parts.structure(Work())
    for name in STRUCTURE[:-1]:
        assert_array_equal(getattr(again, name), getattr(trie, name))


@pytest.mark.parametrize("order", [2, 3, 5])
def test_distribution_of_a_packed_trie_is_that_of_the_trie_bit_for_bit(order):
    trie, X = trie_of(order, 60)
    X = np.concatenate([X[:300], np.random.default_rng(1).permuted(X, axis=0)[:300]])
    packed, X = PackedTrie.of(trie, Work()), X.astype(np.int32)
    found = MappedTrie(packed, hash_table_of(trie), Path("none")).distribution(X)
    assert_array_equal(found, trie.distribution(X.astype(np.int32)))
