"""Training by hand."""

import numpy as np
import pytest
from sklearn.base import clone

from nplm import windows
from tests.helpers import paper_lm, text

LM = paper_lm(n_words=12, n_hidden=5, embedding_dim=3, batch_size=7, random_state=0)


@pytest.fixture(scope="module")
def data():
    return windows(text(300), 2)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_by_hand_is_a_partial_fit(data, solver):
    X, y = data
    lm = clone(LM).set_params(solver=solver, shuffle=False, alpha=0)
    whole = clone(lm).partial_fit(X, y).partial_fit(X, y)
    trainer = clone(lm).trainer(X, y)
    losses = [trainer.train(np.arange(len(y))) for _ in range(2)]
    kept = trainer.keep()
    np.testing.assert_allclose(losses, whole.history_["loss"], rtol=1e-12)
    np.testing.assert_array_equal(kept.U_, whole.U_)
    np.testing.assert_array_equal(kept.C_, whole.C_)
    assert kept.n_seen_ == whole.n_seen_
    # And goes on as it would have.
    np.testing.assert_array_equal(kept.partial_fit(X, y).U_, whole.partial_fit(X, y).U_)


def test_the_model_changes_when_it_is_told(data):
    X, y = data
    lm = clone(LM)
    trainer = lm.trainer(X, y)
    trainer.train([0, 1, 2])
    assert not hasattr(lm, "C_")
    trainer.keep()
    before = lm.predict_proba(X[:5])
    trainer.train(range(50))
    np.testing.assert_array_equal(lm.predict_proba(X[:5]), before)
    assert trainer.costs() == {}


@pytest.mark.parametrize(
    ("examples", "why"),
    [([], "empty"), ([-1], "has -1"), ([300], "has 300, but there are rows 0 to 29")],
)
def test_rows_that_are_none(data, examples, why):
    trainer = clone(LM).trainer(*data)
    with pytest.raises(ValueError, match=why):
        trainer.train(examples)


def test_bad_windows_leave_the_model_alone(data):
    X, y = data
    lm = clone(LM)
    with pytest.raises(ValueError, match="12 at"):
        lm.trainer(X, np.where(y == y[0], 12, y))
    assert vars(lm) == vars(clone(LM))


def test_parameters_set_meanwhile_stay_set(data):
    lm = clone(LM)
    trainer = lm.trainer(*data)
    lm.set_params(learning_rate_init=0.5, n_jobs=2)
    trainer.train([0, 1, 2])
    trainer.keep()
    assert (lm.learning_rate_init, lm.n_jobs) == (0.5, 2)
    assert lm.n_seen_ == 3


def test_what_was_fitted_meanwhile_is_not_lost(data):
    X, y = data
    lm = clone(LM)
    trainer = lm.trainer(X, y)
    trainer.train([0, 1, 2])
    trainer.keep()
    trainer.train([3])
    trainer.keep()  # its own doing
    lm.partial_fit(X, y)
    seen = lm.n_seen_
    with pytest.raises(ValueError, match="fitted by other means"):
        trainer.keep()
    assert lm.n_seen_ == seen
