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
def test_trainer_equals_partial_fit(data, solver):
    X, y = data
    lm = clone(LM).set_params(solver=solver, shuffle=False, alpha=0)
    # Adam brings all features up to date at the end of each epoch, which a trainer
    # only does for `keep`.
    n_epochs = 2 if solver == "sgd" else 1
    whole = clone(lm)
    for _ in range(n_epochs):
        whole.partial_fit(X, y)
    trainer = clone(lm).trainer(X, y)
    losses = [trainer.train(np.arange(len(y))) for _ in range(n_epochs)]
    kept = trainer.keep()
    np.testing.assert_allclose(losses, whole.history_["loss"], rtol=1e-12)
    np.testing.assert_array_equal(kept.U_, whole.U_)
    np.testing.assert_array_equal(kept.C_, whole.C_)
    assert kept.n_seen_ == whole.n_seen_
    # And goes on as it would have.
    np.testing.assert_array_equal(kept.partial_fit(X, y).U_, whole.partial_fit(X, y).U_)


def test_model_changes_at_keep_only(data):
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
    [
        ([], "empty"),
        ([-1], "has -1"),
        ([300], "has 300, but the windows have rows 0"),
        (np.ones(300, bool), "must be row numbers"),
        ([0.5], "must be row numbers"),
        ([np.nan], "must be row numbers"),
        ("12", "must be row numbers"),
        (["a"], "must be row numbers"),
        (None, "must be row numbers"),
    ],
)
def test_invalid_rows_are_refused(data, examples, why):
    trainer = clone(LM).trainer(*data)
    with pytest.raises(ValueError, match=why):
        trainer.train(examples)


def test_invalid_windows_leave_the_model_unchanged(data):
    X, y = data
    lm = clone(LM)
    before = vars(lm).copy()
    with pytest.raises(ValueError, match="12 at"):
        lm.trainer(X, np.where(y == y[0], 12, y))
    assert vars(lm) == before


def test_keep_preserves_parameters_set_meanwhile(data):
    lm = clone(LM)
    trainer = lm.trainer(*data)
    lm.set_params(learning_rate_init=0.5, n_jobs=2)
    trainer.train([0, 1, 2])
    trainer.keep()
    assert (lm.learning_rate_init, lm.n_jobs) == (0.5, 2)
    assert lm.n_seen_ == 3


def test_keep_refuses_to_overwrite_another_fit(data):
    X, y = data
    lm = clone(LM)
    trainer = lm.trainer(X, y)
    trainer.train([0, 1, 2])
    trainer.keep()
    trainer.train([3])
    trainer.keep()  # its own doing
    lm.partial_fit(X, y)
    seen = lm.n_seen_
    with pytest.raises(ValueError, match="fitted in another way"):
        trainer.keep()
    assert lm.n_seen_ == seen
