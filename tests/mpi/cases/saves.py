"""Checkpoints, interrupts and resumed fits."""

import json
import os
import shutil
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from nplm import CheckpointError, Importance, NeuralLM, mpi
from nplm._kernels.neural import _network
from nplm.base.files.tensors import read_tensors
from nplm.models.neural.fitting import replicated, scoring
from nplm.models.training import checkpoint, pace

from .base import PARAMETERS, SETTINGS, comm, data, differences, paper_lm


def checkpoints(folder, kill_at=0):
    """Fit with a save after each call; kill one rank before a save."""
    checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
    save, calls = checkpoint.Checkpoint.save, []

    def save_or_die(self, *args):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == int(kill_at):
            os.kill(os.getpid(), signal.SIGKILL)
        save(self, *args)

    checkpoint.Checkpoint.save = save_or_die
    X, y = data(20, 120)
    lm = paper_lm(n_words=20, batch_size=4, max_iter=2, **SETTINGS)
    path = Path(folder)
    lm = mpi.fit(lm, X, y, X_val=X[:50], y_val=y[:50], checkpoint=path / "saves")
    if comm.rank == 0:
        arrays = {name: getattr(lm, name) for name in [*PARAMETERS[:4], "b_"]}
        np.savez(path / "result.npz", val_loss=lm.history_["val_loss"], **arrays)


def goes_on_without_its_folder(folder):
    """Replace the checkpoint folder by a file in rank 0: each save warns."""
    checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
    X, y = data(20)
    lm = paper_lm(n_words=20, batch_size=4, max_iter=2, **SETTINGS)
    whole, saves = mpi.fit(clone(lm), X, y), Path(folder) / "saves"

    def progress(*figures):
        if saves.is_dir():
            shutil.rmtree(saves)
            saves.touch()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lm = mpi.fit(lm, X, y, checkpoint=saves, progress=progress)
    told = ["could not be saved" in str(warning.message) for warning in found]
    assert any(told) == (comm.rank == 0)
    assert not any(differences(lm, whole))


def terminated(folder):
    """Terminate one rank in the first epoch: all save, and resume from it.

    A second signal to all during the save changes nothing.
    """
    X, y = data(20)
    lm = paper_lm(n_words=20, batch_size=4, max_iter=2, **SETTINGS)
    whole = mpi.fit(clone(lm), X, y)
    pace.SECONDS_A_CALL = 0.002
    train, calls, save = _network.train, [], checkpoint.Checkpoint.save

    def save_and_hear_more(self, *args):
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        save(self, *args)

    for number in (signal.SIGTERM, signal.SIGINT):
        saves = Path(folder) / str(number)

        def count(*args, number=number, **kwargs):
            calls.append(number)
            if comm.rank == comm.size - 1 and calls.count(number) == 20:
                os.kill(os.getpid(), number)
            train(*args, **kwargs)

        _network.train = count
        checkpoint.Checkpoint.save = save_and_hear_more
        before = signal.getsignal(number)
        with pytest.raises(KeyboardInterrupt, match=signal.Signals(number).name):
            mpi.fit(clone(lm), X, y, checkpoint=saves)
        assert signal.getsignal(number) is before
        path = saves / f"save-1.{comm.rank}-of-{comm.size}.safetensors"
        _, texts = read_tensors(path, mmap=False)
        at = json.loads(texts["state"])["at"]
        assert at["passes"] == 0 < at["steps"]
        _network.train, checkpoint.Checkpoint.save = train, save
        gone_on = mpi.fit(clone(lm), X, y, checkpoint=saves)
        assert max(differences(gone_on, whole)) == 0


def terminated_with_examples(folder):
    """Terminate one rank of those that share examples, and resume."""
    X, y = data(40)
    resumed_examples(X, y, Path(folder) / "same")
    cells = dict(order=2, n_memory=2, batch_size=64)
    resumed_examples(X, y, Path(folder) / "cells", cells)
    n, saves = len(y) // 2, Path(folder) / "sharded"
    X, y = X[n * comm.rank :][:n], y[n * comm.rank :][:n]
    resumed_examples(X, y, saves, data="sharded")
    other = y[::-1] if comm.rank == 1 else y
    with pytest.raises((CheckpointError, ValueError), match="its y of rank 1 was"):
        resumed_examples(X, other, saves, data="sharded")


def resumed_examples(X, y, saves, settings=None, **options):
    lm = NeuralLM(
        n_words=40, n_hidden=6, embedding_dim=4, batch_size=32, max_iter=2,
        loss=Importance(n_noise=15), random_state=0, early_stopping=False,
    ).set_params(**settings or {})  # fmt: skip
    whole = mpi.fit(clone(lm), X, y, **options)
    assert not comm.allreduce(len(set(comm.allgather(whole.C_.tobytes()))) - 1)
    pace.SECONDS_A_CALL = 0.0005
    shares = os.environ.get("NPLM_MPI_SHARED_MEMORY") != "0"
    kind = replicated.RankMemory if shares else replicated.RankMessages
    update, calls = kind.update, []

    def count(*args):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(*args)

    kind.update = count
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        mpi.fit(clone(lm), X, y, checkpoint=saves, **options)
    kind.update = update
    gone_on = mpi.fit(clone(lm), X, y, checkpoint=saves, **options)
    assert max(differences(gone_on, whole)) == 0


def terminated_while_scoring(folder):
    """Terminate one rank in the scores of an epoch, and in those of the end."""
    X, y = data(20)
    lm = paper_lm(n_words=20, max_iter=2, early_stopping=True, **SETTINGS)
    held_out = dict(X_val=X[:90], y_val=y[:90])
    scoring.MAX_SCORED_WINDOWS, scoring.WINDOWS_A_SHARED_CALL = 50, 20
    whole, work = mpi.fit(clone(lm), X, y, **held_out), scoring.Scoring.work
    for n_scored, passes in ((50, 0), (90, 2)):
        saves = Path(folder) / str(n_scored)

        def terminate(self, start, stop, n_scored=n_scored):
            if comm.rank == comm.size - 1 and self.n_steps == n_scored and start == 20:
                os.kill(os.getpid(), signal.SIGTERM)
            work(self, start, stop)

        scoring.Scoring.work = terminate
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            mpi.fit(clone(lm), X, y, **held_out, checkpoint=saves)
        scoring.Scoring.work = work
        (path,) = saves.glob(f"save-*.{comm.rank}-of-{comm.size}.safetensors")
        _, texts = read_tensors(path, mmap=False)
        at = json.loads(texts["state"])["at"]
        assert (at["passes"], at["steps"]) == (passes, 0 if passes else len(y))
        gone_on = mpi.fit(clone(lm), X, y, **held_out, checkpoint=saves)
        assert max(differences(gone_on, whole)) == 0
        assert gone_on.val_loss_ == whole.val_loss_
