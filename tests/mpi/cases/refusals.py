"""Disagreements, communicators and divergence: errors in all ranks."""

import tempfile
from contextlib import chdir
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI
from sklearn.base import clone

from nplm import DivergenceError, TextLM, mpi

from .base import SETTINGS, comm, data, paper_lm, raises_in_all, refused


def disagreements():
    X, y = data(20)
    odd = comm.rank == 1
    lm = paper_lm(n_words=20, max_iter=1, **SETTINGS)
    rate = clone(lm).set_params(learning_rate_init=0.03 if odd else 0.02)
    refused("learning_rate_init is 0.03 in rank 1 and 0.02 in rank 0", rate, X, y)
    loss = clone(lm).set_params(loss="nce" if odd else "exact")
    refused("loss is nce in rank 1 and exact in rank 0", loss, X, y)
    solver = clone(lm).set_params(solver="adam" if odd else "sgd")
    refused("solver is Adam in rank 1 and SGD in rank 0", solver, X, y)
    decay = clone(lm).set_params(solver__learning_rate_decay=0.5 if odd else 0)
    refused("solver__learning_rate_decay is 0.5 in rank 1 and 0", decay, X, y)
    output = clone(lm).set_params(output=1 if odd else "softmax")
    refused("'output' parameter of" if odd else "Rank 1 of", output, X, y)
    refused(
        "X is int32 (3", clone(lm), X[: 390 if odd else 400], y[: 390 if odd else 400]
    )
    other = y.copy()
    other[7] = (other[7] + odd) % 20
    refused("y is int32", clone(lm), X, other)
    refused("set data='sharded'; else", clone(lm), X, other)
    beyond = np.full_like(y, 20) if odd else y
    refused("20 at 0" if odd else "Rank 1 of", clone(lm), X, beyond)
    refused("n_jobs=2", clone(lm).set_params(n_jobs=2), X, y)
    classes = clone(lm).set_params(output="classes")
    refused("has output='classes'", classes, X, y, keep="shards")
    refused("keep='some' must be", clone(lm), X, y, keep="some")
    fitted = clone(lm).set_params(warm_start=True, shuffle=False)
    if odd:
        fitted.fit(X, y)
    refused("fitted is True in rank 1 and False in rank 0", fitted, X, y)
    raises_in_all(
        "a NeuralLM or EnergyLM, got None", mpi.fit, None if odd else lm, X, y
    )
    text_lm = TextLM(clone(lm))
    raises_in_all("make a TextLM by TextLM.from_model", mpi.fit, text_lm, ["a b"])
    # The same with a trainer.
    by_hand = partial(mpi.trainer, clone(lm))
    raises_in_all("20 at 0" if odd else "Rank 1 of", by_hand, X, beyond)
    raises_in_all("y is int32", by_hand, X, other)
    raises_in_all("n_jobs=2", mpi.trainer, clone(lm).set_params(n_jobs=2), X, y)
    trainer = by_hand(X, y)
    raises_in_all("has -1" if odd else "Rank 1 of", trainer.train, [-1 if odd else 0])
    assert trainer.train(range(40)) > 0
    mpi.fit(lm, X, y)  # a valid fit works afterwards


def of_their_own():
    """Check a communicator, a random generator and a folder that ranks do not share."""
    X, y = data(20)
    lm = paper_lm(n_words=20, max_iter=1, **SETTINGS)
    some = comm.Split(MPI.UNDEFINED if comm.rank == 1 else 0)
    if comm.rank == 1:
        raises_in_all("outside of the communicator", mpi.fit, lm, X, y, comm=some)
    else:
        mpi.fit(lm, X, y, comm=some)

    # A message that was sent before the fit is received after it.
    there = comm.isend("hello", (comm.rank + 1) % comm.size)
    # The numbers of a state are drawn anew after many, and their position after each.
    before = str(np.random.get_state())  # noqa: NPY002
    mpi.fit(clone(lm).set_params(random_state=None), X, y)
    after = str(np.random.get_state())  # noqa: NPY002
    assert (before == after) == (comm.rank > 0)
    assert comm.recv() == "hello"
    there.wait()

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        once = partial(mpi.fit, lm, X, y, checkpoint="saves")
        raises_in_all("that all processes share", once)


def diverges():
    X, y = data(20)
    lm = paper_lm(n_words=20, alpha=0, **SETTINGS).set_params(learning_rate_init=1e6)
    with pytest.raises(DivergenceError, match="lower learning_rate_init"):
        mpi.fit(lm, X, y)
    assert not hasattr(lm, "C_")
