"""The hash table gives the probabilities of the trie, bit for bit."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import BackoffLM, TextLM, windows
from nplm._kernels.ngrams import _hashing
from nplm.formats import load_binary, read_arpa, save_binary, write_arpa
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie import hashing
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable, empty_buckets
from nplm.models.ngrams.trie.hashing import fill_table, hash_table_of, keys_of
from nplm.models.ngrams.trie.work import Work
from tests.helpers import arpa
from tests.helpers.ngrams import cut_in_memory, trie_of_tables
from tests.reference import ngrams as reference

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 40


def fitted(order, **settings):
    model, X, y = arpa.fitted(order, n_words=N_WORDS + 1, **settings)
    return model, *arpa.with_unseen(X, y)


def without_suffixes(trie):
    """Return a pruned trie that lacks suffixes and prefixes of its n-grams."""
    keep = np.random.default_rng(0).random(len(trie.words)) < 0.3
    return cut_in_memory(trie, keep)


@pytest.mark.parametrize("order", range(2, 10))
@pytest.mark.parametrize("min_counts", [None, (1, 2, 2)])
@pytest.mark.parametrize("boundary", [None, 1])
def test_hash_table_agrees_with_trie_bit_for_bit(order, min_counts, boundary):
    model, X, y = fitted(order, min_counts=min_counts, boundary=boundary)
    for trie in (model.trie_, without_suffixes(model.trie_)):
        walked = np.array(
            [
                trie.next_word_prob(X[i : i + 1], y[i : i + 1])[0]
                for i in range(0, len(y), 97)
            ]
        )
        hashed = hash_table_of(trie).next_word_prob(X, y)
        assert_array_equal(hashed[::97], walked)
        rows = trie.distribution(X[::97])
        assert_allclose(walked, rows[np.arange(len(walked)), y[::97]], rtol=1e-12)


@pytest.mark.parametrize("slots", [1.12, 1.2])
def test_ngrams_beyond_full_buckets_are_found(tmp_path, monkeypatch, slots):
    """Without spare buckets, as in large tables; filled at once and in windows."""
    monkeypatch.setattr(hashing, "SPARE_BUCKETS", 1)
    for name in ("SLOTS_PER_BIGRAM", "SLOTS_PER_NGRAM", "SLOTS_PER_LONGEST"):
        monkeypatch.setattr(hashing, name, slots)
    monkeypatch.setattr(hashing, "MIN_BUCKETS", 8)
    monkeypatch.setattr(hashing, "SPILL", 64)
    model, X, y = fitted(5, n=9000, boundary=1)
    trie = model.trie_
    table = hash_table_of(trie)
    first_long = int(table.bucket_start[-2]) * 64
    middle = table.buckets[:first_long].view(np.uint32).reshape(-1, 16)
    beyond = np.count_nonzero(middle[:, 4:8] & 1 << 16, axis=1)
    assert {1, 2} <= set(beyond) and (beyond > 0).sum() > 100
    assert np.count_nonzero(table.buckets[first_long + 63 :: 64]) > 100
    expected = trie.next_word_prob(X, y)
    assert_array_equal(table.next_word_prob(X, y), expected)
    lm = TextLM.from_model(BackoffLM.from_trie(trie, table, boundary=1))
    [scores] = lm.token_scores([y[:500]])
    own, following = windows(np.append(y[:500], 1), 4, boundary=1)
    assert_allclose(scores.log_prob, np.log(trie.next_word_prob(own, following)), 1e-12)
    with Scratch(tmp_path, 1 << 12, 2) as scratch:
        made = np.zeros_like(table.buckets)
        assert fill_table(trie, made, table.bucket_start, scratch) == table.closed
    assert_array_equal(made, table.buckets)


def test_search_in_a_full_table_of_a_damaged_file_ends():
    """All buckets say that a search goes on in the next one."""
    model, X, y = fitted(5)
    whole = hash_table_of(model.trie_)
    buckets = whole.buckets.copy()
    last = whole.bucket_start[-2] * 64
    buckets[:last].view(np.uint32).reshape(-1, 16)[:, 4:8] |= 1 << 16
    buckets[last + 63 :: 64] = 0xFF
    full = replace(whole, buckets=buckets)
    assert_array_equal(full.next_word_prob(X, y), whole.next_word_prob(X, y))


@pytest.mark.parametrize("longest", [True, False])
def test_ngrams_that_a_table_has_no_room_for_are_left_out(longest):
    """A context has more n-grams than are inserted together."""
    n = 1000
    trie = trie_of_tables(
        [
            np.arange(n, dtype=np.int32)[:, np.newaxis],
            np.array([[0, w] for w in range(n)] + [[1, 0]], dtype=np.int32),
        ],
        [np.full(n, 1 / n), np.full(n + 1, 0.5)],
        [np.ones(n)],
    )
    keys = keys_of(trie, Work())
    first, last = trie.level_start[1:3].tolist()
    filters, missing = np.zeros(n, np.uint16), np.empty((3, 0), np.int32)
    for n_buckets, expected in [(33, -1), (2000, 0)]:
        window = _hashing.Window(empty_buckets(n_buckets), n_buckets, 0, longest)
        own = first, last, window, filters, missing
        assert _hashing.put_ngrams(trie.arrays, keys, trie.prob, *own) == expected
        assert not filters.any()
        assert window.n_used == n + 1 or expected < 0 < window.n_used < n


@pytest.mark.parametrize("width", [0, 1, 3, 4, 20])
def test_windows_of_another_width_are_refused(width, tmp_path):
    model, X, y = fitted(3)
    save_binary(model, tmp_path / "bits", [f"w{i}" for i in range(N_WORDS + 1)], bits=8)
    quantized, _ = load_binary(tmp_path / "bits")
    assert_allclose(quantized.trie_.next_word_prob(X[:9], y[:9]), 0.5, atol=0.5)
    X = np.zeros((9, width), dtype=np.int32)
    for ngrams in (model.index_, quantized.trie_):
        for look_up in (ngrams.next_word_prob, ngrams.next_word_log_prob):
            with pytest.raises(ValueError, match=f"X has {width} columns, not 2"):
                look_up(X, y[:9])


def test_hash_table_agrees_with_reference():
    model, X, y = fitted(4, min_counts=(1, 2, 2))
    trie = without_suffixes(model.trie_)
    expected = np.empty((len(y), 1))
    arrays = reference.Trie.of(trie)
    reference.backoff_prob(arrays, trie.prob, trie.bow, X, y[:, None], None, expected)
    assert_allclose(
        hash_table_of(trie).next_word_prob(X, y), expected[:, 0], rtol=1e-12
    )


@pytest.fixture
def tables(monkeypatch):
    """Return a list of the tries that hash tables are made of."""
    made = []
    make = hashing.hash_table_of

    def recorded(trie):
        made.append(trie)
        return make(trie)

    monkeypatch.setattr(hashing, "hash_table_of", recorded)
    return made


def assert_same_index(a, b):
    for field in fields(HashTable):
        assert_array_equal(getattr(a, field.name), getattr(b, field.name))


def test_fit_makes_the_index_that_scores(tables, monkeypatch):
    model, X, y = fitted(3, boundary=1)
    assert tables == [model.trie_]
    monkeypatch.setattr(BackoffTrie, "next_word_prob", None)
    before = vars(model).copy()
    model.log_prob(X, y), model.log_prob(X[:1], y[:1]), model.predict_proba(X[:9])
    text = TextLM.from_model(model)
    text.score_samples([y[:5], y[5:9]]), text.scorer().score(y[:5])
    assert vars(model) == before and tables == [model.trie_]


def test_pickle_omits_the_index_and_unpickling_rebuilds_it():
    model, X, y = fitted(3)
    again = pickle.loads(pickle.dumps(model))
    assert_same_index(again.index_, model.index_)
    assert_array_equal(again.log_prob(X, y), model.log_prob(X, y))
    bare, whole = (
        pickle.dumps(BackoffLM.from_trie(model.trie_, index))
        for index in (None, model.index_)
    )
    assert len(bare) == len(whole)
    assert pickle.loads(bare).index_ is None


def test_model_without_index_gives_the_same_bits_and_can_build_it():
    model, X, y = fitted(4, min_counts=(1, 2, 2))
    bare = BackoffLM.from_trie(model.trie_)
    assert bare.index_ is None
    assert_array_equal(bare.log_prob(X, y), model.log_prob(X, y))
    assert bare.prune(1e-4).index_ is None
    assert_same_index(bare.build_index().index_, hash_table_of(bare.trie_))
    index = bare.index_
    assert bare.build_index().index_ is index


def test_read_arpa_builds_the_index_unless_told_not_to(tmp_path):
    model, X, y = fitted(3)
    write_arpa(model, tmp_path / "arpa", [f"w{i}" for i in range(N_WORDS + 1)])
    whole, _ = read_arpa(tmp_path / "arpa")
    bare, _ = read_arpa(tmp_path / "arpa", index=False)
    assert_same_index(whole.index_, hash_table_of(bare.trie_))
    assert bare.index_ is None
    assert_array_equal(bare.log_prob(X, y), whole.log_prob(X, y))


def test_index_is_rebuilt_after_pruning_and_partial_fit():
    model, X, y = fitted(3)
    for change in (lambda: model.prune(1e-4), lambda: model.partial_fit(X, y)):
        before = model.trie_
        change()
        assert model.trie_ is not before
        assert_same_index(model.index_, hash_table_of(model.trie_))


@pytest.mark.parametrize("change", ["prune", "partial_fit"])
@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_interrupt_while_the_index_is_built_leaves_the_model(monkeypatch, change):
    model, X, y = fitted(3)
    before = vars(model).copy()

    def interrupted(trie):
        raise KeyboardInterrupt

    monkeypatch.setattr(hashing, "hash_table_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.prune(1e-4) if change == "prune" else model.partial_fit(X, y)
    assert vars(model) == before


def test_orders_without_hash_table_have_no_index():
    for order in (1, 17):
        model, X, y = fitted(order, n=300)
        assert model.index_ is None and model.build_index().index_ is None
        assert np.isfinite(model.log_prob(X, y)).all()


@pytest.mark.parametrize("order", range(2, 6))
@pytest.mark.parametrize("boundary", [None, 1])
def test_index_is_closed_if_all_contexts_are_ngrams(order, boundary):
    model, *_ = fitted(order, n=400, boundary=boundary)
    for trie in (model.trie_, without_suffixes(model.trie_)):
        n_made = np.count_nonzero(trie.contexts_made() >= 0)
        closed = n_made == len(trie.context_word) - 1
        assert hash_table_of(trie).closed == closed


@pytest.mark.parametrize("order", [1, 2, 4])
def test_contexts_made_agrees_with_reference(order):
    model, *_ = fitted(order)
    for trie in (model.trie_, without_suffixes(model.trie_)):
        made = trie.contexts_made()
        expected = np.empty_like(made)
        arrays = reference.Trie.of(trie)
        own = trie.parents(), 0, int(trie.level_start[order - 1])
        reference.contexts_made(arrays, *own, None, None, expected)
        assert_array_equal(made, expected)


def test_contexts_made_of_a_high_order():
    """The order exceeds every buffer of fixed size."""
    order = 100
    ids = np.arange(order + 1, dtype=np.int32) % 3
    # Only the longest n-gram is stored, none of its suffixes.
    tables = [np.arange(3, dtype=np.int32)[:, np.newaxis]]
    tables += [np.empty((0, k), dtype=np.int32) for k in range(2, order)]
    tables += [ids[np.newaxis, :order]]
    ones = [np.ones(len(table)) for table in tables]
    tables[-2], ones[-2] = ids[np.newaxis, : order - 1], np.full(1, 0.5)
    trie = trie_of_tables(tables, ones, ones[:-1])
    made = trie.contexts_made()
    assert made[3:].tolist() == trie.context(tables[-2]).tolist()


def test_table_too_small_for_its_contexts_grows():
    """The trie has more contexts that are not n-grams than it has n-grams."""
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
    trie = trie_of_tables(tables, prob, bow)
    X, y = np.ascontiguousarray(longest[:, :-1]), longest[:, -1]
    again = hash_table_of(trie).next_word_prob(X, y)
    assert_array_equal(again, trie.next_word_prob(X[:1], y[:1])[0])
