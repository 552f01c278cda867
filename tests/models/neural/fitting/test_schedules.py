"""How the step falls: by the paper's formula, in a line, or not at all."""

import numpy as np
import pytest
from sklearn.base import clone

from nplm import windows
from nplm.models.neural.network.solvers import halvings
from tests.helpers import energy_lm, paper_lm, text

SETTINGS = dict(
    n_words=12, n_hidden=4, embedding_dim=3, learning_rate_init=0.05, random_state=0
)


@pytest.fixture(scope="module")
def data():
    return windows(text(203), 3)


def linear(max_iter, **settings):
    settings = SETTINGS | settings
    return paper_lm(learning_rate="linear", max_iter=max_iter, **settings)


def equal(one, other):
    for name in ("C_", "H_", "d_", "U_", "b_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


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
    equal(lm, whole)
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
    equal(lm, first)
    lm.fit(*data)
    assert lm.n_iter_ == 4
    moved = np.abs(lm.U_ - first.U_).max()
    assert moved > np.abs(first.U_).max() / 10


@pytest.mark.parametrize(
    ("losses", "want"),
    [([], 0), ([5.0], 0), ([5.0, 4.9, 4.8], 0), ([5.0, 4.995], 1), ([5.0, 5.1], 1),
     ([5.0, 4.995, 4.5, 4.0], 3), ([5.0, float("nan"), 4.0], 2)],
)  # fmt: skip
def test_halvings_start_at_the_first_small_gain(losses, want):
    assert halvings(losses) == want


def test_adaptive_learning_rate_is_halved_in_a_fit(data):
    # Epoch by epoch it is a fit with the step that the losses so far ask for.
    X, y = data
    settings = SETTINGS | dict(batch_size=len(y), alpha=0, shuffle=False)
    lm = paper_lm(
        learning_rate="adaptive", max_iter=9, early_stopping=False, **settings
    )
    losses = lm.fit(X, y, X_val=X[:50], y_val=y[:50]).history_["val_loss"]
    assert 0 < halvings(losses[:-1]) < 8  # it falls, and not at once
    by_hand = paper_lm(learning_rate="constant", **settings)
    for epoch in range(9):
        step = settings["learning_rate_init"] / 2 ** halvings(losses[:epoch])
        by_hand.set_params(learning_rate_init=step).partial_fit(X, y)
    np.testing.assert_allclose(lm.U_, by_hand.U_, rtol=1e-5, atol=1e-6)


def test_adaptive_learning_rate_is_constant_without_held_out_data(data):
    constant = paper_lm(learning_rate="constant", max_iter=3, **SETTINGS).fit(*data)
    lm = paper_lm(learning_rate="adaptive", max_iter=3, **SETTINGS)
    equal(clone(lm).fit(*data), constant)
    for _ in range(3):
        lm.partial_fit(*data)
    equal(lm, constant)


def test_constant_learning_rate_is_invscaling_without_decay(data):
    constant = paper_lm(learning_rate="constant", learning_rate_decay=10.0, **SETTINGS)
    equal(
        constant.fit(*data),
        paper_lm(learning_rate_decay=0.0, **SETTINGS).fit(*data),
    )


def test_energy_lm_has_the_linear_schedule(data):
    lm = energy_lm(learning_rate="linear", max_iter=1, **SETTINGS).partial_fit(*data)
    with pytest.raises(ValueError, match="has fallen to 0"):
        lm.partial_fit(*data)
