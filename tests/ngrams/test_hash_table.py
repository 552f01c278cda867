"""Scoring by hash: the trie's probabilities, bit for bit."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from threading import Event

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import KneserNeyLM, windows
from nplm._kernels.reference import ngrams as reference
from nplm.ngrams.trie.backoff_trie import BackoffTrie
from nplm.ngrams.trie.hash_table import HashTable

N_WORDS = 40


def fitted(order, *, n=3000, min_counts=None, boundary=None, seed=0):
    ids = np.random.default_rng(seed).zipf(1.4, size=n) % N_WORDS
    X, y = windows(ids, max(order - 1, 1), boundary=boundary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(
            order, n_words=N_WORDS + 1, min_counts=min_counts, boundary=boundary
        ).fit(X, y)
    # Seen windows, and others.
    rng = np.random.default_rng(seed)
    contexts = np.concatenate([X, rng.permuted(X, axis=0)])
    return model, contexts, np.concatenate([y, rng.permutation(y)])


def without_suffixes(trie):
    """A pruned trie in which n-grams lack suffixes and their contexts' own lines."""
    keep = np.random.default_rng(0).random(len(trie.words)) < 0.3
    return trie.pruned(keep)


@pytest.mark.parametrize("order", range(2, 10))
@pytest.mark.parametrize("min_counts", [None, (1, 2, 2)])
@pytest.mark.parametrize("boundary", [None, 1])
def test_hashed_is_the_tree_bit_for_bit(order, min_counts, boundary):
    model, X, y = fitted(order, min_counts=min_counts, boundary=boundary)
    for trie in (model.trie_, without_suffixes(model.trie_)):
        walked = np.array(
            [
                trie.next_word_prob(X[i : i + 1], y[i : i + 1])[0]
                for i in range(0, len(y), 97)
            ]
        )
        hashed = HashTable.of(trie).next_word_prob(X, y)
        assert_array_equal(hashed[::97], walked)
        rows = trie.distribution(X[::97])
        assert_allclose(walked, rows[np.arange(len(walked)), y[::97]], rtol=1e-12)


def test_grouping_does_not_change_a_bit():
    model, X, y = fitted(5)
    hashed = HashTable.of(model.trie_)
    whole = hashed.next_word_prob(X, y)
    for size in (1, 7, 255, 257):
        parts = [
            hashed.next_word_prob(X[i : i + size], y[i : i + size])
            for i in range(0, len(y), size)
        ]
        assert_array_equal(np.concatenate(parts), whole)


def test_a_full_table_as_a_damaged_file_may_have_it_ends_each_search():
    model, X, y = fitted(5)
    whole = HashTable.of(model.trie_)
    slots = whole.slots.copy()
    keys = slots.view(np.uint64)[::2]
    keys[keys == 0] = 1 << 16  # nobody's
    full = HashTable(model.trie_, slots, whole.slot_start)
    assert_array_equal(full.next_word_prob(X, y), whole.next_word_prob(X, y))


def test_hashed_against_the_reference():
    model, X, y = fitted(4, min_counts=(1, 2, 2))
    trie = without_suffixes(model.trie_)
    expected = np.empty((len(y), 1))
    arrays = reference.Trie.of(trie)
    reference.backoff_prob(arrays, trie.prob, trie.bow, X, y[:, None], None, expected)
    assert_allclose(HashTable.of(trie).next_word_prob(X, y), expected[:, 0], rtol=1e-12)


@pytest.fixture
def tables(monkeypatch):
    """Tries that a hash table was made of."""
    made = []
    make = HashTable.of

    def noted(trie):
        made.append(trie)
        return make(trie)

    monkeypatch.setattr(HashTable, "of", noted)
    return made


def test_many_windows_are_hashed_and_a_pickle_has_no_table(tables):
    model, X, y = fitted(3)
    few = model.log_prob(X[:1], y[:1])
    assert not tables
    many = model.log_prob(X, y)
    assert tables == [model.trie_]
    assert many[0] == few[0]
    again = pickle.loads(pickle.dumps(model))
    assert vars(again.trie_).keys() == {field.name for field in fields(model.trie_)}
    assert_array_equal(again.log_prob(X, y), many)
    assert tables == [model.trie_, again.trie_]


def test_a_table_waits_until_as_much_was_scored_without(tables):
    """A text a hundredth of the model does not pay for one; a stream of such does."""
    model, X, y = fitted(3)
    n = len(model.trie_.words) // 100
    for _ in range(12):
        assert not tables
        scored = model.log_prob(X[:n], y[:n])
    for _ in range(4):
        assert_array_equal(model.log_prob(X[:n], y[:n]), scored)
    assert len(tables) == 1


def test_threads_make_one_table(tables, monkeypatch):
    model, X, y = fitted(3)
    expected = model.log_prob(X, y)
    model.trie_ = replace(model.trie_)
    tables.clear()
    begun, scored = Event(), Event()

    make = HashTable.of

    def slow(trie):
        begun.set()
        assert scored.wait(10)
        return make(trie)

    monkeypatch.setattr(HashTable, "of", slow)
    with ThreadPoolExecutor(1) as pool:
        maker = pool.submit(model.log_prob, X, y)
        assert begun.wait(10)
        # While the table is made, others do without.
        assert_array_equal(model.log_prob(X, y), expected)
        scored.set()
        assert_array_equal(maker.result(), expected)
    assert len(tables) == 1


@pytest.mark.parametrize("order", [1, 2, 4])
def test_contexts_made(order):
    model, *_ = fitted(order)
    for trie in (model.trie_, without_suffixes(model.trie_)):
        made = trie.contexts_made()
        expected = np.empty_like(made)
        arrays = reference.Trie.of(trie)
        reference.contexts_made(arrays, trie.parents(), None, None, expected)
        assert_array_equal(made, expected)


def test_contexts_made_of_a_high_order():
    """More words than fit in any buffer of a fixed size."""
    order = 100
    ids = np.arange(order + 1, dtype=np.int32) % 3
    # Only the longest n-gram: none of its suffixes is there to lead to it.
    tables = [np.arange(3, dtype=np.int32)[:, np.newaxis]]
    tables += [np.empty((0, k), dtype=np.int32) for k in range(2, order)]
    tables += [ids[np.newaxis, :order]]
    ones = [np.ones(len(table)) for table in tables]
    tables[-2], ones[-2] = ids[np.newaxis, : order - 1], np.full(1, 0.5)
    trie = BackoffTrie.from_tables(tables, ones, ones[:-1], n_words=3)
    made = trie.contexts_made()
    assert made[3:].tolist() == trie.context(tables[-2]).tolist()


def test_a_table_that_is_full_at_first_grows():
    """Contexts that are no n-grams of the model, more of them than n-grams."""
    rng = np.random.default_rng(0)
    n = 200
    pairs = rng.permutation(n * n)[:3000].astype(np.int32)
    inner, pairs = pairs[:1200], pairs[1200:2400]
    bigrams = np.column_stack([pairs // n, pairs % n])
    sides = rng.integers(0, n, size=(2, len(inner)), dtype=np.int32)
    longest = np.column_stack([sides[0], inner // n, inner % n, sides[1]])
    tables = [np.arange(n, dtype=np.int32)[:, np.newaxis], bigrams]
    tables += [np.empty((0, 3), dtype=np.int32), longest]
    prob = [np.full(len(table), 1 / n) for table in tables]
    bow = [np.ones(len(table)) for table in tables[:-1]]
    trie = BackoffTrie.from_tables(tables, prob, bow, n_words=n)
    X, y = np.ascontiguousarray(longest[:, :-1]), longest[:, -1]
    again = HashTable.of(trie).next_word_prob(X, y)
    assert_array_equal(again, trie.next_word_prob(X[:1], y[:1])[0])
