"""Ranks have windows of their own."""

import warnings
from functools import partial

import numpy as np
from sklearn.base import clone

from nplm import EnergyLM, Importance, NeuralLM, Tree, mpi, windows

from .base import comm, raises_in_all
from .examples import NETWORKS


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
    # Those with LSTM cells have runs of each text: `averages` fits them.
    some = [settings for settings in NETWORKS if "n_memory" not in settings]
    every = [NeuralLM(**shared | settings) for settings in some]
    every.append(EnergyLM(loss=Importance(n_noise=15), **shared))
    own, serial_windows = parts_of(X, y)
    fit = partial(mpi.fit, data="sharded", **held_out)
    for lm in every[comm.size % 2 :: 2] if comm.size > 2 else every:
        if isinstance(getattr(lm, "output", None), Tree):
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
    trainer_of_parts(every[0], own, serial_windows)
    dropped = clone(every[0]).set_params(dropout=0.2)
    shuffled_parts_of_several_sizes(dropped, X, y)
    unequal_parts(every[0], X, y)
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


def unequal_parts(lm, X, y):
    """A rank that has few windows makes the others leave out theirs, with a warning."""
    n = 300 if comm.rank < comm.size - 1 else 200
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mpi.fit(clone(lm), X[:n], y[:n], data="sharded", X_val=X[:50], y_val=y[:50])
    said = [str(one.message) for one in caught if "uses" in str(one.message)]
    if comm.size == 1 or comm.rank > 0:
        assert said == []
        return
    used, n_windows = 200 * comm.size, 300 * comm.size - 100
    (message,) = said
    assert f"uses {used} of {n_windows} windows" in message
    assert f"because rank {comm.size - 1} has 200" in message


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


def trainer_of_parts(lm, own, serial_windows):
    """Each rank gives a trainer examples of its own windows."""
    lm = clone(lm).set_params(dropout=0.0)
    trainer = mpi.trainer(clone(lm), *own, data="sharded")
    serial = clone(lm).trainer(*serial_windows)
    rows, size = np.arange(60), comm.size
    theirs = (rows[:, None] * size + np.arange(size)).ravel()
    for _ in range(2):
        np.testing.assert_allclose(trainer.train(rows), serial.train(theirs))
    np.testing.assert_allclose(
        trainer.keep().log_prob(*own), serial.keep().log_prob(*own), rtol=1e-9
    )
    if size > 1:
        few = rows[: 60 - (comm.rank == size - 1)]
        raises_in_all("the number of examples is 59", trainer.train, few)
    unsized = clone(lm).set_params(n_words=None)
    raises_in_all("needs n_words", mpi.trainer, unsized, *own, data="sharded")
    raises_in_all("data='some' must", mpi.trainer, clone(lm), *own, data="some")
