"""NeuralLM: its parameters and weights, what it learns, and what it refuses."""

from itertools import product

import numpy as np
import pytest
from nplm._kernels.neural._loops import available_tiers
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from nplm import NCE, Classes, Importance, NeuralLM, Softmax, Tree, windows
from nplm.models.neural import tiers
from tests.helpers import markov_stream, paper_lm
from tests.reference import neural as reference

SMALL = dict(n_hidden=6, embedding_dim=4, random_state=0)
PARAMETERS = ["C_", "H_", "d_", "U_", "b_"]


@pytest.fixture(scope="module")
def data():
    return *windows(markov_stream(3000), 2), *windows(markov_stream(1000, seed=1), 2)


@pytest.mark.parametrize("direct", [False, True])
def test_parameters_have_the_papers_shapes_and_number(data, direct):
    X, y, *_ = data
    V, h, m, n = 30, 6, 4, 3
    lm = paper_lm(n_words=V, direct=direct, max_iter=1, **SMALL).fit(X, y)
    assert lm.C_.shape == (V, m)
    assert lm.H_.shape == (h, (n - 1) * m)
    assert lm.d_.shape == (h,)
    assert lm.U_.shape == (V, h)
    assert lm.b_.shape == (V,)
    if direct:
        assert lm.W_.shape == (V, (n - 1) * m)
        assert lm.n_parameters_ == V * (1 + n * m + h) + h * (1 + (n - 1) * m)
    else:
        assert lm.W_ is None
        assert lm.n_parameters_ == V * (1 + m + h) + h * (1 + (n - 1) * m)


@pytest.mark.parametrize("direct", [False, True])
def test_probabilities_are_equation_1_of_the_attributes(data, direct):
    X, y, *_ = data
    lm = paper_lm(n_words=20, direct=direct, max_iter=2, precision="float64", **SMALL)
    lm.fit(X, y)
    for context in X[:5]:
        x = np.concatenate([lm.C_[w] for w in context[::-1]])
        logits = lm.b_ + lm.U_ @ np.tanh(lm.d_ + lm.H_ @ x)
        if direct:
            logits += lm.W_ @ x
        p = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(lm.predict_proba([context])[0], p, rtol=1e-12)


@pytest.mark.parametrize("batch_size", [1, 32])
@pytest.mark.parametrize(
    "shape",
    [dict(direct=False), dict(direct=True), dict(direct=True, n_hidden=0)],
)
def test_loss_approaches_the_entropy(data, batch_size, shape):
    X, y, X_val, y_val = data
    settings = {**SMALL, **shape}
    lm = paper_lm(
        n_words=20, learning_rate_init=0.05, batch_size=batch_size, max_iter=15,
        **settings,
    ).fit(X, y)  # fmt: skip
    # The source's own entropy is 0.80 nats or less, the unigrams' 2.7.
    assert lm.score(X_val, y_val) > -1.05


def test_learning_rate_schedule_and_decay_count_examples(data):
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=2, **SMALL).fit(X, y)
    assert lm.n_seen_ == 2 * len(y)
    # A step that falls after the first mini-batch leaves the weights near their 0.
    slow = clone(lm).set_params(solver__learning_rate_decay=1e6).fit(X, y)
    assert np.abs(slow.U_).max() < np.abs(lm.U_).max() / 20


def test_weight_decay_spares_the_biases(data):
    X, y, *_ = data
    lm = paper_lm(
        n_words=25, alpha=30, learning_rate_init=1e-3, max_iter=5, direct=True, **SMALL
    ).fit(X, y)
    for name in ("C_", "H_", "U_", "W_"):
        assert np.abs(getattr(lm, name)).max() < 1e-2
    # What is left is the unigram, in the biases.
    p = lm.predict_proba(X[:1])[0]
    counts = np.bincount(y, minlength=25)
    np.testing.assert_allclose(p[:20], counts[:20] / len(y), atol=0.02)


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 1e-4), ("bfloat16", 2e-3)]
)
def test_tiers_agree_after_training(data, precision, tolerance, monkeypatch):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=3, learning_rate_init=0.02, **SMALL)
    exact = clone(lm).set_params(precision="float64").fit(X, y).score(X_val, y_val)
    lm.set_params(precision=precision)
    for tier in available_tiers(precision):
        monkeypatch.setenv("NPLM_TIER", tier)
        assert lm.fit(X, y).score(X_val, y_val) == pytest.approx(exact, abs=tolerance)


def test_unknown_tier_error_lists_the_tiers(data, monkeypatch):
    monkeypatch.setenv("NPLM_TIER", "sse9")
    with pytest.raises(ValueError, match=r"'sse9'.*choose among .*plain, blas"):
        paper_lm(n_words=20, max_iter=1, **SMALL).fit(*data[:2])


def test_precision(data):
    X, y, *_ = data
    for precision in ("float32", "float64"):
        lm = paper_lm(n_words=20, max_iter=1, precision=precision, **SMALL).fit(X, y)
        assert {getattr(lm, n).dtype.name for n in ("C_", "H_", "U_", "b_")} == {
            precision
        }
        assert lm.predict_proba(X[:2]).dtype == precision


def test_bfloat16_has_parameters_in_float32(data, monkeypatch):
    monkeypatch.setenv("NPLM_TIER", available_tiers("bfloat16")[0])
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=1, precision="bfloat16", **SMALL).fit(X, y)
    assert lm.U_.dtype == lm.predict_proba(X[:2]).dtype == np.float32
    p = lm.predict_proba(X[:50])
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    rows = np.arange(50)
    np.testing.assert_allclose(lm.log_prob(X[:50], y[:50]), np.log(p[rows, y[:50]]),
                               rtol=1e-4, atol=1e-4)  # fmt: skip
    words = [3, 0, 19]
    of_all = lm.predict_log_proba(X[:50])[:, words]
    np.testing.assert_array_equal(lm.candidate_log_prob(X[:50], words), of_all)
    # The same parameters serve float32, and training goes on in either.
    coarse = lm.score(X, y)
    monkeypatch.delenv("NPLM_TIER")
    assert lm.set_params(precision="float32").score(X, y) == pytest.approx(
        coarse, abs=5e-3
    )
    lm.partial_fit(X, y)
    with pytest.raises(ValueError, match="precision='float64' is not that"):
        lm.set_params(precision="float64").partial_fit(X, y)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("C_", (5, 4)), ("C_", (20, 50)), ("H_", (90, 8)), ("H_", (6, 9)), ("d_", (7,)),
     ("U_", (19, 6)), ("b_", (21,)), ("W_", (20, 8)), ("P_", (1, 2))],
)  # fmt: skip
def test_weight_of_wrong_shape_is_refused(data, name, shape):
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=1, **SMALL).fit(X, y)
    score = lm.score(X, y)
    with pytest.raises(ValueError, match=rf"{name} has shape .* cannot be set"):
        setattr(lm, name, np.zeros(shape, np.float32))
    assert lm.score(X, y) == score


def test_weights_exist_after_the_fit():
    lm = paper_lm()
    with pytest.raises(AttributeError, match="no U_ before it is fitted"):
        lm.U_  # noqa: B018
    with pytest.raises(NotFittedError):
        lm.U_ = np.zeros((3, 2))


def test_words_may_be_masked(data):
    X, y, *_ = data
    lm = paper_lm(n_words=600, max_iter=1, **SMALL).fit(X, y)
    lm.b_[100:] = -np.inf  # whole tiles of the vocabulary
    p = lm.predict_proba(X[:20])
    assert p[:, 100:].max() < 1e-30
    want = np.log(p[np.arange(20), y[:20]])
    np.testing.assert_allclose(lm.log_prob(X[:20], y[:20]), want, rtol=1e-4)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_candidate_scores_do_not_depend_on_other_words(data, n_jobs):
    X, y, *_ = data
    lm = paper_lm(n_words=600, max_iter=1, direct=True, n_jobs=n_jobs, **SMALL)
    lm.fit(X, y)
    words = np.array([[599, 3, 3], [0, 17, 599]] * 40)
    rows, few = np.arange(80)[:, None], [599, 3, 0, 17]
    x = lm.C_[X[:80, ::-1]].reshape(80, -1)
    a = np.tanh(lm.d_ + x @ lm.H_.T)
    logits = lm.b_ + x @ lm.W_.T + a @ lm.U_.T
    others = np.setdiff1d(np.arange(600), few)
    lm.U_[others] = lm.W_[others] = lm.b_[others] = np.nan
    scored = lm.candidate_log_prob(X[:80], words, normalize=False)
    np.testing.assert_allclose(scored, logits[rows, words], rtol=1e-5, atol=1e-5)
    assert np.isnan(lm.candidate_log_prob(X[:80], words)).all()


def test_bfloat16_is_refused_without_processor_support(data, monkeypatch):
    monkeypatch.setattr(tiers, "available_tiers", lambda precision: ["plain"])
    monkeypatch.delenv("NPLM_TIER", raising=False)
    lm = paper_lm(n_words=20, max_iter=1, precision="bfloat16", **SMALL)
    with pytest.raises(
        ValueError, match=r"AMX or AVX512_BF16.*set precision='float32'"
    ):
        lm.fit(*data[:2])


def test_distant_words_need_wide_windows(data):
    X, y, *_ = data
    lm = paper_lm(order=2, n_words=20, n_distant=3, **SMALL)
    before = vars(lm).copy()
    with pytest.raises(ValueError, match=r"n_distant=3 needs .* has 2"):
        lm.fit(X, y)
    assert vars(lm) == before


def test_set_params_does_not_change_fitted_scores(data):
    X, y, *_ = data
    lm = paper_lm(order=2, n_words=20, n_distant=2, max_iter=1, **SMALL).fit(X, y)
    before = lm.score(X, y)
    for other in dict(n_distant=0), dict(n_distant=9), dict(order=3):
        assert lm.set_params(**other).score(X, y) == before


def test_shuffle_off_takes_text_order(data):
    X, y, *_ = data
    lm = paper_lm(n_words=20, batch_size=10, max_iter=1, precision="float64", **SMALL)
    start = clone(lm).set_params(learning_rate_init=1e-300).fit(X[:100], y[:100])
    C, H, d = start.C_.copy(), start.H_.copy(), start.d_.copy()
    E = np.hstack([start.U_, start.b_[:, None]])
    weights = reference.Weights(C, H, d, E, n_window=start.order_ - 1)
    solver = reference.SGD(4e-3, 1e-8, 1e-4)
    reference.train(weights, X, y, np.arange(100), 10, solver)
    in_order = clone(lm).set_params(shuffle=False).fit(X[:100], y[:100])
    np.testing.assert_allclose(in_order.C_, C, rtol=1e-10)
    shuffled = clone(lm).fit(X[:100], y[:100])
    assert not np.allclose(shuffled.C_, C, rtol=1e-10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(n_hidden=0), "n_hidden=0 without direct connections"),
        (dict(alpha=40, learning_rate_init=1e-3), "must be below 1"),
        (dict(n_hidden=-1), "n_hidden"),
        (dict(embedding_dim=0), "embedding_dim"),
        (dict(batch_size=0), "batch_size"),
        (dict(max_iter=0), "max_iter"),
        (dict(learning_rate_init=0), "learning_rate_init"),
        (dict(precision="float16"), "precision"),
        (dict(solver="adam", epsilon=1e-46), "epsilon=1e-46 is 0 in float32"),
        (dict(early_stopping="never"), "early_stopping"),
        (dict(n_words=0), "'n_words' .* Got 0"),
    ],
)
def test_parameters_out_of_range(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        paper_lm(**{**SMALL, **wrong}).fit(*data[:2])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_over_windows(n_jobs):
    X4, y4 = windows(markov_stream(1500), 4)
    search = GridSearchCV(
        paper_lm(n_words=20, max_iter=5, learning_rate_init=0.05, **SMALL),
        {"order": [1, 3, 5], "n_hidden": [2, 8]}, cv=3, n_jobs=n_jobs,
        error_score="raise",
    )  # fmt: skip
    search.fit(X4, y4)
    assert search.best_params_["order"] > 1  # order 1 is the unigram
    assert search.best_params_["n_hidden"] == 8
    assert search.score(X4, y4) == search.best_estimator_.score(X4, y4)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_hidden", [5, (5, 7)])
def test_hidden_activations_are_those_of_equation_1(n_hidden, tied):
    X, y = windows(np.random.default_rng(0).integers(0, 9, 200), 3)
    lm = paper_lm(n_words=9, n_hidden=n_hidden, embedding_dim=4, max_iter=1, tied=tied)
    lm.set_params(precision="float64", random_state=0).fit(X, y)
    x = lm.C_[X[:, ::-1]].reshape(len(X), -1)
    a = np.tanh(lm.d_ + x @ lm.H_.T)
    for block in lm.blocks_:
        centred = a - a.mean(axis=1, keepdims=True)
        norm = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        a = a + np.maximum(block.d + norm @ block.H.T, 0) @ block.U.T
    want = a @ lm.R_.T if tied else a
    np.testing.assert_allclose(lm.hidden(X), want, atol=1e-12)


SOFTMAXES = [Softmax(), Softmax(direct=True), Softmax(tied=True)]
OTHERS = [Classes(), Tree(), Tree(n_branches=2), Tree("huffman")]
SAMPLED = [Importance(n_noise=8), NCE(n_noise=8)]


@pytest.mark.parametrize(
    ("output", "loss"),
    [*product(SOFTMAXES + OTHERS, ["exact"]), *product(SOFTMAXES, SAMPLED)],
    ids=repr,
)
def test_without_contexts_it_learns_the_shares_of_the_words(data, output, loss):
    X, y, *_ = data
    lm = NeuralLM(
        order=1,
        output=output,
        loss=loss,
        n_words=30,
        max_iter=2,
        batch_size=16,
        **SMALL,
    ).fit(X, y)
    shares = (np.bincount(y, minlength=30) + 1) / (len(y) + 30)
    np.testing.assert_allclose(lm.predict_proba(X[:1])[0], shares, atol=0.02)
    np.testing.assert_array_equal(lm.predict_proba(X[:1]), lm.predict_proba(X[-1:]))
    target = np.log(lm.predict_proba(X[:1])[0])[y]
    np.testing.assert_allclose(lm.log_prob(X, y), target, rtol=1e-5)
