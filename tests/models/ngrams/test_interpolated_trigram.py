"""InterpolatedTrigram and its EM against section 4.1, evaluated on dictionaries."""

from collections import Counter
from math import ceil, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import InterpolatedTrigram, windows
from nplm.models.training.em import FrequencyBins, fit_mixture_weights
from tests.helpers import text

N_WORDS = 12


class DictionaryTrigram:
    """The model of section 4.1 in dictionaries, an EM step after `weights`."""

    def __init__(self, X, y, X_val, y_val, n_words, weights):
        self.n_words, self.T = n_words, len(y)
        self.seen, self.follows = Counter(), Counter()
        self.order = len(X[0]) + 1
        for x, w in zip(X, y):
            for k in range(self.order):
                context = tuple(x[self.order - 1 - k :])
                self.seen[context] += 1
                self.follows[context, w] += 1
        self.first = min(self.q(x) for x in X)
        held_out = [
            (self.q(x) - self.first, self.members(x, w)) for x, w in zip(X_val, y_val)
        ]
        equal = [1 / (self.order + 1)] * (self.order + 1)
        # One pseudo-sample per bin, divided like the samples of all bins together.
        (of_all,) = self.em([(0, p) for _, p in held_out], equal, [equal], 200)
        self.weights = self.em(held_out, of_all, weights, 1)

    @staticmethod
    def em(samples, extra, weights, n_steps):
        n_bins = len(weights)
        for _ in range(n_steps):
            expected = [list(extra) for _ in range(n_bins)]
            size = [0] * n_bins
            for bin_, p in samples:
                joint = [a * b for a, b in zip(weights[bin_], p)]
                size[bin_] += 1
                for i, value in enumerate(joint):
                    expected[bin_][i] += value / sum(joint)
            weights = [
                [e / (n + 1) for e in row] if n else None
                for row, n in zip(expected, size)
            ]
        return weights

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
def test_trigram_agrees_with_dictionary(order):
    X, y = windows(text(800), 3)
    X_val, y_val = windows(text(400, seed=1), 3)
    model = InterpolatedTrigram(order, n_words=N_WORDS + 2, tol=1e-12)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    nearest = slice(3 - (order - 1), None)
    expected = DictionaryTrigram(
        X[:, nearest].tolist(),
        y.tolist(),
        X_val[:, nearest].tolist(),
        y_val.tolist(),
        N_WORDS + 2,
        model.weights_.tolist(),
    )
    assert model.bins_[0] == expected.first
    assert len(model.bins_) == len(expected.weights)
    for row, weights in zip(model.weights_, expected.weights):
        if weights is not None:
            assert_allclose(row, weights, atol=1e-4)
    unseen = np.full((1, 3), N_WORDS + 1)
    half_seen = np.array([[N_WORDS, 1, 1], [N_WORDS, N_WORDS, 1]])
    known = [i for i, w in enumerate(expected.weights) if w is not None]
    contexts = np.concatenate([X_val[:30], half_seen, unseen])
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    for x, row in zip(contexts[:, nearest].tolist(), proba):
        if expected.q(x) - expected.first in known:
            assert_allclose(
                row, [expected.prob(x, w) for w in range(N_WORDS + 2)], atol=1e-5
            )
    for w in range(N_WORDS + 2):
        scores = model.log_prob(contexts, np.full(len(contexts), w))
        assert_allclose(np.exp(scores), proba[:, w], rtol=1e-12)


def test_trigram_holds_out_its_last_windows():
    X, y = windows(text(1000), 2)
    n_kept = len(y) - round(0.25 * len(y))
    given = InterpolatedTrigram(n_words=N_WORDS)
    given.fit(X[:n_kept], y[:n_kept], X_val=X[n_kept:], y_val=y[n_kept:])
    model = InterpolatedTrigram(n_words=N_WORDS, validation_fraction=0.25).fit(X, y)
    # Common bins have the weights of the same EM; the counts are of all windows.
    common, mine, its = np.intersect1d(model.bins_, given.bins_, return_indices=True)
    assert len(common) > 2
    assert_allclose(model.weights_[mine[1:-1]], given.weights_[its[1:-1]])
    assert model.members_.n_tokens == len(y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"validation_fraction": 0}, "'validation_fraction' .* Got 0"),
        ({"validation_fraction": 1.0}, "'validation_fraction' .* Got 1.0"),
        ({"validation_fraction": 0.999}, "n_samples=18 windows are too few"),
        ({"max_iter": -1}, "'max_iter' .* Got -1"),
        ({"tol": float("nan")}, "'tol' .* Got nan"),
    ],
)
def test_invalid_parameters_are_refused(parameters, message):
    X, y = windows(text(20), 2)
    with pytest.raises(ValueError, match=message):
        InterpolatedTrigram(**parameters).fit(X, y)


def test_em_never_lowers_the_likelihood_and_fills_empty_bins():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.5] * 3, size=600)
    bins = rng.choice([0, 2, 5], size=600)
    fit = fit_mixture_weights(probs, bins, 7, max_iter=200, tol=0)
    assert (np.diff(fit.log_likelihood) >= -1e-12).all()
    assert_allclose(fit.weights.sum(axis=1), 1)
    # The nearest bin with samples; of two equally near ones, that of rarer contexts.
    for empty, source in ((1, 2), (3, 2), (4, 5), (6, 5)):
        assert_array_equal(fit.weights[empty], fit.weights[source])


@pytest.mark.parametrize("prior", [0, 1])
def test_em_stops_within_tol_of_the_best_weights(prior):
    rng = np.random.default_rng(0)
    probs, bins = rng.dirichlet([0.5] * 3, size=300), rng.integers(2, size=300)
    fit = fit_mixture_weights(probs, bins, 2, tol=1e-4, prior=prior)
    best = fit_mixture_weights(probs, bins, 2, tol=1e-12, prior=prior)
    assert 0 <= best.log_likelihood[-1] - fit.log_likelihood[-1] <= fit.gap <= 1e-4
    assert fit.n_iter < best.n_iter < 50
    assert fit_mixture_weights(probs, max_iter=3, tol=0).n_iter == 3


def test_a_mixture_is_not_behind_its_best_member():
    # Steps of EM towards weight 0 of a member that is hardly worse are short.
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.1, 0.9, size=(5000, 1))
    probs = probs * np.exp(rng.normal([0, -5e-4], [0, 0.02], size=(5000, 2)))
    fit = fit_mixture_weights(probs)
    assert fit.log_likelihood[-1] >= np.log(probs[:, 0]).mean() - 1e-7
    assert fit.n_iter < 50


@pytest.mark.parametrize("prior", [0, 1])
def test_em_of_near_copies_in_many_bins_takes_few_iterations(prior):
    rng = np.random.default_rng(0)
    probs = np.exp(rng.normal(-5, 2, (20_000, 1)) + rng.normal(0, 0.01, (20_000, 5)))
    probs[:, 4] = 0  # a member that never helps
    fit = fit_mixture_weights(probs, rng.integers(15, size=20_000), 15, prior=prior)
    assert fit.n_iter < 20
    assert fit.gap <= 1e-7


def test_em_ignores_samples_of_probability_0():
    probs = np.array([[0.2, 0.4], [0.0, 0.0], [0.5, 0.1]])
    bins = np.zeros(3, dtype=np.intp)
    fits = [
        fit_mixture_weights(probs[rows], bins[rows], 1, max_iter=50, tol=0).weights
        for rows in (slice(None), [0, 2])
    ]
    assert_array_equal(*fits)
    with pytest.raises(ValueError, match="none of the 2 held-out samples"):
        fit_mixture_weights(np.zeros((2, 2)), bins[:2], 1, max_iter=5, tol=0)


def test_frequency_bins_agree_with_footnote_4():
    bins = FrequencyBins.of_training(9000, 800_000)
    assert (bins.first, bins.last, bins.n_bins) == (5, 14, 10)
    rows = bins.row(np.array([9000, 100, 1, 0]), 800_000)
    q = [ceil(-log((1 + f) / 800_000)) for f in (9000, 100, 1, 0)]
    assert_array_equal(rows + 5, q)


def test_bin_of_few_samples_keeps_weight_for_every_member():
    # Maximum likelihood reduces some weights to 0: then a word not seen in training
    # has probability 0, and a text with it infinite perplexity.
    for seed in range(8):
        ids = np.random.default_rng(seed).integers(0, 10, 300)
        X, y = windows(ids[:200], 3)
        model = InterpolatedTrigram(n_words=10).fit(X, y)
        assert model.weights_.min() > 1e-4
        # The uniform distribution has perplexity 10.
        assert model.perplexity(*windows(ids[200:], 3)) < 14
