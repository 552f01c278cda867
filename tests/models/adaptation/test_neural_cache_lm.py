"""NeuralCacheLM: the words that followed similar hidden states."""

import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from nplm import KneserNeyLM, NeuralCacheLM, TextLM, windows
from nplm.models.adaptation import neural_cache_lm
from nplm.models.neural.network.network import Network
from tests.helpers import energy_lm, paper_lm, text

N_WORDS = 12
IDS = text(400, n_words=N_WORDS)
SMALL = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
NETWORK = paper_lm(3, n_words=N_WORDS, **SMALL).fit(*windows(IDS, 2))


def fitted(**params):
    frozen = FrozenEstimator(NETWORK)
    return NeuralCacheLM(frozen, n_words=N_WORDS, **params).fit(*windows(IDS, 10))


@cache
def hidden(*words):
    return NETWORK.hidden([words])[0].astype(float)


def naive(lm, context):
    """The docstring's formula, word by word."""
    context = np.asarray(context)[-(lm.order_ - 1) :]
    padding = 0
    while padding < len(context) and context[padding] == lm.boundary:
        padding += 1
    p = np.zeros(lm.n_words_)
    for i in range(max(2, padding), len(context)):
        alike = hidden(*context[-2:]) @ hidden(*context[i - 2 : i])
        p[context[i]] += np.exp(lm.theta * alike)
    if not p.any():
        return lm.estimator_.predict_proba([context[-2:]])[0]
    return p / p.sum()


@settings(max_examples=15)
@given(
    data=st.data(), theta=st.floats(0, 20),
    length=st.none() | st.integers(1, 8), boundary=st.none() | st.integers(0, 3),
)  # fmt: skip
def test_the_formula(data, theta, length, boundary):
    lm = fitted(theta=theta, length=length, boundary=boundary)
    assert lm.order_ == (8 if length is None else length) + 3
    word = st.integers(0, 3) | st.just(boundary or 0)
    stream = data.draw(st.lists(word, min_size=11, max_size=30))
    X, y = windows(stream, 10)
    if boundary is not None and data.draw(st.booleans()):
        X, y = windows(stream, 10, boundary=boundary)
    rows = np.array(data.draw(st.permutations(range(len(y)))))
    if data.draw(st.booleans()):
        rows.sort()
    proba = lm.predict_proba(X[rows])
    assert_allclose(proba, [naive(lm, x) for x in X[rows]], rtol=1e-4, atol=1e-6)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    with np.errstate(divide="ignore"):
        want = np.log(proba[np.arange(len(y)), y[rows]])
    assert_allclose(lm.log_prob(X[rows], y[rows]), want, rtol=1e-5, atol=1e-6)


def test_runs_and_blocks_of_any_length(monkeypatch):
    lm, (X, y) = fitted(theta=3), windows(IDS, 10)
    want = lm.log_prob(X, y)
    monkeypatch.setattr(neural_cache_lm, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(neural_cache_lm, "RUN_ROWS", 50)
    assert_allclose(lm.log_prob(X, y), want, rtol=1e-5)


@pytest.mark.parametrize("boundary", [None, 1])
def test_a_window_has_the_same_bits_alone_and_among_others(boundary):
    ids = text(800, n_words=N_WORDS)
    X, y = windows(ids, 300, boundary=boundary)
    frozen = FrozenEstimator(NETWORK)
    lm = NeuralCacheLM(frozen, boundary=boundary, n_words=N_WORDS, theta=2).fit(X, y)
    log_prob, proba = lm.log_prob(X, y), lm.predict_proba(X)
    some = np.random.default_rng(0).choice(len(y), 60, replace=False)
    assert_array_equal(lm.log_prob(X[some], y[some]), log_prob[some])
    assert_array_equal(lm.predict_proba(X[some]), proba[some])
    for i in some[:20]:
        assert_array_equal(lm.log_prob(X[i : i + 1], y[i : i + 1]), log_prob[i : i + 1])
        assert_array_equal(lm.predict_proba(X[i : i + 1]), proba[i : i + 1])


def test_a_run_computes_an_activation_for_each_word(monkeypatch):
    lm, (X, y) = fitted(), windows(IDS, 10)
    computed = []

    def counted(network, contexts, hidden=Network.hidden):
        computed.append(len(contexts))
        return hidden(network, contexts)

    monkeypatch.setattr(Network, "hidden", counted)
    lm.log_prob(X, y)
    assert computed == [len(y) + 8]


def test_an_empty_cache_is_the_network():
    lm = fitted(boundary=0)
    assert_allclose(lm.predict_proba([[0] * 10]), NETWORK.predict_proba([[0, 0]]))
    log_prob = lm.log_prob([[0] * 10] * 2, [1, 2])
    assert_allclose(log_prob, NETWORK.log_prob([[0, 0]] * 2, [1, 2]))


def test_it_fits_a_network_of_its_own():
    X, y = windows(IDS, 10)
    network = paper_lm(3, **SMALL)
    lm = NeuralCacheLM(network, n_words=N_WORDS).fit(X, y, X_val=X[:99], y_val=y[:99])
    assert lm.estimator_ is not network
    assert lm.estimator_.n_words_ == N_WORDS
    assert lm.n_parameters_ == lm.estimator_.n_parameters_
    again = pickle.loads(pickle.dumps(lm))
    assert_array_equal(again.predict_proba(X), lm.predict_proba(X))


def test_documents_are_scored_alone():
    lm = TextLM(NeuralCacheLM(paper_lm(2, **SMALL), theta=1), n_context=6, boundary=0)
    lm.fit([IDS[:100] + 1, IDS[100:200] + 1])
    together = lm.score_samples([[3, 4, 3, 4], [5, 5]])
    apart = [lm.score_samples([one])[0] for one in ([3, 4, 3, 4], [5, 5])]
    assert_allclose(together, apart, rtol=1e-5)


@pytest.mark.parametrize(
    ("network", "params", "error", "message"),
    [
        (paper_lm(**SMALL), {}, ValueError, "order=None of the network uses all col"),
        (paper_lm(6, **SMALL), {}, ValueError,
         "a cache of 1 word beside the 5 of the network needs windows of 6 columns"),
        (paper_lm(2, **SMALL), {"length": 5}, ValueError, r"or set length"),
        (paper_lm(2, **SMALL | {"n_hidden": 0}, direct=True), {}, ValueError,
         "no hidden units"),
        (paper_lm(2, n_words=14, **SMALL), {"n_words": 13}, ValueError,
         "the network has n_words=14, but NeuralCacheLM and its windows 13"),
        (paper_lm(2, **SMALL), {"theta": -1.0}, ValueError, "'theta' parameter of"),
        (paper_lm(2, **SMALL), {"boundary": 50}, ValueError, "boundary must be"),
        (FrozenEstimator(KneserNeyLM()), {}, TypeError, "is a KneserNeyLM, but a"),
        (FrozenEstimator(paper_lm(2)), {}, NotFittedError, "NeuralLM"),
        (energy_lm(2), {}, ValueError, "'estimator' parameter of NeuralCacheLM"),
    ],
)  # fmt: skip
def test_what_is_refused(network, params, error, message):
    with pytest.raises(error, match=message):
        NeuralCacheLM(network, **params).fit(*windows(IDS, 5))
