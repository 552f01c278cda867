"""KneserNeyLM fitted to streams, sentences, tables of counts and batches of windows."""

import gzip
import pickle
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from nplm import KneserNeyLM, load, save, windows
from nplm.formats import read_counts, write_counts
from nplm.models.ngrams.stages import levels
from nplm.models.ngrams.trie import context_trie
from tests.helpers import peak_of, text

# Short texts give no discounts; the fallback has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 12


def assert_same(a, b):
    """Assert that two models are bit for bit the same."""
    assert_array_equal(a.discounts_, b.discounts_)
    for field in fields(a.trie_):
        arrays = (getattr(model.trie_, field.name) for model in (a, b))
        assert_array_equal(*arrays, err_msg=field.name)


def of_stream(model, ids, X, y, path):
    return model.fit_stream(ids)


def of_counts(model, ids, X, y, path):
    """Fit to counts in any order, of which some rows repeat and some are 0."""
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    order = np.random.default_rng(0).permutation(len(rows))
    rows, counts = rows[order], counts[order]
    twice = np.concatenate([rows, rows, rows[:5]])
    return model.fit_counts(twice, [*(counts - 1), *np.ones_like(counts), *[0] * 5])


def of_tables(model, ids, X, y, path):
    """Fit to the tables of a model without a boundary, which ends no context."""
    counts = clone(model).set_params(boundary=None).fit(X, y).counts_
    levels = range(counts.order)
    totals = [counts.counts[counts.followers(k)] for k in levels]
    return model.fit_counts([counts.ngrams(k) for k in levels], totals)


def of_a_file(model, ids, X, y, path):
    words = ["</s>", "<unk>", *(f"wörd{i}" for i in range(2, N_WORDS))]
    write_counts(clone(model).fit(X, y), path, words)
    ngrams, counts, found = read_counts(path)
    assert found == read_counts(path, words)[2] == words
    return model.fit_counts(ngrams, counts)


def of_batches(model, ids, X, y, path):
    for rows in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(X[rows], y[rows])
    return model


def of_more_windows(model, ids, X, y, path):
    model = pickle.loads(pickle.dumps(model.fit(X[:999], y[:999])))
    return model.partial_fit(X[999:], y[999:])


@pytest.mark.parametrize(
    "fit", [of_stream, of_counts, of_tables, of_a_file, of_batches, of_more_windows]
)
@pytest.mark.parametrize("min_counts", [None, (1, 2, 2)])
@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("boundary", [None, 0])
def test_any_way_to_count_a_text_gives_the_model_of_its_windows(
    fit, order, boundary, min_counts, tmp_path
):
    ids = text(2000)
    X, y = windows(ids, max(order - 1, 1), boundary=boundary)
    settings = {"n_words": N_WORDS, "boundary": boundary, "min_counts": min_counts}
    whole = KneserNeyLM(order, **settings).fit(X, y)
    name = tmp_path / ("counts" if boundary is None else "counts.gz")
    model = fit(KneserNeyLM(order, **settings), ids, X, y, name)
    assert_same(model, whole)
    assert_array_equal(model.log_prob(X, y), whole.log_prob(X, y))


def test_counts_of_shuffled_windows_are_accepted(tmp_path):
    """The first words of an n-gram need not be counted themselves."""
    X, y = windows(text(400), 3)
    picked = np.random.default_rng(0).permutation(len(y))[:150]
    model = KneserNeyLM(n_words=N_WORDS).fit(X[picked], y[picked])
    again = KneserNeyLM(n_words=N_WORDS)
    assert_same(of_a_file(again, None, X[picked], y[picked], tmp_path / "n"), model)
    # A lower order of the same tables.
    ngrams, counts, _ = read_counts(tmp_path / "n")
    lower = KneserNeyLM(2, n_words=N_WORDS).fit_counts(ngrams, counts)
    assert_array_equal(lower.n_ngrams_, model.n_ngrams_[:2])


@pytest.mark.parametrize(
    ("fallback", "used"), [((0.4, 1.25, 2), (0.4, 1.25, 2)), (0.5, (0.5, 0.5, 0.5))]
)
@pytest.mark.filterwarnings("error:Kneser-Ney cannot estimate")
def test_discount_fallback_is_used_without_a_warning(fallback, used, tmp_path):
    ids = [0, 1, 2, 0] * 10
    X, y = windows(ids, 2)
    model = KneserNeyLM(n_words=3, discount_fallback=fallback).fit(X, y)
    assert_array_equal(model.discounts_, [used] * 3)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.set_params(order=2).fit(X, y).discounts_, [used] * 2)


def test_discount_fallback_does_not_replace_estimated_discounts():
    X, y = windows(text(3000), 2)
    plain = KneserNeyLM(n_words=N_WORDS, discounts="plain")
    found = clone(plain).fit(X, y).discounts_
    plain.set_params(discount_fallback=0.125).fit(X, y)
    estimated = found[:, 0] != 0.5
    assert estimated.any()
    assert_array_equal(plain.discounts_[estimated], found[estimated])


@pytest.mark.parametrize(
    ("fallback", "interpolate"),
    [
        (0, True), (1.5, True), ((0.5, 1), True), ((0.5, 1, 3.5), True), (np.nan, True),
        (True, True), (["a", 1, 1], True), ([[0.5, 1, 1.5]], True),
        ((0.5, 1, 3), False),
    ],
)  # fmt: skip
def test_discount_fallback_out_of_range_is_refused(fallback, interpolate):
    X, y = windows(text(100), 2)
    model = KneserNeyLM(discount_fallback=fallback, interpolate=interpolate)
    with pytest.raises(ValueError, match="discount_fallback must be None, a number"):
        model.fit(X, y)


def test_fit_stream_of_sentences_appends_the_boundary():
    sentences = [[3, 4, 5], [4], [], [5, 5, 3, 3, 3, 4]]
    stream = [3, 4, 5, 0, 4, 0, 0, 5, 5, 3, 3, 3, 4, 0]
    model = KneserNeyLM(3, boundary=0).fit_stream(sentences)
    assert_same(model, KneserNeyLM(3, boundary=0).fit_stream(stream))


def test_fit_stream_without_boundary_counts_no_ngram_across_sentences():
    """The shorter n-grams at the beginning of a sentence are counted."""
    sentences = [text(int(n), int(n)).tolist() for n in range(1, 60)]
    model = KneserNeyLM(3, n_words=N_WORDS).fit_stream(sentences)
    for k in range(3):
        expected = Counter(
            tuple(s[i : i + k + 1]) for s in sentences for i in range(len(s) - k)
        )
        grams = map(tuple, model.counts_.ngrams(k).tolist())
        counts = model.counts_.counts[model.counts_.followers(k)].tolist()
        assert {g: c for g, c in zip(grams, counts) if c} == expected
    proba = model.predict_proba([[1, 2], [2, 1]])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


def test_count_file_of_srilm_is_read(tmp_path):
    path = tmp_path / "counts"
    path.write_text(
        "<s>\t2\n<s> a\t1\n<s> a b\t1\n<s> b\t1\na\t1\na b\t1\n"
        "a b </s>\t1\nb\t2\nb </s>\t2\n</s>\t2\n<s> b </s>\t1\n"
    )
    ngrams, counts, words = read_counts(path)
    assert words == ["a", "b", "</s>"]
    assert ngrams[0].tolist() == [[0], [1], [2]]
    assert counts[0].tolist() == [1, 2, 2]
    model = KneserNeyLM(3, boundary=2).fit_counts(ngrams, counts)
    assert_same(model, KneserNeyLM(3, boundary=2).fit_stream([[0, 1], [1]]))
    assert read_counts(path, ["</s>", "b", "a", "c"])[2] == ["</s>", "b", "a", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\t1\nb\n", "line 2: 'b' is not 1 to 9 words and a count"),
        ("a\t1\na a\t-3\n", r"line 2: 'a a\\t-3' does not end in a whole number"),
        ("a\t1\na a\t1.5\n", "line 2: .* whole number"),
        ("a\t1\n\na b\t5\n", r"line 3: 'a b\\t5' has a word that is neither"),
        ("a\t99999999999999999999\n", "line 1: .* overflows"),
        ("a a a a a a a a a a\t1\na 1\n", "line 1: .* is not 1 to 9 words"),
        ("\n", "is empty"),
        ("a\t1\n<s>\t1\n<s> a\t1\n", "begin with <s>, but its"),
        (b"a\t1\n \xe4\t1\n", "line 2: not UTF-8"),
        (f"a\t{2**52}\nb\t{2**52}\n", "counts of its 1-grams add up to 9.01e"),
        ("\n" * 9 + "a 1\n" + "a " * 5000, r"line 11: .{99,600}$"),
    ],
)
def test_invalid_count_files_are_refused(tmp_path, content, message):
    path = tmp_path / "counts"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        read_counts(path)
    assert str(path) in str(caught.value)


def test_blank_lines_of_a_count_file_use_no_memory(tmp_path):
    path = tmp_path / "counts.gz"
    n = 1 << 20
    path.write_bytes(gzip.compress(b"\n" * n + b"a\r\t3\n"))
    assert peak_of(lambda: read_counts(path)) < 8 * n
    ngrams, counts, words = read_counts(path)
    assert (ngrams[0].tolist(), counts[0].tolist(), words) == ([[0]], [3], ["a"])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, -1], "counts has -1 at 1, which is negative"),
        ([1, 2.5], "counts has 2.5 at 1, which is not a whole number"),
        ([1, np.nan], "counts has nan at 1, which is not a finite number"),
        ([1, 2**60], "which overflows"),
        ([2**52, 2**52], "they overflow"),
        ([1], r"shape \(2,\), got an array of shape \(1,\)"),
        (["a", "b"], "counts must be whole numbers"),
    ],
)
def test_invalid_counts_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        KneserNeyLM().fit_counts([[0, 1], [1, 0]], counts)


def test_inconsistent_tables_of_counts_are_refused():
    with pytest.raises(ValueError, match="2 tables of n-grams, but 1 of counts"):
        KneserNeyLM().fit_counts([np.zeros((1, 1), int), np.zeros((1, 2), int)], [[1]])
    with pytest.raises(ValueError, match=r"ngrams\[1\] must have 2 columns"):
        KneserNeyLM().fit_counts([np.zeros((1, 1), int)] * 2, [[1], [1]])
    with pytest.raises(ValueError, match="order=4 needs"):
        KneserNeyLM(4).fit_counts([[0, 1, 0]], [1])
    with pytest.raises(ValueError, match="n-grams of no words"):
        KneserNeyLM().fit_counts([[]], [1])
    for empty in ([], (), np.empty((0, 3), int)):
        with pytest.raises(ValueError, match="ngrams is empty"):
            KneserNeyLM().fit_counts(empty, [])


def test_too_many_contexts_or_ngrams_are_refused(monkeypatch):
    stream = np.arange(60)
    monkeypatch.setattr(levels, "MAX_NGRAMS", 200)
    with pytest.raises(ValueError, match=r"more than 200; lower order"):
        KneserNeyLM(5).fit_stream(stream)
    monkeypatch.setattr(context_trie, "MAX_NGRAMS", 200)
    with pytest.raises(ValueError, match="more than 200 contexts; lower order"):
        context_trie.TrieBuilder(300).add_context_level(
            np.zeros(2, int), np.arange(300)
        )
    rows, ones = [np.zeros((1, 1), int), np.zeros((201, 2), int)], np.ones(201)
    with pytest.raises(ValueError, match="201 rows of n-grams are too many to sort"):
        KneserNeyLM().fit_counts(rows, [[201], ones])


def tables(*orders):
    """Return tables of n-grams and their counts, from dictionaries."""
    return (
        [np.array(list(table), dtype=int) for table in orders],
        [list(table.values()) for table in orders],
    )


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        # A suffix that is missing, has count 0, or is counted less often.
        (
            [{(0,): 9, (1,): 9}, {(0, 1): 2, (1, 0): 2}, {(1, 1, 0): 1, (0, 0, 0): 1}],
            r"the n-gram \[0, 0, 0\] is counted, but its suffix \[0, 0\] is not",
        ),
        (
            [{(0,): 9, (1,): 9}, {(0, 1): 2, (1, 0): 0}, {(0, 1, 0): 1}],
            r"the n-gram \[0, 1, 0\] is counted, but its suffix \[1, 0\] is not",
        ),
        ([{(0,): 9}, {(0, 2): 1}], r"\[2\] has count 0, but .* add up to 1\."),
        (
            [{(0,): 5, (1,): 3}, {(0, 1): 2, (1, 1): 2, (1, 0): 5}],
            r"the n-gram \[1\] has count 3, but .* add up to 4\. Pass counts of one",
        ),
        (
            [{(0,): 9, (1,): 9}, {(0, 1): 2}, {(0, 0, 1): 2, (1, 0, 1): 1}],
            r"the n-gram \[0, 1\] has count 2, but .* 3-grams .* add up to 3\.",
        ),
        ([{(0,): 9}, {(0, 0): 8}, {(0, 0, 0): 9}], r"\[0, 0\] has count 8, .* to 9\."),
    ],
)
def test_contradictory_counts_are_refused(orders, message):
    for given in (orders, [*orders, dict.fromkeys([(0,) * (len(orders) + 1)], 0)]):
        with pytest.raises(ValueError, match=message):
            KneserNeyLM().fit_counts(*tables(*given))


@pytest.mark.parametrize("seed", range(20))
def test_incomplete_counts_are_refused_or_give_a_normalised_model(seed):
    """Some counts of a text are missing, as after a cut-off or an error."""
    rng = np.random.default_rng(seed)
    model = KneserNeyLM(3, n_words=N_WORDS).fit_stream(text(300, seed))
    counts, ngrams, totals = model.counts_, [], []
    for k in range(3):
        kept = rng.random(counts.n_ngrams[k]) > 0.01 * rng.integers(2) * (k < 2)
        ngrams.append(counts.ngrams(k)[kept])
        totals.append(counts.counts[counts.followers(k)][kept])
    whole = [len(table) for table in ngrams[:2]] == counts.n_ngrams[:2].tolist()
    other = KneserNeyLM(3, n_words=N_WORDS)
    try:
        other.fit_counts(ngrams, totals)
    except ValueError as error:
        assert not whole
        assert "Pass counts of one text" in str(error)
    else:
        every = np.indices((N_WORDS, N_WORDS)).reshape(2, -1).T
        proba = other.predict_proba(every)
        assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
        assert (proba > 0).all()


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_counts_with_one_cut_off_for_all_orders_are_accepted(cut):
    counts = KneserNeyLM(3, n_words=N_WORDS).fit_stream(text(2000)).counts_
    totals = [counts.counts[counts.followers(k)] for k in range(3)]
    totals = [np.where(own >= cut, own, 0) for own in totals]
    ngrams = [counts.ngrams(k) for k in range(3)]
    model = KneserNeyLM(3, n_words=N_WORDS).fit_counts(ngrams, totals)
    proba = model.predict_proba(ngrams[2][:, :2])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("ngrams", "counts"), [([[0], [1]], [1, 2]), ([np.array([[0], [1]])], [[1, 2]])]
)
def test_fit_counts_of_single_words_needs_order_1(ngrams, counts):
    for order in (None, 2):
        with pytest.raises(ValueError, match=f"order is {order}: .* set order=1"):
            KneserNeyLM(order).fit_counts(ngrams, counts)
    assert KneserNeyLM(1).fit_counts(ngrams, counts).n_ngrams_.tolist() == [2]


def test_partial_fit_refuses_new_words_and_other_widths():
    X, y = windows(text(300), 2)
    model = KneserNeyLM().partial_fit(X, y)
    with pytest.raises(ValueError, match="n_words=12"):
        model.partial_fit([[0, 12]], [3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit([[0, 1, 2]], [3])


def test_n_parameters_counts_ngrams_and_contexts():
    model = KneserNeyLM(3, n_words=N_WORDS)
    model.fit_stream(text(500))
    n_contexts = np.count_nonzero(np.diff(model.trie_.start))
    assert model.n_parameters_ == model.n_ngrams_.sum() + n_contexts


def test_estimation_does_not_depend_on_block_size(monkeypatch):
    expected = KneserNeyLM(4, n_words=N_WORDS).fit_stream(text(2000))
    monkeypatch.setattr(context_trie, "BLOCK_FOLLOWERS", 7)
    assert_same(KneserNeyLM(4, n_words=N_WORDS).fit_stream(text(2000)), expected)


def test_orders_without_ngrams_back_off():
    """Sentences of one word, or empty tables, leave only unigrams."""
    model = KneserNeyLM(3, n_words=4).fit_stream([[0], [1], [0], [0], [2]])
    proba = model.predict_proba([[1, 1], [0, 3]])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert_array_equal(proba[0], proba[1])
    alone = KneserNeyLM(1, n_words=4).fit_stream([[0, 1, 0, 0, 2]])
    assert_array_equal(proba[0], alone.predict_proba([[1]])[0])
    empty = [np.empty((0, k), dtype=int) for k in (2, 3)]
    tables = [np.array([[0], [1], [2]]), *empty], [[3, 1, 1], [], []]
    assert_same(KneserNeyLM(3, n_words=4).fit_counts(*tables), model)
