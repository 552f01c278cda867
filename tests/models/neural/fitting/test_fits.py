"""Fits of a network: when they stop, how they go on, and what ends them."""

import _thread
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nplm import DivergenceError, NeuralLM, windows
from nplm.models.neural.fitting.epochs import Epochs
from tests.helpers import changed, markov_stream, paper_lm
from tests.helpers.checkpoint import fit_and_interrupt

SMALL = dict(n_hidden=6, embedding_dim=4, random_state=0)


@pytest.fixture(scope="module")
def data():
    return *windows(markov_stream(3000), 2), *windows(markov_stream(1000, seed=1), 2)


@pytest.mark.filterwarnings("ignore:NeuralLM. the held-out loss was still falling")
def test_early_stopping_without_held_out_data_takes_the_last_windows(data):
    X, y, *_ = data
    lm = paper_lm(n_words=20, early_stopping=True, max_iter=3, **SMALL).fit(X, y)
    n = round(0.1 * len(y))
    given = paper_lm(n_words=20, early_stopping="auto", max_iter=3, **SMALL)
    given.fit(X[:-n], y[:-n], X_val=X[-n:], y_val=y[-n:])
    np.testing.assert_array_equal(lm.U_, given.U_)


@pytest.mark.filterwarnings("ignore:NeuralLM. the held-out loss was still falling")
def test_auto_early_stopping_holds_out_of_enough_windows(data, monkeypatch):
    X, y, *_ = data
    monkeypatch.setattr(
        "nplm.models.neural.fitting.training_windows.MIN_WINDOWS_TO_SPLIT", len(y)
    )
    lm = paper_lm(n_words=20, early_stopping="auto", max_iter=2, **SMALL)
    held_out = clone(lm).set_params(early_stopping=True).fit(X, y)
    np.testing.assert_array_equal(lm.fit(X, y).U_, held_out.U_)
    assert lm.n_seen_ == 2 * (len(y) - round(0.1 * len(y)))
    assert clone(lm).fit(X[1:], y[1:]).n_seen_ == 2 * (len(y) - 1)
    assert clone(lm).partial_fit(X, y).n_seen_ == len(y)
    for no in (False, np.False_):  # as searches over arrays set it
        assert clone(lm).set_params(early_stopping=no).fit(X, y).n_seen_ == 2 * len(y)


def test_too_few_windows_are_not_held_out(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=2, **SMALL)
    assert clone(lm).fit(X[:99], y[:99]).n_seen_ == 2 * 99
    assert clone(lm).fit(X[:100], y[:100]).n_seen_ == 2 * 90


def test_unconverged_early_stopping_warns(data):
    X, y, *_ = data
    lm = NeuralLM(n_words=20, max_iter=1, early_stopping=True, **SMALL)
    lm.fit(X, y)  # without a warning: the schedule ends the fit
    with pytest.warns(
        ConvergenceWarning, match="still falling after max_iter=1 epochs; raise"
    ):
        lm.set_params(solver__learning_rate="constant").fit(X, y)


@pytest.mark.slow
def test_default_does_not_overfit_few_windows():
    X, y = windows(np.random.default_rng(0).zipf(1.5, 400) % 50, 2)
    lm = NeuralLM(n_words=50, random_state=0).fit(X[:200], y[:200])
    assert lm.n_seen_ == lm.n_iter_ * 180
    of_all = clone(lm).set_params(early_stopping=False).fit(X[:200], y[:200])
    assert lm.score(X[200:], y[200:]) > of_all.score(X[200:], y[200:]) + 0.5


def test_moments_start_at_their_first_update(data):
    # Adam's first step is its rate for every number, however long another solver
    # went before: moments of no update are not to be taken for those of many.
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=1, batch_size=8, alpha=0, **SMALL).fit(X, y)
    changed(lm, solver="adam", learning_rate_init=1e-3)
    before = lm.b_.copy()
    trainer = lm.trainer(X, y)
    trainer.train(range(8))
    np.testing.assert_allclose(np.abs(trainer.keep().b_ - before), 1e-3, rtol=0.02)


def test_partial_fit_in_one_call_is_one_epoch(data):
    X, y, *_ = data
    one = paper_lm(n_words=20, max_iter=1, **SMALL)
    np.testing.assert_array_equal(
        clone(one).partial_fit(X, y).U_, clone(one).fit(X, y).U_
    )
    with pytest.raises(ValueError, match="y has 20 at 0, but n_words=20"):
        one.partial_fit(X[:1], [20])


def test_n_iter_counts_the_epochs_of_the_history(data):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=2, warm_start=True, **SMALL)

    def check(n_epochs):
        assert lm.n_iter_ == n_epochs
        assert {len(values) for values in lm.history_.values()} == {n_epochs}

    for n_epochs in (1, 2):
        lm.partial_fit(X, y)
        check(n_epochs)
    lm.fit(X, y, X_val=X_val, y_val=y_val)
    check(4)
    assert np.isnan(lm.history_["val_loss"]).tolist() == [True, True, False, False]

    fit_and_interrupt(lm, dict(X=X, y=y), 3 * len(y) / 2)
    check(5)
    lm.set_params(warm_start=False, max_iter=1).fit(X, y)
    check(1)


def test_progress_is_called(data):
    X, y, *_ = data
    calls = []
    paper_lm(n_words=20, max_iter=2, **SMALL).fit(
        X, y, progress=lambda *args: calls.append(args)
    )
    done, total, loss = zip(*calls)
    assert list(done) == sorted(done)
    assert set(total) == {done[-1]} == {2 * (len(y) + 400)}  # 1,000 are scored
    assert all(0 < x < 4 for x in loss)


def test_verbose_prints_a_line_an_epoch_and_the_speed(data, capsys):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=2, verbose=1, **SMALL).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    speed = 2 * len(y) / sum(lm.history_["seconds"])
    assert lm.words_per_second_ == pytest.approx(speed)
    assert lines[2] == f"[NeuralLM] trained on {speed:,.0f} words a second"
    assert "epoch 2" in lines[1]
    assert "held-out" in lines[1]


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_divergence_after_good_epochs_leaves_an_earlier_fit_alone(
    data, monkeypatch, warm_start
):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=1, warm_start=warm_start, **SMALL).fit(X, y)
    before, proba = vars(lm).copy(), lm.predict_proba(X[:3])
    check = Epochs._check_divergence

    def diverged_later(self, loss, epoch, done):
        check(self, loss if epoch < 3 else np.nan, epoch, done)

    monkeypatch.setattr(Epochs, "_check_divergence", diverged_later)
    with pytest.raises(DivergenceError, match="epoch 3"):
        lm.set_params(max_iter=5).fit(X, y, X_val=X_val, y_val=y_val)
    assert vars(lm) == before | {"max_iter": 5}
    np.testing.assert_array_equal(lm.predict_proba(X[:3]), proba)


def test_an_interrupt_before_training_leaves_an_earlier_fit_alone(
    data, tmp_path, monkeypatch
):
    X, y, *_ = data
    lm = paper_lm(n_words=20, max_iter=1, **SMALL).fit(X, y, checkpoint=tmp_path)
    before = vars(lm).copy()

    def half(self, arrays, facts, **place):
        self.network.parameters.C[...] = 0
        raise KeyboardInterrupt

    monkeypatch.setattr(Epochs, "resume", half)
    with pytest.raises(KeyboardInterrupt):
        lm.fit(X, y, checkpoint=tmp_path)
    assert vars(lm) == before


def test_a_divergence_in_the_last_update_is_named(data):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=1, alpha=0, learning_rate_init=1e6, **SMALL)
    lm.set_params(batch_size=10**9)  # one update in all
    for held_out in ({}, dict(X_val=X_val, y_val=y_val)):
        with pytest.raises(DivergenceError, match="epoch 1"):
            lm.fit(X, y, **held_out)


@pytest.mark.parametrize("parallel", ["sync", "async", "locked"])
@pytest.mark.parametrize("held_out", [False, True])
def test_interrupt_keeps_the_trained_weights(data, held_out, parallel):
    X, y, X_val, y_val = data
    lm = paper_lm(n_words=20, max_iter=10**6, n_iter_no_change=10**6, **SMALL)
    lm.set_params(parallel=parallel, n_jobs=2)
    lm.set_params(early_stopping="auto" if held_out else False)
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


def test_single_window_cannot_be_held_out():
    with pytest.raises(ValueError, match="leaves none for training"):
        paper_lm(early_stopping=True, **SMALL).fit([[0, 1]], [1])
    share = NeuralLM(validation_fraction=0.999)
    with pytest.raises(ValueError, match=r"120 of 120 .* smaller validation_fraction"):
        share.fit([[0, 1]] * 120, [1] * 120)
