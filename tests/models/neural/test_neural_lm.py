"""NeuralLM: its parameters and weights, what it learns, and what it refuses."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from nplm import NCE, Classes, Importance, NeuralLM, Softmax, Tree, windows
from nplm._kernels.neural._loops import available_tiers
from nplm.models.neural import tiers
from tests.helpers import markov_stream, paper_lm
from tests.reference import neural as reference

SMALL = dict(n_hidden=6, embedding_dim=4, random_state=0)


@pytest.fixture(scope="module")
def data():
    return *windows(markov_stream(3000), 2), *windows(markov_stream(1000, seed=1), 2)


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


def test_changed_number_of_words_is_refused(data):
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=1, **SMALL).fit(X, y)
    lm.n_words_ = 30
    for use in (lm.log_prob, lm.partial_fit):
        with pytest.raises(ValueError, match="n_words_ adds no words"):
            use(X, y)


def test_words_may_be_masked(data):
    X, y, *_ = data
    lm = paper_lm(n_words=600, max_iter=1, **SMALL).fit(X, y)
    lm.b_[100:] = -np.inf  # whole tiles of the vocabulary
    p = lm.predict_proba(X[:20])
    assert p[:, 100:].max() < 1e-30
    want = np.log(p[np.arange(20), y[:20]])
    np.testing.assert_allclose(lm.log_prob(X[:20], y[:20]), want, rtol=1e-4)


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
    lm.set_params(solver__learning_rate_decay=0.01)
    start = clone(lm).set_params(learning_rate_init=1e-300).fit(X[:100], y[:100])
    C, H, d = start.C_.copy(), start.H_.copy(), start.d_.copy()
    E = np.hstack([start.U_, start.b_[:, None]])
    weights = reference.Weights(C, H, d, E, n_window=start.order_ - 1)
    solver = reference.SGD(4e-3, 0.01, 1e-4)
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
