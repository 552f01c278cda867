"""Schedules of the learning rate, and the weight decay that follows the data."""

import numpy as np
import pytest
from sklearn.base import clone

from nplm import windows
from tests.helpers import assert_same_weights, paper_lm, text

SETTINGS = dict(
    n_words=12, n_hidden=4, embedding_dim=3, learning_rate_init=0.05, random_state=0
)


@pytest.fixture(scope="module")
def data():
    return windows(text(203), 3)


def linear(max_iter, **settings):
    settings = SETTINGS | settings
    return paper_lm(learning_rate="linear", max_iter=max_iter, **settings)


def test_linear_learning_rate_ends_at_0(data):
    # Of one mini-batch an epoch: the second of two has half the step of the first.
    X, y = data
    whole = dict(batch_size=len(y), alpha=0, shuffle=False)
    lm = linear(2, **whole).fit(X, y)
    by_hand = paper_lm(**SETTINGS | whole).partial_fit(X, y)
    by_hand.set_params(learning_rate_init=0.025, solver__learning_rate_decay=0)
    by_hand.partial_fit(X, y)
    np.testing.assert_allclose(lm.U_, by_hand.U_, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="has fallen to 0 over max_iter=2"):
        lm.partial_fit(X, y)


@pytest.mark.parametrize("settings", [{}, dict(solver="adam")], ids=str)
def test_partial_fit_calls_share_one_schedule(data, settings):
    whole = linear(3, **settings).fit(*data)
    lm = linear(3, **settings)
    for _ in range(3):
        lm.partial_fit(*data)
    assert_same_weights(lm, whole)
    for go_on in (lm.partial_fit, lm.trainer):
        with pytest.raises(ValueError, match="has fallen to 0 over max_iter=3"):
            go_on(*data)
    lm.set_params(max_iter=4).partial_fit(*data)
    assert lm.n_iter_ == 4


def test_partial_fit_call_counts_as_an_epoch(data):
    X, y = data
    lm = linear(2)
    lm.partial_fit(X[:50], y[:50]).partial_fit(X, y)
    with pytest.raises(ValueError, match="max_iter=2"):
        lm.partial_fit(X, y)


def test_trainers_share_the_schedule(data):
    X, y = data
    whole = linear(2, shuffle=False, batch_size=10).fit(X, y)
    lm, rows = linear(2, batch_size=10), np.arange(len(y))
    trainer = lm.trainer(X, y)
    trainer.train(rows)
    trainer.train(rows[:50])
    trainer.keep()
    last = lm.trainer(X, y)  # in another session, as it were
    last.train(rows[50:])
    np.testing.assert_allclose(last.keep().U_, whole.U_, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="has fallen to 0 over max_iter=2"):
        last.train(rows)


def test_warm_start_restarts_the_schedule(data):
    first = linear(2).fit(*data)
    lm = clone(first).set_params(warm_start=True).fit(*data)
    assert_same_weights(lm, first)
    lm.fit(*data)
    assert lm.n_iter_ == 4
    moved = np.abs(lm.U_ - first.U_).max()
    assert moved > np.abs(first.U_).max() / 10


def test_auto_learning_rate_is_linear_over_few_epochs(data):
    X, y = data
    settings = SETTINGS | dict(batch_size=1, early_stopping=False)
    auto = paper_lm(learning_rate="auto", max_iter=100, **settings).fit(X, y)
    assert_same_weights(auto, linear(4, batch_size=1).fit(X, y))
    assert auto.n_iter_ == 4
    # max_iter is a limit, also of the schedule.
    short = paper_lm(learning_rate="auto", max_iter=2, **settings).fit(X, y)
    assert_same_weights(short, linear(2, batch_size=1).fit(X, y))


def test_auto_learning_rate_has_200_updates_of_few_windows(data):
    X, y = data[0][:40], data[1][:40]
    auto = paper_lm(learning_rate="auto", max_iter=100, batch_size=16, **SETTINGS)
    auto.fit(X, y)
    assert auto.n_iter_ == 80  # of 2.5 mini-batches
    assert_same_weights(auto, linear(80, batch_size=16).fit(X, y))


def test_auto_learning_rate_is_constant_in_partial_fit(data):
    constant = paper_lm(learning_rate="constant", max_iter=3, **SETTINGS).fit(*data)
    lm = paper_lm(learning_rate="auto", max_iter=3, **SETTINGS)
    for _ in range(3):
        lm.partial_fit(*data)
    assert_same_weights(lm, constant)


def test_auto_fit_ends_at_the_first_epoch_without_a_gain(data):
    X, y = data
    lm = paper_lm(learning_rate="auto", max_iter=9, batch_size=1, **SETTINGS)
    lm.set_params(early_stopping="auto", n_iter_no_change=1)
    # The more it learns of the next words, the worse are these.
    lm.fit(X, y, X_val=X, y_val=(y + 1) % 12)
    first, second = lm.history_["val_loss"]
    assert second > first


@pytest.mark.parametrize(
    ("solver", "n", "want"), [("sgd", 200, 1e-4), ("adam", 200, 6 / 20**0.5)]
)
def test_auto_alpha_follows_the_updates_of_an_epoch(data, solver, n, want):
    X, y = data[0][:n], data[1][:n]
    common = SETTINGS | dict(solver=solver, batch_size=10, max_iter=2)
    common |= dict(learning_rate_init=1e-3)
    auto = paper_lm(**common | dict(alpha="auto")).fit(X, y)
    assert_same_weights(auto, paper_lm(**common | dict(alpha=want)).fit(X, y))


def test_auto_alpha_takes_a_hundredth_of_an_update_at_most(data):
    common = SETTINGS | dict(solver="adam", batch_size=10, max_iter=2)
    auto = paper_lm(**common | dict(alpha="auto")).fit(*data)
    assert_same_weights(auto, paper_lm(**common | dict(alpha=0.01 / 0.05)).fit(*data))


def test_auto_alpha_of_a_stream_falls_with_what_was_seen(data):
    X, y = data
    common = SETTINGS | dict(solver="adam", batch_size=10, learning_rate_init=1e-3)
    auto = paper_lm(**common | dict(alpha="auto"))
    by_hand = paper_lm(**common)
    for n_seen in (50, 50, 100):  # the first call sees its own windows only
        auto.partial_fit(X[:50], y[:50])
        by_hand.set_params(alpha=6 / (n_seen / 10) ** 0.5).partial_fit(X[:50], y[:50])
    assert_same_weights(auto, by_hand)


def test_constant_learning_rate_is_invscaling_without_decay(data):
    constant = paper_lm(learning_rate="constant", learning_rate_decay=10.0, **SETTINGS)
    assert_same_weights(
        constant.fit(*data),
        paper_lm(learning_rate_decay=0.0, **SETTINGS).fit(*data),
    )
