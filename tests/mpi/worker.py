"""What the ranks do in tests/test_mpi.py: ``worker.py CASE [FOLDER]`` under mpiexec.

Each case ends with a line of rank 0 that the test looks for, or dies.
"""

import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from sklearn.base import clone

from nplm import NeuralLM, checkpoint, mpi, training, windows
from nplm._kernels import _network

comm = MPI.COMM_WORLD
PARAMETERS = ["C_", "H_", "d_", "U_", "W_", "b_"]
SETTINGS = dict(n_hidden=6, embedding_dim=4, learning_rate_init=0.02, random_state=0)


def data(n_words, n=400):
    ids = np.random.default_rng(0).zipf(1.5, n + 2) % n_words
    ids[::3] = ids[1::3][: len(ids[::3])] if n_words > 1 else 0
    return windows(ids.astype(np.int32), 2)


def differences(one, other):
    for name in PARAMETERS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            yield np.abs(a - b).max()


def equals_serial():
    # 17 and 5 words do not divide by 2, 3 and 4; with 4 ranks the last of 5, 3 and
    # 2 words hold nothing.
    for n_words in (20, 17, 5, 3, 2):
        X, y = data(n_words)
        for settings in (
            dict(batch_size=1, precision="float64"),
            dict(batch_size=16, precision="float64", direct=True),
            dict(batch_size=7, precision="float32", direct=True),
            dict(batch_size=1, precision="float32"),
        ):
            lm = NeuralLM(n_words=n_words, max_iter=2, **SETTINGS, **settings)
            serial = clone(lm).fit(X, y, X_val=X[:50], y_val=y[:50])
            assert mpi.fit(lm, X, y, X_val=X[:50], y_val=y[:50]) is lm
            tolerance = 1e-12 if settings["precision"] == "float64" else 1e-5
            assert max(differences(lm, serial)) < tolerance
            for name in ("loss", "val_loss"):
                np.testing.assert_allclose(
                    lm.history_[name], serial.history_[name], rtol=tolerance
                )
            assert lm.n_seen_ == serial.n_seen_
            if comm.size == 1:
                assert max(differences(lm, serial)) == 0
            # A sum of two has one order, and the kernels' exp is not NumPy's.
            if comm.size == 2 and mpi.gathers_totals(2, 1):
                threads = clone(lm).set_params(n_jobs=2)
                threads.fit(X, y, X_val=X[:50], y_val=y[:50])
                assert max(differences(lm, threads)) == 0


def equals_serial_by_allreduce():
    mpi.BYTES_A_STEP = -1  # no Allgather, as among many ranks
    assert mpi.gathers_totals(comm.size, 1) == (comm.size == 1)
    equals_serial()


def stops_early_alike():
    X, y = data(20)
    lm = NeuralLM(
        n_words=20, max_iter=60, direct=True, alpha=0, batch_size=4, **SETTINGS
    )
    lm.set_params(learning_rate_init=0.2, random_state=None)
    np.random.seed(comm.rank)  # noqa: NPY002 (random_state=None draws from it)
    mpi.fit(lm, X[:100], y[:100], X_val=X[200:], y_val=y[200:])
    assert lm.n_iter_ < 60
    arrays = comm.allgather(lm.U_)
    assert all(np.array_equal(arrays[0], array) for array in arrays)
    assert np.isclose(-lm.score(X[200:], y[200:]), min(lm.history_["val_loss"]))
    for name in ("computing", "communicating", "waiting"):
        assert len(lm.history_[name]) == lm.n_iter_
        assert all(seconds >= 0 for seconds in lm.history_[name])
    spent = sum(lm.history_[n][0] for n in ("computing", "communicating", "waiting"))
    assert 0 < spent <= lm.history_["seconds"][0]


def keeps():
    X, y = data(17)
    lm = NeuralLM(n_words=17, max_iter=2, direct=True, **SETTINGS)
    whole = mpi.fit(clone(lm), X, y)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(
        again.predict_proba(X[:5]), whole.predict_proba(X[:5])
    )

    root = mpi.fit(clone(lm), X, y, keep="root")
    assert (root is None) == (comm.rank > 0)
    if root is not None:
        assert max(differences(root, whole)) == 0

    sharded = mpi.fit(clone(lm), X, y, keep="shards")
    assert len(sharded._part.U_) <= -(-17 // comm.size)
    for one in (sharded, mpi.shard(whole)):
        np.testing.assert_allclose(one.log_prob(X, y), whole.log_prob(X, y), atol=1e-5)
        assert np.isclose(one.perplexity(X, y), whole.perplexity(X, y))
        assert max(differences(one.gather(), whole)) == 0
        assert (one.gather(keep="root") is None) == (comm.rank > 0)
    # Going on from a fitted model.
    whole.set_params(warm_start=True)
    serial = clone(whole)
    serial.__dict__.update(pickle.loads(pickle.dumps(whole.__dict__)))
    mpi.fit(whole, X, y)
    assert max(differences(whole, serial.fit(X, y))) < 1e-5


def refused(message, *args, **kwargs):
    lm = args[0]
    before = vars(lm).copy()
    try:
        mpi.fit(*args, **kwargs)
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError("not refused")
    assert vars(lm).keys() == before.keys()


def disagreements():
    X, y = data(20)
    odd = comm.rank == 1
    lm = NeuralLM(n_words=20, max_iter=1, **SETTINGS)
    rate = clone(lm).set_params(learning_rate_init=0.03 if odd else 0.02)
    refused("learning_rate_init is 0.03 in rank 1 and 0.02 in rank 0", rate, X, y)
    refused(
        "X is int32 (3", clone(lm), X[: 390 if odd else 400], y[: 390 if odd else 400]
    )
    other = y.copy()
    other[7] = (other[7] + odd) % 20
    refused("y is int32", clone(lm), X, other)
    beyond = np.full_like(y, 20) if odd else y
    refused("20 at 0" if odd else "Rank 1 of", clone(lm), X, beyond)
    refused("n_jobs=2", clone(lm).set_params(n_jobs=2), X, y)
    refused("keep must be", clone(lm), X, y, keep="some")
    mpi.fit(lm, X, y)  # and all is well after it


def in_the_middle(act):
    """Run `act` in the last rank after some mini-batches of the second epoch."""
    X, y = data(20)
    train, calls = _network.train, []

    def count(*args, **kwargs):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == 400:
            act()
        train(*args, **kwargs)

    _network.train = count
    mpi.fit(NeuralLM(n_words=20, batch_size=4, max_iter=10**6, **SETTINGS), X, y)


def raises():
    in_the_middle(lambda: 1 / 0)


def killed():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGKILL))


def interrupted():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGINT))


def diverges():
    X, y = data(20)
    lm = NeuralLM(n_words=20, alpha=0, **SETTINGS).set_params(learning_rate_init=1e6)
    try:
        mpi.fit(lm, X, y)
    except training.DivergenceError as error:
        assert "lower learning_rate_init" in str(error)
        assert not hasattr(lm, "C_")
    else:
        raise AssertionError("did not diverge")


def checkpoints(folder):
    checkpoint.SECONDS_A_SAVE, training.SECONDS_A_CALL = 0, 0.002
    X, y = data(20)
    lm = NeuralLM(n_words=20, batch_size=4, max_iter=5, **SETTINGS)
    path = Path(folder)
    lm = mpi.fit(lm, X, y, X_val=X[:50], y_val=y[:50], checkpoint=path / "saves")
    if comm.rank == 0:
        arrays = {name: getattr(lm, name) for name in PARAMETERS if name != "W_"}
        np.savez(path / "result.npz", val_loss=lm.history_["val_loss"], **arrays)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    comm.Barrier()
    if comm.rank == 0:
        print(f"{sys.argv[1]}: passed by {comm.size} ranks")
