"""Cases that the ranks of test_mpi.py run: ``worker.py CASE [FOLDER]``.

Each case ends with a line of rank 0 that the test expects, or with an error.
"""

import json
import os
import pickle
import shutil
import signal
import sys
import tempfile
import warnings
from contextlib import chdir
from functools import partial
from pathlib import Path

import numpy as np
from mpi4py import MPI
from sklearn.base import clone

from nplm import (
    NCE,
    CheckpointError,
    DivergenceError,
    EnergyLM,
    Importance,
    NeuralLM,
    Softmax,
    mpi,
    windows,
)  # fmt: skip
from nplm._kernels.neural import _network
from nplm.base.files.tensors import read_tensors
from nplm.experiments import grouped
from nplm.models.neural.fitting import replicated, scoring, sharded
from nplm.models.neural.network import sharing
from nplm.models.neural.network.network import Parts
from nplm.training import checkpoint, pace

comm = MPI.COMM_WORLD
PARAMETERS = ["C_", "H_", "d_", "U_", "W_", "b_", "P_", "G_", "S_", "Q_"]
OTHER_PARTS = dict(solver="adam", epsilon=1e-3, order=2, n_distant=2)
SETTINGS = dict(n_hidden=6, embedding_dim=4, learning_rate_init=0.02, random_state=0)


def paper_lm(**settings):
    """Return `tests.helpers.paper_lm`, which a script cannot import."""
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False, order=None)
    return NeuralLM.from_paper("MLP9", **grouped(recipe | settings))


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


def share_rows():
    """Have threads and ranks share output units, also those of small networks."""
    sharing.MIN_EXAMPLES_A_THREAD = 10**9


def equals_serial():
    share_rows()
    # 17 and 5 words do not divide by 2, 3 and 4; with 4 ranks the last of 5, 3 and
    # 2 words hold nothing.
    for i, n_words in enumerate((20, 17, 5, 3, 2)):
        X, y = data(n_words)
        every = (
            dict(batch_size=1, precision="float64"),
            dict(batch_size=16, precision="float64", direct=True),
            dict(batch_size=7, precision="float32", direct=True),
            dict(batch_size=1, precision="float32"),
            dict(batch_size=7, precision="float64", **OTHER_PARTS),
            dict(batch_size=1, precision="float64", direct=True, **OTHER_PARTS),
            dict(batch_size=7, precision="float64", direct=True, dropout=(0.2, 0.5, 0)),
            dict(batch_size=7, precision="float64", n_senses=2),
            dict(
                batch_size=7, precision="float64", word_features=np.eye(n_words)[::-1]
            ),
        )
        # Each number of ranks runs a third of the cases.
        run = comm.size + 3 * (sharded.LATENCY_BYTES < 0)
        for settings in every[(run + i) % 3 :: 3]:
            lm = paper_lm(n_words=n_words, max_iter=2, **SETTINGS, **settings)
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


def in_turn(*cases):
    """Run several checks, because a start takes seconds."""
    for case in cases:
        globals()[case]()
        comm.Barrier()
        if comm.rank == 0:
            print(f"{case}: passed by {comm.size} ranks", flush=True)


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


NETWORKS = [
    dict(loss="exact"),
    dict(output="classes"),
    dict(output="tree", solver="sgd", learning_rate_init=1e-3),
    dict(loss=Importance(n_noise=15)),
    dict(loss=NCE(n_noise=15), n_distant=5, solver="sgd", learning_rate_init=1e-3),
    dict(output=Softmax(tied=True), loss=Importance(n_noise=15)),
    dict(output=Softmax(tied=True), loss="exact"),
    dict(output=Softmax(tied=True, direct=True), loss="exact", batch_size=3),
    dict(output="tree", batch_size=1),
]


def every_network():
    """Ranks share the examples of a mini-batch, with the parameters of serial fits."""
    sharing.MIN_EXAMPLES_A_THREAD = 1
    X, y = windows(np.random.default_rng(0).zipf(1.4, 500) % 40, 5)
    shared = dict(n_words=40, max_iter=2, precision="float64", random_state=0)
    own = dict(n_hidden=6, embedding_dim=4, batch_size=64)
    every = [
        *(NeuralLM(order=3, **shared | own | settings) for settings in NETWORKS),
        EnergyLM(order=3, **shared | own),
        EnergyLM(order=3, loss=Importance(n_noise=15), **shared | own),
    ]
    for lm in every[comm.size % 2 :: 2] if comm.size > 2 else every:
        serial = clone(lm).fit(X, y, X_val=X[:50], y_val=y[:50])
        fits = [mpi.fit(clone(lm), X, y, X_val=X[:50], y_val=y[:50]) for _ in "12"]
        for one in fits:
            found = one.log_prob(X, y)
            np.testing.assert_allclose(found, serial.log_prob(X, y), rtol=1e-9)
            assert len(set(comm.allgather(found.tobytes()))) == 1
            assert one.n_seen_ == serial.n_seen_
            for name in ("loss", "val_loss"):
                np.testing.assert_allclose(one.history_[name], serial.history_[name])
        assert fits[0].log_prob(X, y).tobytes() == fits[1].log_prob(X, y).tobytes()
        continued = [one.partial_fit(X, y).log_prob(X, y) for one in (fits[0], serial)]
        np.testing.assert_allclose(*continued, rtol=1e-9)
        trainer = mpi.trainer(fits[1], X, y)
        assert trainer.train(range(100)) > 0
        assert len(set(comm.allgather(trainer.keep().log_prob(X, y).tobytes()))) == 1
    refused = NeuralLM(order=3, **shared | own, output="classes")
    raises_in_all("has output='classes'", mpi.fit, refused, X, y, keep="shards")


def averages():
    """Ranks that train apart have one network after each average, and learn."""
    X, y = windows(np.random.default_rng(0).zipf(1.4, 2000) % 40, 5)
    lm = NeuralLM(
        order=3, n_words=40, max_iter=4, n_hidden=6, embedding_dim=4, batch_size=32,
        loss=Importance(n_noise=15), random_state=0, learning_rate_init=0.02, dropout=0,
    )  # fmt: skip
    serial = clone(lm).fit(X, y, X_val=X[:200], y_val=y[:200])
    for every in (1, 3):
        one, other = (
            mpi.fit(clone(lm), X, y, X_val=X[:200], y_val=y[:200], average_every=every)
            for _ in "12"
        )
        assert max(differences(one, other)) == 0
        assert len(set(comm.allgather(one.log_prob(X, y).tobytes()))) == 1
        assert one.n_seen_ == serial.n_seen_
        start, end = one.history_["loss"][0], one.history_["loss"][-1]
        assert end < start
        assert np.isclose(end, serial.history_["loss"][-1], rtol=0.05)
        if comm.size == 1 and every == 1:
            np.testing.assert_allclose(
                one.history_["loss"], serial.history_["loss"], rtol=1e-2
            )
    part = slice(comm.rank * 500, comm.rank * 500 + 500)
    parts = dict(data="sharded", average_every=2, X_val=X[:200], y_val=y[:200])
    one = mpi.fit(clone(lm), X[part], y[part], **parts)
    assert len(set(comm.allgather(one.log_prob(X, y).tobytes()))) == 1
    assert one.n_seen_ == one.n_iter_ * 500 * comm.size
    raises_in_all("keep='shards'", mpi.fit, lm, X, y, keep="shards", average_every=2)
    raises_in_all("average_every == 0", mpi.fit, lm, X, y, average_every=0)


def parts_of(X, y):
    """Return this rank's windows, and all windows in the order of unshuffled epochs."""
    n = len(y) // comm.size
    own = slice(comm.rank * n, (comm.rank + 1) * n)
    turns = np.arange(n * comm.size).reshape(comm.size, n).T.ravel()
    return (X[own], y[own]), (X[turns], y[turns])


def sharded_data():
    """Ranks have windows of their own, of which each mini-batch has as many of each."""
    X, y = windows(np.random.default_rng(0).zipf(1.4, 500) % 40, 5)
    held_out = dict(X_val=X[:50], y_val=y[:50])
    shared = dict(n_words=40, max_iter=2, precision="float64", random_state=0)
    shared |= dict(n_hidden=6, embedding_dim=4, batch_size=65, order=3)
    every = [NeuralLM(**shared | settings) for settings in NETWORKS]
    every.append(EnergyLM(loss=Importance(n_noise=15), **shared))
    own, serial_windows = parts_of(X, y)
    fit = partial(mpi.fit, data="sharded", **held_out)
    for lm in every[comm.size % 2 :: 2] if comm.size > 2 else every:
        if getattr(lm, "output", None) == "tree":
            raises_in_all("cannot make the tree", fit, clone(lm), *own)
            lm.set_params(output__tree="huffman")
        # The same mini-batches as those of one process; masks of dropout differ.
        lm.set_params(shuffle=False)
        if lm.get_params().get("dropout"):
            lm.set_params(dropout=0.0)
        serial = clone(lm).fit(*serial_windows, **held_out)
        one = fit(clone(lm), *own)
        np.testing.assert_allclose(one.log_prob(X, y), serial.log_prob(X, y), rtol=1e-9)
        assert one.n_seen_ == serial.n_seen_
        for name in ("loss", "val_loss"):
            np.testing.assert_allclose(one.history_[name], serial.history_[name])
    dropped = clone(every[0]).set_params(dropout=0.2)
    shuffled_parts_of_several_sizes(dropped, X, y)
    sharded_data_refused(every[0], own, held_out)


def shuffled_parts_of_several_sizes(lm, X, y):
    n = 400 // comm.size
    own = slice(comm.rank * n, (comm.rank + 1) * n + 10 * (comm.rank % 2))
    # Scores of training windows, because there are no held-out ones.
    lm = clone(lm).set_params(shuffle=True, early_stopping=False, max_iter=4)
    fits = [mpi.fit(clone(lm), X[own], y[own], data="sharded") for _ in "12"]
    bits = {one.log_prob(X, y).tobytes() for one in fits}
    assert len({bit for theirs in comm.allgather(bits) for bit in theirs}) == 1
    assert fits[0].n_seen_ == 4 * n * comm.size
    serial = clone(lm).fit(X[:400], y[:400])
    np.testing.assert_allclose(
        fits[0].history_["loss"], serial.history_["loss"], rtol=0.05
    )
    root = mpi.fit(clone(lm), X[own], y[own], data="sharded", keep="root")
    assert (root is None) == (comm.rank > 0)
    # The fit of the same windows in all ranks goes on from there.
    continued = mpi.fit(fits[0].set_params(warm_start=True), X, y)
    assert len(set(comm.allgather(continued.log_prob(X, y).tobytes()))) == 1


def sharded_data_refused(lm, own, held_out):
    fit, odd = partial(mpi.fit, data="sharded"), comm.rank == comm.size - 1
    raises_in_all("needs held-out windows", fit, clone(lm), *own)
    unsized = clone(lm).set_params(n_words=None)
    raises_in_all("needs n_words", fit, unsized, *own, **held_out)
    raises_in_all("keep='shards'", fit, clone(lm), *own, **held_out, keep="shards")
    raises_in_all("data='some' must", mpi.fit, clone(lm), *own, data="some")
    wrong = own[1] + 40 * odd
    message = "but n_words=40" if odd else f"Rank {comm.size - 1} of"
    raises_in_all(message, fit, clone(lm), own[0], wrong, **held_out)
    if comm.size == 1:
        return
    mode = "same" if odd else "sharded"
    raises_in_all("data is same", mpi.fit, clone(lm), *own, **held_out, data=mode)
    held_out = {k: v[: 40 + odd] for k, v in held_out.items()}
    raises_in_all("X_val is int32 (41", fit, clone(lm), *own, **held_out)
    assert mpi.part(list(range(comm.size)), comm=comm) == [comm.rank]
    raises_in_all("too few for parts", mpi.part, ["a.npy"])


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


def raises_in_all(message, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (ValueError, TypeError) as error:
        assert message in str(error), error
    else:
        raise AssertionError("not refused")


def refused(message, lm, *args, **kwargs):
    before = vars(lm).copy()
    raises_in_all(message, mpi.fit, lm, *args, **kwargs)
    assert vars(lm).keys() == before.keys()


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
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    mpi.fit(clone(lm).set_params(random_state=None), X, y)
    after = np.random.get_state()[1]  # noqa: NPY002
    assert np.array_equal(before, after) == (comm.rank > 0)
    assert comm.recv() == "hello"
    there.wait()

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        once = partial(mpi.fit, lm, X, y, checkpoint="saves")
        raises_in_all("that all processes share", once)


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
    mpi.fit(paper_lm(n_words=20, batch_size=4, max_iter=10**6, **SETTINGS), X, y)


def raises():
    in_the_middle(lambda: 1 / 0)


def raises_again():
    """Raise in one rank the error that all ranks raised in an earlier fit."""
    X, y = data(20)
    lm = paper_lm(n_words=20, **SETTINGS)
    try:
        mpi.fit(clone(lm), X, y - 1)
    except ValueError as error:
        known = error

    def again():
        raise known

    in_the_middle(again)


def leaves_before():
    """End one rank before the fit."""
    if comm.rank == comm.size - 1:
        sys.exit()
    X, y = data(20)
    mpi.fit(paper_lm(n_words=20, max_iter=1, **SETTINGS), X, y)


def leaves_between():
    X, y = data(20)
    lm = mpi.fit(paper_lm(n_words=20, max_iter=1, **SETTINGS), X, y, keep="shards")
    if comm.rank > 0:
        lm.score(X, y)


def cannot_begin():
    def initialise(*args, **kwargs):
        raise MemoryError("no room")

    if comm.rank == 1:
        Parts.initial = initialise
    X, y = data(20)
    mpi.fit(paper_lm(n_words=20, **SETTINGS), X, y)


def killed():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGKILL))


def interrupted():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGINT))


def diverges():
    X, y = data(20)
    lm = paper_lm(n_words=20, alpha=0, **SETTINGS).set_params(learning_rate_init=1e6)
    try:
        mpi.fit(lm, X, y)
    except DivergenceError as error:
        assert "lower learning_rate_init" in str(error)
        assert not hasattr(lm, "C_")
    else:
        raise AssertionError("did not diverge")


def compare_in(*arguments):
    """Run ``nplm compare``, with a folder per rank."""
    from nplm.cli import main

    os.chdir(arguments[comm.rank])
    main(["compare", *arguments[comm.size :]])


def checkpoints(folder):
    checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0, 0.002
    X, y = data(20)
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
        try:
            mpi.fit(clone(lm), X, y, checkpoint=saves)
        except KeyboardInterrupt as interrupt:
            assert signal.Signals(number).name in str(interrupt)
        else:
            raise AssertionError("not interrupted")
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
    n, saves = len(y) // 2, Path(folder) / "sharded"
    X, y = X[n * comm.rank :][:n], y[n * comm.rank :][:n]
    resumed_examples(X, y, saves, data="sharded")
    try:
        other = y[::-1] if comm.rank == 1 else y
        resumed_examples(X, other, saves, data="sharded")
    except (CheckpointError, ValueError) as error:
        assert "its y of rank 1 was" in str(error), error
    else:
        raise AssertionError("not refused")


def resumed_examples(X, y, saves, **options):
    lm = NeuralLM(
        n_words=40, n_hidden=6, embedding_dim=4, batch_size=32, max_iter=2,
        loss=Importance(n_noise=15), random_state=0, early_stopping=False,
    )  # fmt: skip
    whole = mpi.fit(clone(lm), X, y, **options)
    assert not comm.allreduce(len(set(comm.allgather(whole.C_.tobytes()))) - 1)
    pace.SECONDS_A_CALL = 0.0005
    update, calls = replicated.RankExamples._update, []

    def count(*args):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(*args)

    replicated.RankExamples._update = count
    try:
        mpi.fit(clone(lm), X, y, checkpoint=saves, **options)
    except KeyboardInterrupt as interrupt:
        assert "SIGTERM" in str(interrupt)
    else:
        raise AssertionError("not interrupted")
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
        try:
            mpi.fit(clone(lm), X, y, **held_out, checkpoint=saves)
        except KeyboardInterrupt as interrupt:
            assert "SIGTERM" in str(interrupt)
        else:
            raise AssertionError("not interrupted")
        scoring.Scoring.work = work
        (path,) = saves.glob(f"save-*.{comm.rank}-of-{comm.size}.safetensors")
        _, texts = read_tensors(path, mmap=False)
        at = json.loads(texts["state"])["at"]
        assert (at["passes"], at["steps"]) == (passes, 0 if passes else len(y))
        gone_on = mpi.fit(clone(lm), X, y, **held_out, checkpoint=saves)
        assert max(differences(gone_on, whole)) == 0
        assert gone_on.val_loss_ == whole.val_loss_


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    comm.Barrier()
    if comm.rank == 0:
        print(f"{sys.argv[1]}: passed by {comm.size} ranks")
