"""Checkpoints: fits resumed after a kill or an interrupt have the same bits."""

import os
import pickle
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from sklearn.base import clone

import nplm
from nplm import CheckpointError
from nplm.models.neural.fitting.scoring import Scoring
from nplm.models.training import checkpoint as checkpoints
from tests.helpers import assert_same_weights, paper_lm
from tests.helpers.checkpoint import (
    SAMPLED,
    SETTINGS,
    fit_and_interrupt,
    fit_and_kill,
    n_saves,
    resume,
)

pytestmark = pytest.mark.slow

FIT = """
import sys
import numpy as np
from nplm.models.training import checkpoint
from nplm.models.training import pace
from tests.helpers import paper_lm
checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
data = np.load(sys.argv[1])
paper_lm(**eval(sys.argv[3])).fit(data["X"], data["y"], checkpoint=sys.argv[2])
"""


# tests/models/neural/test_every_network.py interrupts and resumes the other kinds.
PARTS = {
    "sgd": {},
    "importance, adam": dict(SAMPLED, solver="adam"),
    "auto": dict(learning_rate="auto", alpha="auto"),
    "dropout, tied, adam": dict(dropout=(0.1, 0.2, 0.3), tied=True, solver="adam"),
}
# An epoch has 1,798 examples.
KILLS = [
    *product(["sgd", "importance, adam"], [1], [1, 1000, 1800, 6000]),
    ("auto", 1, 6000),
    *product(["sgd", "dropout, tied, adam"], [2], [2500]),
]


@pytest.mark.parametrize(("parts", "n_jobs", "at"), KILLS)
def test_killed_fit_resumes_to_the_same_bits(data, tmp_path, n_jobs, at, parts):
    common = dict(max_iter=4, learning_rate_init=0.02, n_jobs=n_jobs)
    lm = paper_lm(**common | SETTINGS | PARTS[parts])
    whole = clone(lm).fit(**data)
    fit_and_kill(clone(lm), data, tmp_path, at)
    began_at = resume(lm, data, tmp_path)
    if at > 1000:
        assert began_at > 0.3 * at  # it resumed
    assert_same_weights(lm, whole)
    for name in ("loss", "val_loss"):
        assert lm.history_[name] == whole.history_[name]
    assert (lm.n_iter_, lm.n_seen_) == (whole.n_iter_, whole.n_seen_)

    # Only the latest save is left.
    assert len(list(tmp_path.iterdir())) == 3  # with latest.json and lock


def test_early_stopping_is_resumed(data, tmp_path):
    lm = paper_lm(
        max_iter=60, learning_rate_init=0.1, alpha=0, direct=True,
        early_stopping="auto", **SETTINGS,
    )  # fmt: skip
    whole = clone(lm).fit(**data)
    assert whole.n_iter_ < 60
    # Killed after the best epoch.
    fit_and_kill(clone(lm), data, tmp_path, (whole.n_iter_ - 0.5) * len(data["y"]))
    for _ in range(2):  # the second time no epochs remain
        again = clone(lm).fit(**data, checkpoint=tmp_path)
        np.testing.assert_array_equal(again.U_, whole.U_)
        assert again.history_["val_loss"] == whole.history_["val_loss"]


def test_max_iter_may_be_raised(data, tmp_path):
    lm = paper_lm(max_iter=2, early_stopping=False, **SETTINGS)
    clone(lm).fit(**data, checkpoint=tmp_path)
    more = clone(lm).set_params(max_iter=4, verbose=0)
    np.testing.assert_array_equal(
        clone(more).fit(**data, checkpoint=tmp_path).U_, clone(more).fit(**data).U_
    )


def test_linear_schedule_with_more_epochs_is_refused(data, tmp_path):
    lm = paper_lm(max_iter=2, learning_rate="linear", **SETTINGS)
    clone(lm).fit(**data, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="max_iter of the schedule"):
        lm.set_params(max_iter=4).fit(**data, checkpoint=tmp_path)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fit_is_resumed_after_sigkill(data, tmp_path, n_jobs):
    settings = SETTINGS | dict(max_iter=40 // n_jobs**2, batch_size=16, n_jobs=n_jobs)
    X, y = data["X"], data["y"]
    np.savez(tmp_path / "data.npz", X=X, y=y)
    folder = tmp_path / "saves"
    for saves in (2, 7):  # killed twice
        job = subprocess.Popen(
            [sys.executable, "-c", FIT, tmp_path / "data.npz", folder, repr(settings)],
            env={**os.environ, "PYTHONPATH": str(Path(nplm.__file__).parents[1])},
        )
        deadline = time.monotonic() + 60
        while n_saves(folder) < saves and time.monotonic() < deadline:
            time.sleep(0.0005)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        assert n_saves(folder) >= saves
    went_on = paper_lm(**settings).fit(X, y, checkpoint=folder)
    whole = paper_lm(**settings).fit(X, y)
    assert_same_fit(went_on, whole)


def test_interrupt_while_scoring_is_saved(data, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 1000)
    lm = paper_lm(max_iter=3, **SETTINGS)
    whole = clone(lm).fit(**data)
    begin, work, epochs = Scoring.begin, Scoring.work, []

    def count(scoring):
        epochs.append(1)
        begin(scoring)

    def interrupt(scoring, start, stop):
        if len(epochs) == 2 and start > 0:
            raise KeyboardInterrupt
        work(scoring, start, stop)

    monkeypatch.setattr(Scoring, "begin", count)
    monkeypatch.setattr(Scoring, "work", interrupt)
    interrupted = clone(lm)
    with (
        pytest.warns(RuntimeWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted.fit(**data, checkpoint=tmp_path)
    assert {len(values) for values in interrupted.history_.values()} == {1}
    monkeypatch.undo()
    assert resume(lm, data, tmp_path) > 2 * len(data["y"])
    assert_same_fit(lm, whole)


def test_interrupted_warm_start_is_resumed(data, tmp_path):
    lm = paper_lm(max_iter=2, warm_start=True, **SETTINGS).fit(**data)
    state = pickle.dumps(lm)
    whole, again = pickle.loads(state).fit(**data), pickle.loads(state)

    fit_and_interrupt(lm, data, 1.5 * len(data["y"]), checkpoint=tmp_path)
    assert lm.n_iter_ == len(lm.history_["loss"]) == 3
    # The interrupt saved it.
    assert resume(again, data, tmp_path) > 1.5 * len(data["y"])
    assert_same_fit(again, whole)
    assert again.n_iter_ == len(again.history_["loss"]) == 4


def assert_same_fit(one, other):
    assert_same_weights(one, other)
    assert one.history_["loss"] == other.history_["loss"]


# The interrupt may come between open() and the context that closes the file.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in.*_io:pytest.PytestWarning")
@pytest.mark.parametrize(
    ("n_jobs", "parallel"), [(1, "sync"), (2, "sync"), (2, "async")]
)
def test_an_interrupt_saves(data, tmp_path, monkeypatch, n_jobs, parallel):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 1000)
    monkeypatch.setattr("nplm.models.training.pace.SECONDS_A_CALL", 0.05)
    X, y = np.tile(data["X"], (5, 1)), np.tile(data["y"], 5)
    lm = paper_lm(max_iter=10**6, n_jobs=n_jobs, parallel=parallel, **SETTINGS)
    lm.set_params(batch_size=64)  # fewer barriers, which are slow under load
    interrupted = clone(lm)
    Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with (
        pytest.warns(RuntimeWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted.fit(X, y, checkpoint=tmp_path)
    lm.set_params(max_iter=interrupted.n_iter_ + 2)
    whole = clone(lm).fit(X, y)
    assert resume(lm, dict(X=X, y=y), tmp_path) > interrupted.n_seen_
    assert lm.n_seen_ == lm.n_iter_ * len(y)
    if parallel == "sync":
        assert_same_fit(lm, whole)
    else:
        # Threads race: the losses of 40 such fits differed by up to 3.3%. Starting over
        # would raise the last by 50% and more.
        losses = lm.history_["loss"], whole.history_["loss"]
        np.testing.assert_allclose(*losses, rtol=0.2)


def test_max_iter_below_the_checkpoint_warns(data, tmp_path):
    lm = paper_lm(max_iter=3, **SETTINGS).fit(**data, checkpoint=tmp_path)
    fewer = clone(lm).set_params(max_iter=2)
    with pytest.warns(RuntimeWarning, match="at epoch 3, beyond max_iter=2"):
        fewer.fit(**data, checkpoint=tmp_path)
    np.testing.assert_array_equal(fewer.U_, lm.U_)
