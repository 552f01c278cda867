"""NeuralLM: parameters, stopping, continuing, and what can go wrong."""

import _thread
import os
import threading

import numpy as np
import pytest
from nplm._kernels.neural._loops import available_tiers
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from nplm import DivergenceError, NeuralLM, windows
from nplm._kernels.neural import _network
from nplm._kernels.reference import neural as reference
from nplm.neural import tiers
from nplm.neural.epochs import Epochs
from nplm.neural.network import Network
from nplm.training import pace

SMALL = dict(n_hidden=6, embedding_dim=4, random_state=0)
PARAMETERS = ["C_", "H_", "d_", "U_", "b_"]


def markov_stream(n, n_words=20, seed=0):
    """Each word is followed by one of three: a bigram is all there is to learn."""
    rng = np.random.default_rng(seed)
    followers = np.random.default_rng(99).integers(0, n_words, (n_words, 3))
    ids = [0]
    for choice in rng.choice(3, size=n - 1, p=[0.7, 0.2, 0.1]):
        ids.append(followers[ids[-1], choice])
    return np.array(ids, dtype=np.int32)


@pytest.fixture(scope="module")
def data():
    X, y = windows(markov_stream(3000), 2)
    X_val, y_val = windows(markov_stream(1000, seed=1), 2)
    return X, y, X_val, y_val


@pytest.mark.parametrize("direct", [False, True])
def test_parameters_have_the_papers_shapes_and_number(data, direct):
    X, y, *_ = data
    V, h, m, n = 30, 6, 4, 3
    lm = NeuralLM(n_words=V, direct=direct, max_iter=1, **SMALL).fit(X, y)
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
    lm = NeuralLM(n_words=20, direct=direct, max_iter=2, precision="float64", **SMALL)
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
def test_it_learns_what_there_is(data, batch_size, shape):
    X, y, X_val, y_val = data
    settings = {**SMALL, **shape}
    lm = NeuralLM(
        n_words=20, learning_rate_init=0.05, batch_size=batch_size, max_iter=15,
        **settings,
    ).fit(X, y)  # fmt: skip
    # The source's own entropy is 0.80 nats or less, the unigrams' 2.7.
    assert lm.score(X_val, y_val) > -1.05


def test_early_stopping_keeps_the_best_epoch(data):
    X, y, X_val, y_val = data
    lm = NeuralLM(
        n_words=20, direct=True, learning_rate_init=0.1, batch_size=8, alpha=0,
        max_iter=60, n_iter_no_change=3, **SMALL,
    ).fit(X[:300], y[:300], X_val=X_val, y_val=y_val)  # fmt: skip
    losses = lm.history_["val_loss"]
    assert lm.n_iter_ == len(losses) < 60
    assert np.argmin(losses) < len(losses) - 1
    assert -lm.score(X_val, y_val) == pytest.approx(min(losses), rel=1e-6)
    again = clone(lm).set_params(early_stopping=False, max_iter=lm.n_iter_)
    again.fit(X[:300], y[:300], X_val=X_val, y_val=y_val)
    assert -again.score(X_val, y_val) == pytest.approx(losses[-1], rel=1e-6)


def test_early_stopping_without_held_out_data_takes_the_last_windows(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, early_stopping=True, max_iter=3, **SMALL).fit(X, y)
    n = round(0.1 * len(y))
    given = NeuralLM(n_words=20, max_iter=3, **SMALL)
    given.fit(X[:-n], y[:-n], X_val=X[-n:], y_val=y[-n:])
    np.testing.assert_array_equal(lm.U_, given.U_)


def test_learning_rate_schedule_and_decay_count_examples(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=2, **SMALL).fit(X, y)
    assert lm.n_seen_ == 2 * len(y)
    # A step that falls after the first mini-batch leaves the weights near their 0.
    slow = clone(lm).set_params(learning_rate_decay=1e6).fit(X, y)
    assert np.abs(slow.U_).max() < np.abs(lm.U_).max() / 20


def test_weight_decay_spares_the_biases(data):
    X, y, *_ = data
    lm = NeuralLM(
        n_words=25, alpha=30, learning_rate_init=1e-3, max_iter=5, direct=True, **SMALL
    ).fit(X, y)
    for name in ("C_", "H_", "U_", "W_"):
        assert np.abs(getattr(lm, name)).max() < 1e-2
    # What is left is the unigram, in the biases.
    p = lm.predict_proba(X[:1])[0]
    counts = np.bincount(y, minlength=25)
    np.testing.assert_allclose(p[:20], counts[:20] / len(y), atol=0.02)


@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_same_seed_gives_the_same_bits(data, batch_size):
    X, y, X_val, y_val = data
    fits = [
        NeuralLM(n_words=20, batch_size=batch_size, max_iter=3, **SMALL).fit(
            X, y, X_val=X_val, y_val=y_val
        )
        for _ in range(2)
    ]
    for name in PARAMETERS:
        np.testing.assert_array_equal(*(getattr(lm, name) for lm in fits))
    assert fits[0].history_["loss"] == fits[1].history_["loss"]
    other = NeuralLM(n_words=20, max_iter=3, **{**SMALL, "random_state": 1}).fit(X, y)
    assert not np.array_equal(fits[0].C_, other.C_)


@pytest.mark.parametrize(
    ("precision", "tolerance"), [("float32", 1e-4), ("bfloat16", 2e-3)]
)
def test_tiers_agree_after_training(data, precision, tolerance, monkeypatch):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, max_iter=3, learning_rate_init=0.02, **SMALL)
    exact = clone(lm).set_params(precision="float64").fit(X, y).score(X_val, y_val)
    lm.set_params(precision=precision)
    for tier in available_tiers(precision):
        monkeypatch.setenv("NPLM_TIER", tier)
        assert lm.fit(X, y).score(X_val, y_val) == pytest.approx(exact, abs=tolerance)


def test_an_unknown_tier_names_those_there_are(data, monkeypatch):
    monkeypatch.setenv("NPLM_TIER", "sse9")
    with pytest.raises(ValueError, match=r"'sse9'.*choose among .*plain, blas"):
        NeuralLM(n_words=20, max_iter=1, **SMALL).fit(*data[:2])


def test_precision(data):
    X, y, *_ = data
    for precision in ("float32", "float64"):
        lm = NeuralLM(n_words=20, max_iter=1, precision=precision, **SMALL).fit(X, y)
        assert {getattr(lm, n).dtype.name for n in ("C_", "H_", "U_", "b_")} == {
            precision
        }
        assert lm.predict_proba(X[:2]).dtype == precision


def test_bfloat16_has_parameters_in_float32(data, monkeypatch):
    monkeypatch.setenv("NPLM_TIER", available_tiers("bfloat16")[0])
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, precision="bfloat16", **SMALL).fit(X, y)
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
def test_a_weight_that_does_not_fit_is_refused(data, name, shape):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, **SMALL).fit(X, y)
    score = lm.score(X, y)
    with pytest.raises(ValueError, match=rf"{name} has shape .* cannot be set"):
        setattr(lm, name, np.zeros(shape, np.float32))
    assert lm.score(X, y) == score


def test_weights_are_there_when_it_is_fitted():
    lm = NeuralLM()
    with pytest.raises(AttributeError, match="no U_ before it is fitted"):
        lm.U_  # noqa: B018
    with pytest.raises(NotFittedError):
        lm.U_ = np.zeros((3, 2))


def test_words_may_be_masked(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=600, max_iter=1, **SMALL).fit(X, y)
    lm.b_[100:] = -np.inf  # whole tiles of the vocabulary
    p = lm.predict_proba(X[:20])
    assert p[:, 100:].max() < 1e-30
    want = np.log(p[np.arange(20), y[:20]])
    np.testing.assert_allclose(lm.log_prob(X[:20], y[:20]), want, rtol=1e-4)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_scores_of_candidates_need_no_other_word(data, n_jobs):
    X, y, *_ = data
    lm = NeuralLM(n_words=600, max_iter=1, direct=True, n_jobs=n_jobs, **SMALL)
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


def test_bfloat16_is_refused_where_the_processor_has_none(data, monkeypatch):
    monkeypatch.setattr(tiers, "available_tiers", lambda precision: ["plain"])
    monkeypatch.delenv("NPLM_TIER", raising=False)
    lm = NeuralLM(n_words=20, max_iter=1, precision="bfloat16", **SMALL)
    with pytest.raises(
        ValueError, match=r"AMX or AVX512_BF16.*set precision='float32'"
    ):
        lm.fit(*data[:2])


def test_partial_fit_goes_on(data):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, learning_rate_init=0.05, **SMALL)
    lm.partial_fit(X[:1500], y[:1500])
    first = lm.score(X_val, y_val)
    for _ in range(10):
        lm.partial_fit(X[:1500], y[:1500])
    assert lm.score(X_val, y_val) > first + 0.2
    assert lm.n_seen_ == 11 * 1500
    assert len(lm.history_["loss"]) == 11
    with pytest.raises(ValueError, match="y has 20 at 0, but n_words=20"):
        lm.partial_fit(X[:1], [20])


def test_moments_begin_with_their_first_update(data):
    # Adam's first step is its rate for every number, however long another solver
    # went before: moments of no update are not to be taken for those of many.
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, batch_size=8, alpha=0, **SMALL).fit(X, y)
    lm.set_params(solver="adam", learning_rate_init=1e-3)
    before = lm.b_.copy()
    trainer = lm.trainer(X, y)
    trainer.train(range(8))
    np.testing.assert_allclose(np.abs(trainer.keep().b_ - before), 1e-3, rtol=0.02)


def test_distant_words_need_wide_windows(data):
    X, y, *_ = data
    lm = NeuralLM(order=2, n_words=20, n_distant=3, **SMALL)
    with pytest.raises(ValueError, match=r"n_distant=3 needs .*n_features=2"):
        lm.fit(X, y)
    assert vars(lm) == vars(clone(lm))


def test_a_fitted_network_scores_as_it_was_fitted(data):
    X, y, *_ = data
    lm = NeuralLM(order=2, n_words=20, n_distant=2, max_iter=1, **SMALL).fit(X, y)
    before = lm.score(X, y)
    for other in dict(n_distant=0), dict(n_distant=9), dict(order=3):
        assert lm.set_params(**other).score(X, y) == before


def test_partial_fit_in_one_call_is_one_epoch(data):
    X, y, *_ = data
    one = NeuralLM(n_words=20, max_iter=1, **SMALL)
    np.testing.assert_array_equal(
        clone(one).partial_fit(X, y).U_, clone(one).fit(X, y).U_
    )


def test_warm_start_goes_on_from_the_weights(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=2, warm_start=True, **SMALL).fit(X, y)
    before = lm.history_["loss"]
    lm.fit(X, y)
    assert lm.history_["loss"][:2] == before
    assert lm.history_["loss"][2] < before[-1]
    assert lm.n_seen_ == 4 * len(y)


def test_n_iter_counts_the_epochs_of_the_history(data):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, max_iter=2, warm_start=True, **SMALL)

    def check(n_epochs):
        assert lm.n_iter_ == n_epochs
        assert {len(values) for values in lm.history_.values()} == {n_epochs}

    for n_epochs in (1, 2):
        lm.partial_fit(X, y)
        check(n_epochs)
    lm.fit(X, y, X_val=X_val, y_val=y_val)
    check(4)
    assert np.isnan(lm.history_["val_loss"]).tolist() == [True, True, False, False]

    def interrupt(done, total, loss):
        if done > len(y):
            raise KeyboardInterrupt

    with (
        pytest.warns(RuntimeWarning, match="interrupted in epoch 2 of at most 2"),
        pytest.raises(KeyboardInterrupt),
    ):
        lm.fit(X, y, progress=interrupt)
    check(5)
    lm.set_params(warm_start=False, max_iter=1).fit(X, y)
    check(1)


def test_shuffle_off_takes_text_order(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, batch_size=10, max_iter=1, precision="float64", **SMALL)
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


def test_progress_is_told(data):
    X, y, *_ = data
    calls = []
    NeuralLM(n_words=20, max_iter=2, **SMALL).fit(
        X, y, progress=lambda *args: calls.append(args)
    )
    done, total, loss = zip(*calls)
    assert list(done) == sorted(done)
    assert done[-1] == total[0] == 2 * len(y)
    assert all(0 < x < 4 for x in loss)


def test_verbose_prints_a_line_an_epoch(data, capsys):
    X, y, X_val, y_val = data
    NeuralLM(n_words=20, max_iter=2, verbose=1, **SMALL).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "epoch 2" in lines[1]
    assert "held-out" in lines[1]


@pytest.mark.parametrize("batch_size", [1, 64])
@pytest.mark.parametrize("rate", [3.0, 1e4, 1e30])
def test_divergence_is_named_within_the_epoch(data, rate, batch_size):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, alpha=0, direct=True, batch_size=batch_size, **SMALL)
    lm.set_params(learning_rate_init=rate)
    with pytest.raises(DivergenceError, match=r"epoch 1 after .*lower learning_rate"):
        lm.fit(X, y)
    assert not hasattr(lm, "C_")


@pytest.mark.parametrize("warm_start", [False, True])
def test_divergence_leaves_an_earlier_fit_alone(data, warm_start):
    X, y, *_ = data
    lm = NeuralLM(max_iter=1, alpha=0, warm_start=warm_start, **SMALL).fit(X, y)
    before = lm.predict_proba(X[:3])
    with pytest.raises(DivergenceError):
        lm.set_params(learning_rate_init=1e6).fit(X % 7, y % 7)
    np.testing.assert_array_equal(lm.predict_proba(X[:3]), before)


def test_a_divergence_after_good_epochs_leaves_an_earlier_fit_alone(data, monkeypatch):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, max_iter=1, **SMALL).fit(X, y)
    before = vars(lm).copy()
    check = Epochs._check_divergence

    def diverged_later(self, loss, epoch, done):
        check(self, loss if epoch < 3 else np.nan, epoch, done)

    monkeypatch.setattr(Epochs, "_check_divergence", diverged_later)
    with pytest.raises(DivergenceError, match="epoch 3"):
        lm.set_params(max_iter=5).fit(X, y, X_val=X_val, y_val=y_val)
    assert vars(lm) == before | {"max_iter": 5}


def test_an_interrupt_before_training_leaves_an_earlier_fit_alone(
    data, tmp_path, monkeypatch
):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, **SMALL).fit(X, y, checkpoint=tmp_path)
    before = vars(lm).copy()

    def half(self, arrays, facts):
        self.network.parameters.C[...] = 0
        raise KeyboardInterrupt

    monkeypatch.setattr(Epochs, "resume", half)
    with pytest.raises(KeyboardInterrupt):
        lm.fit(X, y, checkpoint=tmp_path)
    assert vars(lm) == before


def test_a_divergence_in_the_last_update_is_named(data):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, max_iter=1, alpha=0, learning_rate_init=1e6, **SMALL)
    lm.set_params(batch_size=10**9)  # one update in all
    for held_out in ({}, dict(X_val=X_val, y_val=y_val)):
        with pytest.raises(DivergenceError, match="epoch 1"):
            lm.fit(X, y, **held_out)


@pytest.mark.parametrize(
    "change",
    [
        dict(order=2),
        dict(n_words=21),
        dict(n_hidden=7),
        dict(embedding_dim=3),
        dict(direct=True),
        dict(order=3, n_distant=2),
    ],
)
def test_going_on_with_another_shape_is_refused(data, change):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, warm_start=True, **SMALL).fit(X, y)
    lm.set_params(**change)
    for go_on in (lm.fit, lm.partial_fit):
        with pytest.raises(ValueError, match="is not that of the network fitted"):
            go_on(X, y)


@pytest.mark.parametrize("parallel", ["rows", "async", "locked"])
@pytest.mark.parametrize("held_out", [False, True])
def test_an_interrupt_keeps_what_was_trained(data, held_out, parallel):
    X, y, X_val, y_val = data
    lm = NeuralLM(n_words=20, max_iter=10**6, n_iter_no_change=10**6, **SMALL)
    lm.set_params(parallel=parallel, n_jobs=2)
    val = dict(X_val=X_val, y_val=y_val) if held_out else {}
    timer = threading.Timer(0.3, _thread.interrupt_main)

    def after_some_epochs(done, total, loss):
        if done > 5 * len(y) and timer.ident is None:
            timer.start()

    try:
        with (
            pytest.raises(KeyboardInterrupt),
            pytest.warns(RuntimeWarning, match="interrupted in epoch .* keeps"),
        ):
            lm.fit(X, y, **val, progress=after_some_epochs)
    finally:
        timer.cancel()
    assert lm.score(X_val, y_val) > -2.6
    if held_out:
        best = min(lm.history_["val_loss"])
        assert -lm.score(X_val, y_val) == pytest.approx(best, rel=1e-6)


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
        (dict(epsilon=1e-46), "epsilon=1e-46 is 0 in float32"),
        (dict(early_stopping="never"), "early_stopping"),
        (dict(n_words=0), "'n_words' .* Got 0"),
    ],
)
def test_parameters_out_of_range(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM(**{**SMALL, **wrong}).fit(*data[:2])


def test_one_window_cannot_hold_itself_out():
    with pytest.raises(ValueError, match="leaves none to train on"):
        NeuralLM(early_stopping=True, **SMALL).fit([[0, 1]], [1])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_over_windows(n_jobs):
    X4, y4 = windows(markov_stream(1500), 4)
    search = GridSearchCV(
        NeuralLM(n_words=20, max_iter=5, learning_rate_init=0.05, **SMALL),
        {"order": [1, 3, 5], "n_hidden": [2, 8]}, cv=3, n_jobs=n_jobs,
        error_score="raise",
    )  # fmt: skip
    search.fit(X4, y4)
    assert search.best_params_["order"] > 1  # order 1 is the unigram
    assert search.best_params_["n_hidden"] == 8
    assert search.score(X4, y4) == search.best_estimator_.score(X4, y4)


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_lost_updates_cost_little(data, parallel, batch_size):
    # The paper: "this noise seems to be very small and did not apparently slow
    # down training". So small a network makes races likelier than in use.
    X, y = windows(markov_stream(20_000), 2)
    *_, X_val, y_val = data
    serial = NeuralLM(
        n_words=20, batch_size=batch_size, learning_rate_init=3e-3, max_iter=5, **SMALL
    ).fit(X, y, X_val=X_val, y_val=y_val)  # fmt: skip
    threads = clone(serial).set_params(parallel=parallel, n_jobs=2)
    threads.fit(X, y, X_val=X_val, y_val=y_val)
    for epoch in (0, 4):
        want = serial.history_["loss"][epoch]
        assert threads.history_["loss"][epoch] == pytest.approx(want, rel=5e-3)
    assert threads.n_seen_ == serial.n_seen_


@pytest.mark.parametrize("parallel", ["async", "locked"])
def test_asynchronous_threads_diverge_with_a_message(data, parallel):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, alpha=0, parallel=parallel, n_jobs=3, **SMALL)
    with pytest.raises(DivergenceError, match="lower learning_rate_init"):
        lm.set_params(learning_rate_init=1e6).fit(X, y)


@pytest.mark.parametrize("parallel", ["rows", "async", "locked"])
def test_a_thread_that_raises_ends_the_fit(data, parallel, monkeypatch):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, parallel=parallel, n_jobs=2, max_iter=2, **SMALL)
    lm.fit(X, y)
    before = lm.predict_proba(X[:3])
    train, callers = _network.train, set()

    def fail_in_the_other_thread(*args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            callers.add(threading.get_ident())
            raise MemoryError("no room")
        train(*args, **kwargs)

    monkeypatch.setattr(_network, "train", fail_in_the_other_thread)
    with pytest.raises(MemoryError, match="no room"):
        lm.fit(X, y)
    assert callers
    np.testing.assert_array_equal(lm.predict_proba(X[:3]), before)


def test_grid_search_over_ways_to_share(data):
    X, y, *_ = data
    search = GridSearchCV(
        NeuralLM(n_words=20, max_iter=2, n_jobs=2, **SMALL),
        {"parallel": ["rows", "async", "locked"]}, cv=2, n_jobs=2, error_score="raise",
    ).fit(X, y)  # fmt: skip
    # A worker's share of two cores is one thread: all three are serial training.
    scores = search.cv_results_["mean_test_score"]
    if len(os.sched_getaffinity(0)) == 2:
        assert scores[0] == scores[1] == scores[2]
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("parallel", ["rows", "async"])
def test_a_call_has_a_mini_batch_of_every_thread(data, parallel, monkeypatch):
    # However long one takes: with fewer, threads would have nothing to do.
    X, y, *_ = data
    sizes = []
    train = Network.train
    monkeypatch.setattr(pace, "SECONDS_A_CALL", 0.0)
    monkeypatch.setattr(
        Network,
        "train",
        lambda *args, **kwargs: (sizes.append(len(args[3])), train(*args, **kwargs)),
    )
    lm = NeuralLM(n_jobs=2, parallel=parallel, batch_size=100, max_iter=1, **SMALL)
    lm.fit(X, y)
    assert set(sizes[:-1]) == {200 if parallel == "async" else 100}
