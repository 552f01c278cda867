"""The n-gram models against dictionaries, and against the toolkits' figures."""

import os
import pickle
from collections import Counter, defaultdict
from math import ceil, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from nplm import InterpolatedTrigram, KneserNeyLM, windows
from nplm._em import FrequencyBins, fit_mixture_weights
from nplm._kernels import _backoff, _interpolation, _kneser_ney, reference
from nplm.counts import NgramCounts
from nplm.ngram import modified_discounts

# Text of a few words cannot give discounts: its fall-back is tested on its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 12


def text(n, seed=0, n_words=N_WORDS):
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


@small_text
@parametrize_with_checks(
    [
        KneserNeyLM(),
        KneserNeyLM(interpolate=False, min_counts=(1, 1, 2)),
        InterpolatedTrigram(),
        InterpolatedTrigram(order=None),
    ]
)
def test_sklearn(estimator, check):
    check(estimator)


# -- Kneser-Ney ------------------------------------------------------------------


class DictionaryKneserNey:
    """Chen and Goodman's equations on dictionaries, one probability at a time."""

    def __init__(self, X, y, n_words, interpolate, min_counts, boundary):
        self.n_words, self.interpolate = n_words, interpolate
        self.top = len(X[0])
        self.min_counts = min_counts
        raw = [Counter() for _ in range(self.top + 1)]
        for x, w in zip(X, y):
            for k in range(self.top + 1):
                context = tuple(x[self.top - k :])
                raw[k][context, w] += 1
                if k and context[0] == boundary:
                    break
        self.a = [defaultdict(dict) for _ in raw]
        for k, grams in enumerate(raw):
            before = Counter()
            if k < self.top:
                before = Counter((c[1:], w) for c, w in raw[k + 1])
            for (c, w), count in grams.items():
                whole = k == self.top or (c and c[0] == boundary)
                self.a[k][c][w] = count if whole else before[c, w]
        self.discounts = []
        for level in self.a:
            n = Counter(a for row in level.values() for a in row.values())
            D = [0.5, 1.0, 1.5]
            if all(n[i] for i in (1, 2, 3, 4)):
                Y = n[1] / (n[1] + 2 * n[2])
                own = [i - (i + 1) * Y * n[i + 1] / n[i] for i in (1, 2, 3)]
                if all(0 < d < i for i, d in zip((1, 2, 3), own)):
                    D = own
            self.discounts.append(D)
        self.rows = {}

    def row(self, context):
        """Return the whole distribution after a context (a tuple)."""
        if context not in self.rows:
            self.rows[context] = self._row(context)
        return self.rows[context]

    def _row(self, context):
        k = len(context)
        lower = self.row(context[1:]) if k else [1 / self.n_words] * self.n_words
        seen = self.a[k].get(context)
        if not seen:
            return lower
        total = sum(seen.values())
        discounted = {w: self.discounts[k][min(a, 3) - 1] for w, a in seen.items()}
        gamma = sum(discounted.values()) / total
        kept = [w for w, a in seen.items() if a >= self.min_counts[k]]
        p = {w: (seen[w] - discounted[w]) / total for w in kept}
        if self.interpolate or len(kept) == self.n_words:
            p = {w: p[w] + gamma * lower[w] for w in kept}
        if len(kept) == self.n_words:
            bow = 0.0
        else:
            rest = sum(lower[w] for w in range(self.n_words) if w not in p)
            bow = (1 - sum(p.values())) / rest
        return [p.get(w, bow * lower[w]) for w in range(self.n_words)]


def settings_of_models():
    return st.fixed_dictionaries(
        {
            "n_tokens": st.integers(6, 400),
            "n_words": st.integers(2, 12),
            "order": st.integers(2, 5),
            "interpolate": st.booleans(),
            "min_counts": st.sampled_from([(1,), (1, 1, 2), (2,), (1, 2, 3)]),
            "boundary": st.sampled_from([None, 0, 1]),
            "seed": st.integers(0, 2**16),
        }
    )


@small_text
@settings(deadline=None, max_examples=60)
@given(settings_of_models())
def test_kneser_ney_against_dictionary(case):
    n_words, order, boundary = case["n_words"], case["order"], case["boundary"]
    ids = text(case["n_tokens"], case["seed"], n_words)
    # The last word is never seen: it must have probability all the same.
    X, y = windows(ids, order - 1, boundary=boundary)
    given = case["min_counts"]
    model = KneserNeyLM(
        n_words=n_words + 1,
        interpolate=case["interpolate"],
        min_counts=given,
        boundary=boundary,
    ).fit(X, y)
    expected = DictionaryKneserNey(
        X.tolist(),
        y.tolist(),
        n_words + 1,
        case["interpolate"],
        (given + (given[-1],) * order)[:order],
        boundary,
    )
    assert_allclose(model.discounts_, expected.discounts)
    # Seen contexts, half-seen ones, and ones never seen.
    rng = np.random.default_rng(case["seed"])
    shuffled = rng.permuted(X, axis=0)
    unseen = np.full((1, order - 1), n_words)
    contexts = np.concatenate([X[:20], shuffled[:20], unseen])
    proba = model.predict_proba(contexts)
    if boundary is not None:
        for x in contexts:
            for j in range(order - 2, 0, -1):
                if x[j] == boundary:
                    x[:j] = boundary
    rows = []
    for x in contexts.tolist():
        if boundary in x:
            nearest = order - 2 - x[::-1].index(boundary)
            x = x[nearest:]
        rows.append(expected.row(tuple(x)))
    assert_allclose(proba, rows, rtol=2e-6)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert (proba > 0).all()
    for w in range(n_words + 1):
        scores = model.log_prob(contexts, np.full(len(contexts), w))
        assert_allclose(scores, np.log(proba[:, w]), rtol=1e-12, atol=1e-12)


@small_text
@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("min_counts", [None, (1, 1, 2)])
def test_every_context_of_the_tree_is_normalised(interpolate, min_counts):
    X, y = windows(text(2000), 3)
    model = KneserNeyLM(
        n_words=N_WORDS + 3, interpolate=interpolate, min_counts=min_counts
    ).fit(X, y)
    proba = model.predict_proba(np.unique(X, axis=0))
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@small_text
def test_every_word_follows():
    """A context that every word follows has nothing to back off to."""
    X, y = windows(text(5000, n_words=4), 1)
    for interpolate in (True, False):
        model = KneserNeyLM(interpolate=interpolate).fit(X, y)
        assert model.n_ngrams_.tolist() == [4, 16]
        proba = model.predict_proba([[w] for w in range(4)])
        assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@small_text
def test_cutoffs_drop_ngrams_and_empty_contexts():
    X, y = windows(text(20000, n_words=60), 3)
    every = KneserNeyLM().fit(X, y)
    cut = KneserNeyLM(min_counts=(1, 1, 2)).fit(X, y)
    assert_array_equal(every.discounts_, cut.discounts_)
    assert_array_equal(every.n_ngrams_[:2], cut.n_ngrams_[:2])
    assert (every.n_ngrams_[2:] > cut.n_ngrams_[2:]).all()
    kept = Counter(map(tuple, np.column_stack([X, y]).tolist()))
    assert cut.n_ngrams_[3] == sum(count >= 2 for count in kept.values())
    assert len(cut.tree_.words) == cut.n_ngrams_.sum()
    tree = cut.tree_
    leads_on = np.diff(tree.start) + np.diff(tree.child_start)
    assert (leads_on[1 + 60 :] > 0).all()
    assert cut.n_parameters_ < every.n_parameters_


def test_discounts_of_an_order_fall_back_with_a_warning():
    # Every word follows every other equally often.
    X, y = windows(np.tile([0, 1, 0, 2, 1, 2], 50), 1)
    with pytest.warns(UserWarning, match="Kneser-Ney") as caught:
        model = KneserNeyLM(n_words=5).fit(X, y)
    unigrams, bigrams = (str(warning.message) for warning in caught)
    assert "of the 1-grams: there are 0, 3, 0 and 0 of count 1 to 4" in unigrams
    assert "of the 2-grams: there are 0, 0, 0 and 0 of count 1 to 4" in bigrams
    assert "by 0.5, 1.0 and 1.5 instead" in bigrams
    assert {warning.filename for warning in caught} == {__file__}
    assert_array_equal(model.discounts_, [[0.5, 1, 1.5]] * 2)
    assert (model.predict_proba([[0], [4]]) > 0).all()


def test_discounts_out_of_range_fall_back():
    # n3 / n2 = 20 takes D2 below 0.
    counts = np.repeat([1, 2, 3, 4], [10, 5, 100, 10])
    with pytest.warns(UserWarning, match="3-grams: its discounts come out as .*, -28"):
        assert modified_discounts(counts, 3) == (0.5, 1.0, 1.5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_counts": (1, 0)}, r"min_counts .* got \(1, 0\)"),
        ({"min_counts": 2}, "min_counts .* got 2"),
        ({"min_counts": ()}, r"min_counts .* got \(\)"),
        ({"min_counts": (1.5,)}, r"min_counts .* got \(1.5,\)"),
        ({"boundary": 99}, "boundary .* from 0 to 11 .* got 99"),
        ({"boundary": -1}, "boundary .* got -1"),
        ({"order": 4}, "order=4 needs contexts of 3 words, but X has 2 columns"),
        ({"n_words": 3}, "n_words=3"),
    ],
)
def test_kneser_ney_bad_parameters(parameters, message):
    X, y = windows(text(500), 2)
    with pytest.raises(ValueError, match=message):
        KneserNeyLM(**{"n_words": N_WORDS, **parameters}).fit(X, y)


@small_text
def test_an_order_1_model_is_the_unigram():
    ids = text(500)
    X, y = windows(ids, 2)
    model = KneserNeyLM(order=1, n_words=N_WORDS).fit(X, y)
    expected = DictionaryKneserNey(
        [()] * len(y), y.tolist(), N_WORDS, True, (1,), None
    ).row(())
    assert_allclose(model.predict_proba(X[:3]), [expected] * 3, rtol=1e-6)


# -- the interpolated trigram ----------------------------------------------------


class DictionaryTrigram:
    """Section 4.1 on dictionaries, with held-out windows and a number of steps."""

    def __init__(self, X, y, X_val, y_val, n_words, n_steps):
        self.n_words, self.T = n_words, len(y)
        self.seen, self.follows = Counter(), Counter()
        self.order = len(X[0]) + 1
        for x, w in zip(X, y):
            for k in range(self.order):
                context = tuple(x[self.order - 1 - k :])
                self.seen[context] += 1
                self.follows[context, w] += 1
        self.first = min(self.q(x) for x in X)
        n_bins = ceil(log(self.T)) - self.first + 1
        self.weights = [[1 / (self.order + 1)] * (self.order + 1)] * n_bins
        for _ in range(n_steps):
            expected = [[0.0] * (self.order + 1) for _ in range(n_bins)]
            size = [0] * n_bins
            for x, w in zip(X_val, y_val):
                bin_ = self.q(x) - self.first
                p = self.members(x, w)
                joint = [a * b for a, b in zip(self.weights[bin_], p)]
                size[bin_] += 1
                for i, value in enumerate(joint):
                    expected[bin_][i] += value / sum(joint)
            self.weights = [
                [e / n for e in row] if n else None for row, n in zip(expected, size)
            ]

    def q(self, x):
        return ceil(-log((1 + self.seen[tuple(x)]) / self.T))

    def members(self, x, w):
        p = [1 / self.n_words]
        for k in range(self.order):
            context = tuple(x[self.order - 1 - k :])
            seen = self.seen[context]
            p.append(self.follows[context, w] / seen if seen else p[-1])
        return p

    def prob(self, x, w):
        weights = self.weights[self.q(x) - self.first]
        return sum(a * b for a, b in zip(weights, self.members(x, w)))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_trigram_against_dictionary(order):
    X, y = windows(text(800), 3)
    X_val, y_val = windows(text(400, seed=1), 3)
    model = InterpolatedTrigram(order, n_words=N_WORDS + 2, max_iter=7, tol=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    nearest = slice(3 - (order - 1), None)
    expected = DictionaryTrigram(
        X[:, nearest].tolist(),
        y.tolist(),
        X_val[:, nearest].tolist(),
        y_val.tolist(),
        N_WORDS + 2,
        7,
    )
    assert model.bins_[0] == expected.first
    assert len(model.bins_) == len(expected.weights)
    for row, weights in zip(model.weights_, expected.weights):
        if weights is not None:
            assert_allclose(row, weights, rtol=1e-9)
    assert model.n_iter_ == 7
    unseen = np.full((1, 3), N_WORDS + 1)
    half_seen = np.array([[N_WORDS, 1, 1], [N_WORDS, N_WORDS, 1]])
    known = [i for i, w in enumerate(expected.weights) if w is not None]
    contexts = np.concatenate([X_val[:30], half_seen, unseen])
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    for x, row in zip(contexts[:, nearest].tolist(), proba):
        if expected.q(x) - expected.first in known:
            assert_allclose(
                row, [expected.prob(x, w) for w in range(N_WORDS + 2)], rtol=1e-9
            )
    for w in range(N_WORDS + 2):
        scores = model.log_prob(contexts, np.full(len(contexts), w))
        assert_allclose(np.exp(scores), proba[:, w], rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(8, 300), st.integers(1, 10), st.integers(1, 4), st.integers(0, 2**16)
)
def test_trigram_is_normalised(n_tokens, n_words, order, seed):
    ids = text(n_tokens, seed, n_words)
    X, y = windows(ids, 4)
    model = InterpolatedTrigram(order, n_words=n_words + 1).fit(X, y)
    rng = np.random.default_rng(seed)
    contexts = np.concatenate([X, rng.permuted(X, axis=0), np.full((1, 4), n_words)])
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert_allclose(model.weights_.sum(axis=1), 1)
    words = rng.integers(n_words + 1, size=len(contexts))
    with np.errstate(divide="ignore"):
        expected = np.log(proba[np.arange(len(words)), words])
    assert_allclose(model.log_prob(contexts, words), expected, rtol=1e-9, atol=1e-12)


def test_trigram_holds_out_its_last_windows():
    X, y = windows(text(1000), 2)
    n_kept = len(y) - round(0.25 * len(y))
    given = InterpolatedTrigram(n_words=N_WORDS)
    given.fit(X[:n_kept], y[:n_kept], X_val=X[n_kept:], y_val=y[n_kept:])
    model = InterpolatedTrigram(n_words=N_WORDS, validation_fraction=0.25).fit(X, y)
    # The same EM for the bins both have; the counts are of all windows.
    common, mine, its = np.intersect1d(model.bins_, given.bins_, return_indices=True)
    assert len(common) > 2
    assert_allclose(model.weights_[mine[1:-1]], given.weights_[its[1:-1]])
    assert model.counts_.counts[: model.n_words_].sum() == len(y)


def test_trigram_reads_the_nearest_columns():
    X, y = windows(text(500), 4)
    wide = InterpolatedTrigram().fit(X, y)
    narrow = InterpolatedTrigram().fit(X[:, 2:], y)
    assert_array_equal(wide.predict_proba(X), narrow.predict_proba(X[:, 2:]))
    assert wide.order_ == 3
    with pytest.raises(ValueError, match="order=3 needs contexts of 2 words"):
        InterpolatedTrigram().fit(X[:, 3:], y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"validation_fraction": 0}, "validation_fraction .* got 0"),
        ({"validation_fraction": 1.0}, "validation_fraction .* got 1.0"),
        ({"validation_fraction": 0.999}, "n_samples=18 windows are too few"),
        ({"max_iter": -1}, "max_iter=-1"),
        ({"tol": float("nan")}, "tol=nan"),
    ],
)
def test_trigram_bad_parameters(parameters, message):
    X, y = windows(text(20), 2)
    with pytest.raises(ValueError, match=message):
        InterpolatedTrigram(**parameters).fit(X, y)


# -- EM --------------------------------------------------------------------------


def test_em_never_loses_likelihood_and_fills_empty_bins():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.5] * 3, size=600)
    bins = rng.choice([0, 2, 5], size=600)
    fit = fit_mixture_weights(probs, bins, 7, max_iter=200, tol=0)
    assert (np.diff(fit.log_likelihood) >= -1e-12).all()
    assert_allclose(fit.weights.sum(axis=1), 1)
    # Nearest bin with samples; of two as near, the one of rarer contexts.
    for empty, source in ((1, 2), (3, 2), (4, 5), (6, 5)):
        assert_array_equal(fit.weights[empty], fit.weights[source])


def test_em_stops_when_it_gains_less_than_tol():
    probs = np.random.default_rng(0).dirichlet([0.5] * 3, size=600)
    bins = np.zeros(600, dtype=np.intp)
    fit = fit_mixture_weights(probs, bins, 1, max_iter=1000, tol=1e-4)
    gains = np.diff(fit.log_likelihood)
    assert (gains[:-1] >= 1e-4).all()
    assert gains[-1] < 1e-4
    assert fit.n_iter == len(gains)
    assert fit_mixture_weights(probs, bins, 1, max_iter=3, tol=0).n_iter == 3


def test_em_leaves_out_samples_without_probability():
    probs = np.array([[0.2, 0.4], [0.0, 0.0], [0.5, 0.1]])
    bins = np.zeros(3, dtype=np.intp)
    fits = [
        fit_mixture_weights(probs[rows], bins[rows], 1, max_iter=50, tol=0).weights
        for rows in (slice(None), [0, 2])
    ]
    assert_array_equal(*fits)
    with pytest.raises(ValueError, match="none of the 2 held-out samples"):
        fit_mixture_weights(np.zeros((2, 2)), bins[:2], 1, max_iter=5, tol=0)


def test_bins_of_footnote_4():
    bins = FrequencyBins.of_training(9000, 800_000)
    assert (bins.first, bins.last, bins.n_bins) == (5, 14, 10)
    rows = bins.row(np.array([9000, 100, 1, 0]), 800_000)
    q = [ceil(-log((1 + f) / 800_000)) for f in (9000, 100, 1, 0)]
    assert_array_equal(rows + 5, q)


# -- kernels ---------------------------------------------------------------------


@pytest.fixture(params=[None, 1], ids=["stream", "boundary"])
def counted(request):
    X, y = windows(text(600), 3, boundary=request.param)
    tree = NgramCounts.from_windows(X, y, n_words=N_WORDS, boundary=request.param)
    contexts = np.random.default_rng(0).permuted(X, axis=0)[:50]
    return tree, np.concatenate([X[:50], contexts]), y[:100]


def estimated(module, tree, interpolate, min_counts):
    prob, bow = np.empty(len(tree.words)), np.empty(len(tree.context_word))
    module.kneser_ney(
        tree.level_start,
        tree.child_start,
        tree.start,
        tree.words,
        tree.continuation_counts(),
        np.array([[0.4, 0.9, 1.3]] * 4),
        np.array(min_counts),
        interpolate,
        np.empty(tree.n_words),
        prob,
        bow,
    )
    return prob, bow


@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("min_counts", [[1] * 4, [1, 1, 2, 3]])
def test_kneser_ney_kernel(counted, interpolate, min_counts):
    tree = counted[0]
    fast = estimated(_kneser_ney, tree, interpolate, min_counts)
    naive = estimated(reference, tree, interpolate, min_counts)
    assert_allclose(fast[0], naive[0], rtol=1e-12)
    # A weight that no word is left to use is not specified by the sums alone.
    used = np.diff(tree.start) < tree.n_words
    assert_allclose(fast[1][used], naive[1][used], rtol=1e-9)


def test_lookup_kernels(counted):
    tree, X, y = counted
    prob, bow = (
        a.astype(np.float32) for a in estimated(_kneser_ney, tree, True, [1] * 4)
    )
    arrays = (tree.child_start, tree.context_word, tree.start, tree.words, prob, bow)
    rows = [np.empty((len(X), N_WORDS)) for _ in range(2)]
    words = [np.empty(len(X)) for _ in range(2)]
    for module, row, word in zip((_backoff, reference), rows, words):
        module.backoff_distribution(*arrays, X, tree.path(), row)
        module.backoff_prob(*arrays, X, y, tree.path(), word)
    assert_allclose(*rows, rtol=1e-12)
    assert_allclose(*words, rtol=1e-12)
    assert_allclose(rows[0][np.arange(len(y)), y], words[0], rtol=1e-12)


def test_frequency_kernels(counted):
    tree, X, y = counted
    totals = tree.totals()
    arrays = (tree.child_start, tree.context_word, tree.start, tree.words)
    arrays += (tree.counts, totals)
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=len(X))
    results = []
    for module in (_interpolation, reference):
        members = np.empty((len(X), 5))
        frequency = np.empty(len(X), dtype=np.int64)
        mixed = np.empty((len(X), N_WORDS))
        module.relative_frequencies(*arrays, X, y, tree.path(), members)
        module.context_frequencies(*arrays[:2], totals, X, tree.path(), frequency)
        module.mixed_frequencies(*arrays, weights, X, tree.path(), mixed)
        results.append((members, frequency, mixed))
    for fast, naive in zip(*results):
        assert_allclose(fast, naive, rtol=1e-12)


# -- as scikit-learn users expect ------------------------------------------------


@small_text
@pytest.mark.parametrize("model", [KneserNeyLM(), InterpolatedTrigram()])
def test_pickle_and_determinism(model):
    X, y = windows(text(500), 2)
    model = clone(model).set_params(n_words=N_WORDS).fit(X, y)
    again = clone(model).fit(X.copy(), y)
    restored = pickle.loads(pickle.dumps(model))
    for other in (again, restored):
        assert_array_equal(model.predict_proba(X), other.predict_proba(X))
        assert_array_equal(model.log_prob(X, y), other.log_prob(X, y))
    assert model.perplexity(X, y) == pytest.approx(exp(-model.score(X, y)))


@small_text
def test_grid_search_over_order():
    X, y = windows(text(1500), 3)
    search = GridSearchCV(KneserNeyLM(n_words=N_WORDS), {"order": [1, 2, 4]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_.order_ in (1, 2, 4)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@small_text
@pytest.mark.parametrize("model", [KneserNeyLM(), InterpolatedTrigram()])
def test_bad_windows(model):
    X, y = windows(text(300), 2)
    model = clone(model)
    for bad, message in (
        (np.where(X == 3, -1, X), "X has -1 at row"),
        (X + 0.5, "not a whole number"),
        (np.where(X == 3, np.nan, X), "NaN"),
        (X[:0], "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(bad, y[: len(bad)])
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"n_words was inferred"):
        model.log_prob([[0, 1]], [N_WORDS + 5])
    with pytest.raises(ValueError, match="X_val and y_val go together"):
        model.fit(X, y, X_val=X)


# -- figures on the real corpora -------------------------------------------------


def corpus(name):
    if "NPLM_DATA" not in os.environ:
        pytest.skip("NPLM_DATA names no folder of corpora")
    from nplm import datasets

    return getattr(datasets, f"fetch_{name}")()


@pytest.fixture(scope="module")
def brown():
    return corpus("brown")


@pytest.fixture(scope="module")
def ptb():
    return corpus("ptb")


def stream_windows(data, n_context):
    """Return train, valid and test windows of one stream, contexts crossing over."""
    return (
        windows(data.train, n_context),
        windows(data.valid, n_context, history=data.train),
        windows(data.test, n_context, history=data.valid),
    )


def sentence_windows(data, n_context):
    return tuple(
        windows(part, n_context, boundary=data.boundary)
        for part in (data.train, data.valid, data.test)
    )


# SRILM 1.7.3 (KenLM agrees within 0.05), validation and test perplexity.
KNESER_NEY = [
    ("brown", 3, True, None, 332.35, 310.03),
    ("brown", 5, True, None, 329.46, 307.29),
    ("brown", 5, True, (1, 1, 2), 329.63, 307.64),
    ("brown", 3, False, (1, 1, 2), 346.02, 325.00),
    ("brown", 5, False, (1, 1, 2), 347.62, 326.02),
    ("brown", 5, False, None, 380.49, 359.05),
    ("ptb", 3, True, None, 157.8, 148.3),
    ("ptb", 5, True, None, 148.0, 141.19),
    ("ptb", 5, True, (1, 1, 2), 155.1, 147.9),
    ("ptb", 3, False, (1, 1, 2), 169.6, 161.1),
    ("ptb", 5, False, (1, 1, 2), 164.8, 158.6),
    ("ptb", 5, False, None, 177.0, 171.5),
]


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "order", "interpolate", "min_counts", "valid", "test"), KNESER_NEY
)
def test_kneser_ney_figures(request, name, order, interpolate, min_counts, valid, test):
    data = request.getfixturevalue(name)
    cut = stream_windows if data.boundary is None else sentence_windows
    fit_on, *scored = cut(data, order - 1)
    model = KneserNeyLM(
        n_words=data.n_words,
        interpolate=interpolate,
        min_counts=min_counts,
        boundary=data.boundary,
    ).fit(*fit_on)
    found = [model.perplexity(*part) for part in scored]
    assert found == pytest.approx([valid, test], rel=1e-3)
    proba = model.predict_proba(scored[0][0][:200])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "figures"),
    [("brown", [31.93, 355.80, 329.81]), ("ptb", [20.07, 177.28, 168.07])],
)
def test_trigram_figures(request, name, figures):
    """After 20 EM steps; PTB, too, read as one stream."""
    data = request.getfixturevalue(name)
    train, valid, test = stream_windows(data, 2)
    model = InterpolatedTrigram(n_words=data.n_words, max_iter=20, tol=0)
    model.fit(*train, X_val=valid[0], y_val=valid[1])
    found = [model.perplexity(*part) for part in (train, valid, test)]
    assert found == pytest.approx(figures, rel=1e-3)
    assert model.bins_.tolist() == list(range(5, 15))
    proba = model.predict_proba(valid[0][:200])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
