"""Ranks share the examples of mini-batches, or average their networks."""

import os

import numpy as np
from sklearn.base import clone

from nplm import NCE, EnergyLM, Importance, NeuralLM, Softmax, Tree, mpi, windows
from nplm.models.neural.fitting.replicated import CommonNetwork, ReplicatedNetwork
from nplm.models.neural.network import network as networks
from nplm.models.training.parallel import processes as memory

from .base import comm, differences, raises_in_all

NETWORKS = [
    dict(loss="exact"),
    dict(output="classes"),
    dict(output=Tree(n_branches=4), solver="sgd", learning_rate_init=1e-3),
    dict(loss=Importance(n_noise=15)),
    dict(loss=NCE(n_noise=15), n_distant=5, solver="sgd", learning_rate_init=1e-3),
    dict(output=Softmax(tied=True), loss=Importance(n_noise=15)),
    dict(output=Softmax(tied=True), loss="exact"),
    dict(output=Softmax(tied=True, direct=True), loss="exact", batch_size=3),
    dict(output=Tree(n_branches=4), batch_size=1),
    dict(n_hidden=(6, 9, 5), loss=Importance(n_noise=15)),
    dict(n_memory=5, loss=Importance(n_noise=15)),
    dict(
        n_memory=4,
        output=Softmax(tied=True, direct=True),
        batch_size=96,
        loss=Importance(n_noise=15),
    ),
    dict(n_memory=5, loss="exact"),
]


def every_network():
    """Ranks share the examples of a mini-batch, with the parameters of serial fits."""
    networks.MIN_EXAMPLES_A_THREAD = 1
    X, y = windows(np.random.default_rng(0).zipf(1.4, 500) % 40, 5)
    shared = dict(n_words=40, max_iter=2, precision="float64", random_state=0)
    own = dict(n_hidden=6, embedding_dim=4, batch_size=64)
    every = [
        *(NeuralLM(order=3, **shared | own | settings) for settings in NETWORKS),
        EnergyLM(order=3, **shared | own),
        EnergyLM(order=3, loss=Importance(n_noise=15), **shared | own),
    ]
    n_replicated = 0
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
        network = trainer._training.network
        if isinstance(network, ReplicatedNetwork):  # the others share output units
            assert isinstance(network, CommonNetwork) == shares_memory()
            n_replicated += 1
        assert trainer.train(range(100)) > 0
        assert len(set(comm.allgather(trainer.keep().log_prob(X, y).tobytes()))) == 1
    assert n_replicated > 2
    refused = NeuralLM(order=3, **shared | own, output="classes")
    raises_in_all("has output='classes'", mpi.fit, refused, X, y, keep="shards")


def streams():
    """Ranks fit documents as they fit the windows of these."""
    ids = np.random.default_rng(0).zipf(1.4, 600) % 40
    documents = np.split(ids[:506], np.arange(7, 500, 41))
    X, y = (
        np.concatenate(parts) for parts in zip(*(windows(own, 2) for own in documents))
    )
    settings = dict(order=3, n_words=40, n_hidden=6, embedding_dim=4, max_iter=2)
    lm = NeuralLM(**settings, batch_size=64, precision="float64", random_state=0)
    val = windows(ids[:52], 2)
    serial = clone(lm).fit(X, y, X_val=val[0], y_val=val[1])
    found = mpi.fit_stream(clone(lm), documents, ids[:52]).log_prob(X, y)
    np.testing.assert_allclose(found, serial.log_prob(X, y), rtol=1e-9)
    assert len(set(comm.allgather(found.tobytes()))) == 1
    weights = np.linspace(0, 2.4, len(documents))
    weighted = clone(lm).fit_stream(documents, ids[:52], sample_weight=weights)
    found = mpi.fit_stream(clone(lm), documents, ids[:52], sample_weight=weights)
    np.testing.assert_allclose(found.log_prob(X, y), weighted.log_prob(X, y), rtol=1e-9)
    own = mpi.part(documents)
    whole = NeuralLM(**settings, early_stopping=False, random_state=0)
    cut = zip(*(windows(part, 2) for part in own))
    pair = (
        mpi.fit_stream(clone(whole), own, data="sharded"),
        mpi.fit(clone(whole), *map(np.concatenate, cut), data="sharded"),
    )
    np.testing.assert_array_equal(*(one.log_prob(X, y) for one in pair))
    remembering = clone(lm).set_params(
        n_memory=5, dropout=0, batch_size=32 * comm.size, shuffle=False
    )
    documents_are_read(remembering, documents)


def documents_are_read(lm, documents):
    """LSTM cells begin anew with each document, in columns that ranks have."""
    alike = [mpi.fit_stream(clone(lm), documents, documents[:3])]
    alike.append(clone(lm).fit_stream(documents, documents[:3]))
    # Each rank has a column, and documents of as many tokens: those of a serial fit.
    own = [np.roll(ids, comm.rank) for ids in documents]
    every = [ids for theirs in comm.allgather(own) for ids in theirs]
    lm.set_params(early_stopping=False)
    alike.append(mpi.fit_stream(clone(lm), own, data="sharded"))
    alike.append(clone(lm).fit_stream(every))
    for ranks, serial in (alike[:2], alike[2:]):
        found = ranks.log_prob_stream(documents)
        np.testing.assert_allclose(found, serial.log_prob_stream(documents), rtol=1e-9)
        assert len(set(comm.allgather(found.tobytes()))) == 1
        np.testing.assert_allclose(ranks.history_["loss"], serial.history_["loss"])


def averages():
    """Ranks that train apart have one network after each average, and learn."""
    X, y = windows(np.random.default_rng(0).zipf(1.4, 2000) % 40, 5)
    lm = NeuralLM(
        order=3, n_words=40, max_iter=4, n_hidden=6, embedding_dim=4, batch_size=32,
        loss=Importance(n_noise=15), random_state=0, learning_rate_init=0.02, dropout=0,
        early_stopping=False,
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
    for more in (parts, parts | dict(average_every=None)):  # with texts of their own
        cells = clone(lm).set_params(n_memory=5, batch_size=64 * comm.size)
        one = mpi.fit(cells, X[part], y[part], **more)
        assert len(set(comm.allgather(one.log_prob(X, y).tobytes()))) == 1
        assert one.history_["loss"][-1] < one.history_["loss"][0]
    raises_in_all("keep='shards'", mpi.fit, lm, X, y, keep="shards", average_every=2)
    raises_in_all("average_every == 0", mpi.fit, lm, X, y, average_every=0)


def shares_memory():
    """Whether ranks should have the parameters in common memory."""
    return comm.size > 1 and os.environ.get("NPLM_MPI_SHARED_MEMORY") != "0"


def every_network_by_messages():
    """Do `every_network` as ranks of several computers."""
    os.environ["NPLM_MPI_SHARED_MEMORY"] = "0"
    try:
        every_network()
    finally:
        del os.environ["NPLM_MPI_SHARED_MEMORY"]


def bytes_of_messages():
    """Ranks send as many bytes as a ring does of what two ranks add up and gather."""
    K, lm = 256, NeuralLM(
        order=6, n_words=2000, batch_size=256, n_hidden=20, embedding_dim=10,
        loss=Importance(n_noise=100), random_state=0, learning_rate_init=1e-6,
    )  # fmt: skip
    X, y = windows(np.random.default_rng(0).zipf(1.3, 4 * K + 5) % 2000, 5)
    os.environ["NPLM_MPI_SHARED_MEMORY"] = "0"
    found = {}
    for n_ranks in {2, comm.size}:
        ranks = comm.Split(comm.rank < n_ranks)
        if comm.rank < n_ranks:
            found[n_ranks] = bytes_of_a_mini_batch(mpi.trainer(lm, X, y, comm=ranks), K)
    del os.environ["NPLM_MPI_SHARED_MEMORY"]
    if comm.rank >= 2:  # the others know what two ranks sent
        return
    summed, gathered = found[2]
    assert found[comm.size][0] == summed
    # Rows that two examples visit are sent once by a rank that has both.
    ring = 2 * summed + gathered
    assert ring <= 2 * summed + found[comm.size][1] < 1.1 * ring


def bytes_of_a_mini_batch(trainer, K):
    """Return the bytes that ranks hand to MPI in the second of two mini-batches."""
    processes = trainer._training.network.processes
    summed, gathered = [], []
    add, join = processes.sum, processes.join_bytes
    processes.sum = lambda array: (summed.append(array.nbytes), add(array))
    processes.join_bytes = lambda own, to, starts: (
        gathered.append(to.nbytes), join(own, to, starts),
    )  # fmt: skip
    trainer.train(range(2 * K))
    assert len(gathered) == 2
    return max(summed), gathered[-1]


def common_memory():
    """Models own their arrays, and processes that cannot share memory say so."""
    X, y = windows(np.random.default_rng(0).zipf(1.4, 500) % 40, 5)
    lm = NeuralLM(
        order=3, n_words=40, max_iter=1, n_hidden=6, embedding_dim=4, batch_size=64,
        loss=Importance(n_noise=15), random_state=0,
    )  # fmt: skip
    one = mpi.fit(clone(lm), X, y)
    trainer = mpi.trainer(clone(lm), X, y)
    trainer.train(range(100))
    kept = trainer.keep()
    before = kept.log_prob(X, y)
    comm.Barrier()
    one.C_[...] = comm.rank
    trainer.train(range(100))
    comm.Barrier()
    assert (comm.rank == one.C_).all()
    assert np.array_equal(kept.log_prob(X, y), before)
    os.environ["NPLM_MPI_SHARED_MEMORY"] = "yes" if comm.rank == 0 else "1"
    message = "NPLM_MPI_SHARED_MEMORY='yes' must be 0 or 1"
    raises_in_all(message, mpi.fit, clone(lm), X, y)
    del os.environ["NPLM_MPI_SHARED_MEMORY"]
    # The file of another process, in one of the ranks.
    identity = memory._identity
    if comm.rank == comm.size - 1:
        memory._identity = lambda number: [0, 0, 0]
    raises_in_all("Set NPLM_MPI_SHARED_MEMORY=0", mpi.fit, clone(lm), X, y)
    memory._identity = identity
    assert mpi.fit(clone(lm), X, y).n_iter_ == 1
