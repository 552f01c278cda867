"""Compiled n-gram kernels against their NumPy twins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import windows
from nplm._kernels.ngrams import _backoff, _cache, _interpolation, _kneser_ney
from nplm.models.ngrams.stages.counts import NgramCounts
from tests.helpers import text
from tests.reference import ngrams as reference

N_WORDS = 12


@pytest.fixture(params=[None, 1], ids=["stream", "boundary"])
def counted(request):
    X, y = windows(text(600), 3, boundary=request.param)
    trie = NgramCounts.from_windows(X, y, n_words=N_WORDS, boundary=request.param)
    contexts = np.random.default_rng(0).permuted(X, axis=0)[:50]
    return trie, np.concatenate([X[:50], contexts]), y[:100]


def arrays_of(module, trie):
    return reference.Trie.of(trie) if module is reference else trie.arrays


def estimated(module, trie, interpolate, min_counts, of_text=False):
    prob, bow = np.empty(len(trie.words)), np.empty(len(trie.context_word))
    parents = trie.parents()
    calls = [(0, 0, 0, 1)]
    for level in range(1, trie.order):
        first, last = map(int, trie.level_start[level : level + 2])
        middle = (first + last) // 2
        calls.append((level, parents[first], first, middle))
        calls.append((level, parents[middle], middle, last))
    for call in calls:
        module.kneser_ney(
            arrays_of(module, trie),
            *call,
            trie.continuation_counts(),
            np.array([[0.4, 0.9, 1.3]] * 4),
            trie.counts if of_text else trie.continuation_counts(),
            np.array(min_counts),
            interpolate,
            of_text,
            -1,
            np.empty(trie.n_words),
            prob,
            bow,
        )
    return prob, bow


@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("min_counts", [[1] * 4, [1, 1, 2, 3]])
@pytest.mark.parametrize("of_text", [False, True])
def test_kneser_ney_agrees_with_twin(counted, interpolate, min_counts, of_text):
    trie = counted[0]
    fast = estimated(_kneser_ney, trie, interpolate, min_counts, of_text)
    naive = estimated(reference, trie, interpolate, min_counts, of_text)
    assert_allclose(fast[0], naive[0], rtol=1e-12)
    # The weight of a context followed by every word is never used.
    used = np.diff(trie.start) < trie.n_words
    assert_allclose(fast[1][used], naive[1][used], rtol=1e-9)


def test_lookups_agree_with_twins(counted):
    trie, X, y = counted
    prob, bow = (
        a.astype(np.float32) for a in estimated(_kneser_ney, trie, True, [1] * 4)
    )
    rows = [np.empty((len(X), N_WORDS)) for _ in range(2)]
    words = [np.empty((len(X), 3)) for _ in range(2)]
    chosen = np.stack([y, y[::-1], np.roll(y, 1)], axis=1)
    for module, row, word in zip((_backoff, reference), rows, words):
        arrays = arrays_of(module, trie)
        module.backoff_distribution(arrays, prob, bow, X, trie.path(), row)
        module.backoff_prob(arrays, prob, bow, X, chosen, trie.path(), word)
    assert_allclose(*rows, rtol=1e-12)
    assert_allclose(*words, rtol=1e-12)
    assert_allclose(np.take_along_axis(rows[0], chosen, 1), words[0], rtol=1e-12)


@pytest.mark.parametrize("interpolate", [True, False])
def test_masses_agree_with_twins(counted, interpolate):
    trie, X, _ = counted
    prob, bow = (
        a.astype(np.float32) for a in estimated(_kneser_ney, trie, interpolate, [1] * 4)
    )
    chosen = np.random.default_rng(0).integers(0, 2, N_WORDS).astype(np.uint8)
    n = len(trie.context_word)
    mass, found = np.empty((2, n)), np.empty((2, len(X)), np.int32)
    for module, own, context in zip((_backoff, reference), mass, found):
        arrays = arrays_of(module, trie)
        for part in (slice(0, n // 3), slice(n // 3, n)):
            module.backoff_masses(
                arrays, prob, bow, trie.parents(), chosen, part.start, part.stop, own
            )
        module.longest_contexts(arrays, X, trie.path(), context)
    assert_array_equal(*found)
    assert (found > 0).all()
    assert_allclose(*mass, rtol=1e-6, atol=1e-6)
    rows = np.empty((len(X), N_WORDS))
    _backoff.backoff_distribution(
        arrays_of(_backoff, trie), prob, bow, X, trie.path(), rows
    )
    assert_allclose(
        mass[0][found[0]], rows[:, chosen.astype(bool)].sum(1), rtol=1e-6, atol=1e-6
    )


def test_frequencies_agree_with_twins(counted):
    trie, X, y = counted
    totals = trie.totals()
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=len(X))
    results = []
    for module in (_interpolation, reference):
        arrays = arrays_of(module, trie)
        counts = (trie.counts, totals)
        members = np.empty((len(X), 5))
        frequency = np.empty(len(X), dtype=np.int64)
        mixed = np.empty((len(X), N_WORDS))
        module.relative_frequencies(arrays, *counts, X, y, trie.path(), members)
        module.context_frequencies(arrays, totals, X, trie.path(), frequency)
        module.mixed_frequencies(arrays, *counts, weights, X, trie.path(), mixed)
        results.append((members, frequency, mixed))
    for fast, naive in zip(*results):
        assert_allclose(fast, naive, rtol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_contexts_and_ngrams_are_found_as_by_twins(counted, level):
    trie, X, y = counted
    X = X[:, 3 - level :]
    results = []
    for module in (_backoff, reference):
        contexts, index = np.empty((2, len(X)), dtype=np.int32)
        arrays = arrays_of(module, trie)
        module.find_contexts(arrays, X, trie.path(), contexts)
        module.find_ngrams(arrays, contexts, y, index)
        results.append((contexts, index))
    assert_array_equal(*(contexts for contexts, _ in results))
    assert_array_equal(*(index for _, index in results))
    found = results[0][1] >= 0
    assert found[:50].any()
    assert_array_equal(trie.words[results[0][1][found]], y[found])


@pytest.mark.parametrize("room", [3, 100])
def test_weights_in_turn_agree_with_twin(room):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 7, 60).astype(np.int32)
    # Word 0 makes no contexts; those of the other words are contiguous from 11 on.
    n_made = np.bincount(words, minlength=7)
    n_made[0] = 0
    starts = (11 + np.cumsum([0, *n_made[:-1]])).astype(np.int32)
    starts[0] = -1
    bow = rng.random(n_made.sum()).astype(np.float32)
    made = 11 + np.argsort(np.argsort(words, kind="stable"), kind="stable")
    expected = np.where(words == 0, np.nan, bow[made - 11 - np.sum(words == 0)])
    for module in (_backoff, reference):
        weight = np.full(len(words), np.nan, dtype=np.float32)
        for first in range(0, len(bow), room):
            turns = starts.copy()
            own = bow[first : first + room]
            module.weights_in_turn(words, turns, own, 11 + first, weight)
            assert_array_equal(turns[1:], (starts + n_made)[1:])
        assert_array_equal(weight, expected.astype(np.float32))


@pytest.mark.parametrize("boundary", [-1, 0])
@pytest.mark.parametrize("bigram_prior", [-1.0, 0.5])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_caches_agree_with_twins(boundary, bigram_prior, length):
    rng = np.random.default_rng(length)
    X = rng.integers(0, 4, (50, length)).astype(np.int32)
    X[:9] = np.tril(X[:9], length - 9) if length == 9 else 0  # padded, and empty
    y = rng.integers(0, 4, 50).astype(np.int32)
    cache = (boundary, rng.random(length), rng.dirichlet(np.ones(5)), 2.0, bigram_prior)
    proba, rows = np.empty((2, 50)), np.empty((2, 50, 5))
    for module, own, row in zip((_cache, reference), proba, rows):
        module.cache_prob(X, y, *cache, own)
        module.cache_distribution(X, *cache, row)
    assert_allclose(*proba, rtol=1e-12)
    assert_allclose(*rows, rtol=1e-12)
    assert_allclose(rows[0].sum(axis=1), 1, rtol=1e-12)
