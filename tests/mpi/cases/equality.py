"""Fits whose ranks share output units equal those of one process."""

import pickle

import numpy as np
from sklearn.base import clone

from nplm import mpi
from nplm.models.neural.fitting import scoring, sharded

from .base import (
    SETTINGS,
    comm,
    data,
    differences,
    paper_lm,
    raises_in_all,
    share_rows,
)

OTHER_PARTS = dict(solver="adam", epsilon=1e-3, order=2, n_distant=2)


def equals_serial():
    share_rows()
    # 17 and 5 words do not divide by 2, 3 and 4; with 4 ranks the last of 5, 3 and
    # 2 words hold nothing.
    for i, n_words in enumerate((20, 17, 5, 3, 2)):
        X, y = data(n_words, 120)
        every = (
            dict(batch_size=1, precision="float64"),
            dict(batch_size=16, precision="float64", direct=True),
            dict(batch_size=7, precision="float32", direct=True),
            dict(batch_size=1, precision="float32"),
            dict(batch_size=7, precision="float64", **OTHER_PARTS),
            dict(batch_size=1, precision="float64", direct=True, **OTHER_PARTS),
            dict(batch_size=7, precision="float64", direct=True, dropout=(0.2, 0.5, 0)),
            dict(batch_size=7, precision="float64", n_senses=2),
            dict(batch_size=7, precision="float64", n_hidden=(6, 9, 5), dropout=0.2),
            dict(
                batch_size=7, precision="float64", word_features=np.eye(n_words)[::-1]
            ),
        )
        # Each number of ranks runs a third of the cases.
        run = comm.size + 3 * (sharded.LATENCY_BYTES < 0)
        for settings in every[(run + i) % 3 :: 3]:
            lm = paper_lm(n_words=n_words, max_iter=2, **SETTINGS | settings)
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
            if comm.size == 2 and sharded.gathers_totals(2, 1):
                threads = clone(lm).set_params(n_jobs=2)
                threads.fit(X, y, X_val=X[:50], y_val=y[:50])
                assert max(differences(lm, threads)) == 0
            # The solver state is also whole in every rank.
            lm.partial_fit(X, y)
            assert max(differences(lm, serial.partial_fit(X, y))) < 2 * tolerance


def equals_serial_by_allreduce():
    sharded.LATENCY_BYTES = -1  # no Allgather, as among many ranks
    assert sharded.gathers_totals(comm.size, 1) == (comm.size == 1)
    equals_serial()


def stops_early_alike():
    X, y = data(20)
    lm = paper_lm(
        n_words=20, max_iter=60, direct=True, alpha=0, batch_size=4, **SETTINGS
    )
    lm.set_params(learning_rate_init=0.2, random_state=None, early_stopping="auto")
    np.random.seed(comm.rank)  # noqa: NPY002 (random_state=None draws from it)
    mpi.fit(lm, X[:100], y[:100], X_val=X[200:], y_val=y[200:])
    assert lm.n_iter_ < 60
    arrays = comm.allgather(lm.U_)
    assert all(np.array_equal(arrays[0], array) for array in arrays)
    assert np.isclose(-lm.score(X[200:], y[200:]), min(lm.history_["val_loss"]))
    assert np.isclose(lm.val_loss_, min(lm.history_["val_loss"]))
    n, scoring.MAX_SCORED_WINDOWS = scoring.MAX_SCORED_WINDOWS, 50
    mpi.fit(lm, X[:100], y[:100], X_val=X[200:], y_val=y[200:])
    scoring.MAX_SCORED_WINDOWS = n
    assert np.isclose(-lm.score(X[200:], y[200:]), lm.val_loss_)
    assert len(set(comm.allgather(lm.val_loss_))) == 1
    for name in ("computing", "communicating", "waiting"):
        assert len(lm.history_[name]) == lm.n_iter_
        assert all(seconds >= 0 for seconds in lm.history_[name])
    spent = sum(lm.history_[n][0] for n in ("computing", "communicating", "waiting"))
    assert 0 < spent <= lm.history_["seconds"][0]


def keeps():
    share_rows()
    X, y = data(17)
    lm = paper_lm(n_words=17, max_iter=2, direct=True, **SETTINGS)
    whole = mpi.fit(clone(lm), X, y)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(
        again.predict_proba(X[:5]), whole.predict_proba(X[:5])
    )

    root = mpi.fit(clone(lm), X, y, keep="root")
    assert (root is None) == (comm.rank > 0)
    if root is not None:
        assert max(differences(root, whole)) == 0

    left = clone(lm)
    before = vars(left).copy()
    sharded = mpi.fit(left, X, y, keep="shards")
    assert vars(left) == before  # the estimator is unchanged
    assert len(sharded._part.U_) <= -(-17 // comm.size)
    for one in (sharded, mpi.shard(whole)):
        np.testing.assert_allclose(one.log_prob(X, y), whole.log_prob(X, y), atol=1e-5)
        assert np.isclose(one.perplexity(X, y), whole.perplexity(X, y))
        assert max(differences(one.gather(), whole)) == 0
        assert (one.gather(keep="root") is None) == (comm.rank > 0)
        one.gather().set_params(solver__learning_rate="constant")
        for other in (left, whole):
            assert other.solver.learning_rate == "invscaling"
    # A solver's state goes with its rows.
    lm.set_params(solver="adam")
    whole_adam = mpi.fit(clone(lm), X, y)
    parts = mpi.fit(clone(lm), X, y, keep="shards"), mpi.shard(whole_adam)
    gathered = [one.gather() for one in parts]
    whole_adam.partial_fit(X, y)
    for one in gathered:
        assert max(differences(one.partial_fit(X, y), whole_adam)) == 0
    # Windows and models must be the same in all.
    odd = comm.rank == 1
    raises_in_all("X is int32", sharded.score, X[: 100 + odd], y[: 100 + odd])
    raises_in_all("y is int32", sharded.log_prob, X, y[::-1] if odd else y)
    raises_in_all("keep is", sharded.gather, keep="root" if odd else "all")
    changed = pickle.loads(pickle.dumps(whole))
    changed.C_[3] += odd
    raises_in_all("C_ is float32", mpi.shard, changed)
    # Another kind of epoch.
    again.partial_fit(X, y)
    assert {len(values) for values in again.history_.values()} == {3}
    assert np.isnan(again.history_["waiting"][-1])
    # Continue from a fitted model.
    whole.set_params(warm_start=True)
    serial = clone(whole)
    serial.__dict__.update(pickle.loads(pickle.dumps(whole.__dict__)))
    mpi.fit(whole, X, y)
    assert max(differences(whole, serial.fit(X, y))) < 1e-5
