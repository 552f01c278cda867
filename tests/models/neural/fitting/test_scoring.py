"""Scores of held-out windows in a fit: a sample after epochs, all at the end."""

from threading import Barrier

import numpy as np
import pytest
from sklearn.base import clone

from nplm import windows
from nplm._kernels.neural import _network
from nplm.models.neural.fitting import scoring
from nplm.models.neural.fitting.scoring import Scoring
from nplm.models.training import pace
from tests.helpers import markov_stream, paper_lm

SETTINGS = dict(
    n_words=20, n_hidden=6, embedding_dim=4, batch_size=8, learning_rate_init=0.1,
    alpha=0, random_state=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def data():
    X, y = windows(markov_stream(300), 2)
    X_val, y_val = windows(markov_stream(402, seed=1), 2)
    return dict(X=X, y=y, X_val=X_val, y_val=y_val)


@pytest.fixture
def sampled(monkeypatch):
    """Let 100 windows be many, and calls short."""
    monkeypatch.setattr(scoring, "MAX_SCORED_WINDOWS", 100)
    monkeypatch.setattr(pace, "SECONDS_A_CALL", 0)


@pytest.mark.parametrize("parallel", ["sync", "async"])
def test_held_out_windows_are_scored_by_all_threads(data, monkeypatch, parallel):
    both, score, n_calls = Barrier(2, timeout=60), _network.score, []

    def wait(*args):
        n_calls.append(both.wait())
        score(*args)

    monkeypatch.setattr(_network, "score", wait)
    lm = paper_lm(max_iter=1, n_jobs=2, parallel=parallel, **SETTINGS)
    X_val, y_val = data["X_val"][:128], data["y_val"][:128]  # one call
    lm.fit(data["X"], data["y"], X_val=X_val, y_val=y_val)
    assert sorted(n_calls) == [0, 1]


def test_few_held_out_windows_are_all_scored(data):
    lm = paper_lm(max_iter=2, **SETTINGS).fit(**data)
    assert -lm.score(data["X_val"], data["y_val"]) == lm.val_loss_
    assert lm.history_["val_loss"][-1] == lm.val_loss_
    assert all(seconds > 0 for seconds in lm.history_["scoring_seconds"])
    assert np.isnan(lm.partial_fit(data["X"], data["y"]).val_loss_)


def test_an_epoch_scores_an_even_sample_of_many(data, sampled, monkeypatch, capsys):
    lm = paper_lm(max_iter=2, verbose=1, **SETTINGS).fit(**data)
    X_val, y_val = data["X_val"], data["y_val"]
    assert lm.history_["val_loss"][-1] == -lm.score(X_val[::4], y_val[::4])
    assert lm.val_loss_ == -lm.score(X_val, y_val)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        f"[NeuralLM] all 400 held-out windows: loss {lm.val_loss_:.4f} nats"
    )
    monkeypatch.undo()
    whole = clone(lm).set_params(verbose=0).fit(**data)
    np.testing.assert_array_equal(lm.U_, whole.U_)
    assert lm.history_["loss"] == whole.history_["loss"]
    assert lm.val_loss_ == whole.val_loss_


@pytest.mark.parametrize(
    "parts", [{}, {"word_features": np.arange(20)[:, None] % [3, 4, 5] == 0}]
)
def test_the_sample_chooses_the_epoch(data, sampled, parts):
    lm, calls = paper_lm(max_iter=60, early_stopping=True, **SETTINGS, **parts), []
    lm.fit(**data, progress=lambda *call: calls.append(call))
    # A scored window counts as 0.4 examples, and epochs that were not run as none.
    assert calls[-1][:2] == (lm.n_iter_ * (298 + 40) + 160,) * 2
    losses = lm.history_["val_loss"]
    best = 1 + np.argmin(losses)
    assert best < lm.n_iter_ < 60
    again = clone(lm).set_params(max_iter=best, early_stopping=False).fit(**data)
    np.testing.assert_array_equal(lm.U_, again.U_)
    assert lm.val_loss_ == again.val_loss_ != min(losses)


def interrupt_last(monkeypatch):
    """Interrupt the scores of all windows, after the first call."""
    work = Scoring.work

    def interrupt(self, start, stop):
        if self.n_steps > scoring.MAX_SCORED_WINDOWS and start > 0:
            raise KeyboardInterrupt
        work(self, start, stop)

    monkeypatch.setattr(Scoring, "work", interrupt)
    return work


@pytest.mark.filterwarnings("ignore:NeuralLM. the held-out loss was still falling")
def test_interrupt_of_the_last_scores_keeps_the_best_epoch(
    data, sampled, tmp_path, monkeypatch
):
    lm = paper_lm(max_iter=4, early_stopping=True, n_iter_no_change=9, **SETTINGS)
    lm.set_params(learning_rate_init=0.3)
    more = clone(lm).set_params(max_iter=6)
    whole, longer = clone(lm).fit(**data), clone(more).fit(**data)
    assert np.argmin(whole.history_["val_loss"]) < 3
    work = interrupt_last(monkeypatch)
    interrupted = clone(lm)
    with (
        pytest.warns(RuntimeWarning, match="while scoring all held-out windows; it"),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted.fit(**data, checkpoint=tmp_path)
    np.testing.assert_array_equal(interrupted.U_, whole.U_)
    assert np.isnan(interrupted.val_loss_)
    monkeypatch.setattr(Scoring, "work", work)
    resumed = clone(lm).fit(**data, checkpoint=tmp_path)
    assert resumed.val_loss_ == whole.val_loss_
    # The checkpoint has the last weights, and not the best.
    resumed = clone(more).fit(**data, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.U_, longer.U_)
    assert resumed.val_loss_ == longer.val_loss_
