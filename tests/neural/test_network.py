"""The network's kernels against plain NumPy, and its gradients numerically."""

import _thread
import threading
import time

import numpy as np
import pytest

from nplm import available_tiers
from nplm._kernels.neural import _network
from nplm._kernels.reference import neural as reference
from nplm.neural.sharded import ShardedNetwork
from nplm.parallel.threads import Threads
from tests.helpers import (
    random_network,
    random_windows,
    reference_of,
    solver_of,
    weights_of,
    wide,
)

SHAPES = [  # n_words, n_context, n_hidden, embedding_dim, direct
    pytest.param(50, 3, 7, 4, False, id="hidden"),
    pytest.param(300, 2, 5, 3, True, id="hidden+direct, two tiles"),
    pytest.param(23, 4, 0, 5, True, id="direct"),
    pytest.param(2, 1, 1, 1, True, id="smallest"),
    pytest.param(9, 0, 3, 2, True, id="no context"),
]


ROUNDED = {"bfloat16": reference.bfloat16}
# Two numbers that nearly tie may round to neighbours, 1 in 2^8 apart.
TOLERANCE = {"float64": 1e-12, "float32": 3e-5, "bfloat16": 1e-3}


# Words that are averaged: none, fewer than the window's, more.
DISTANT = [0, 2, 9]


def each_shape(test):
    return pytest.mark.parametrize(
        "shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES]
    )(test)


@each_shape
@pytest.mark.parametrize("n_distant", DISTANT)
def test_gradients_numerically(shape, n_distant):
    # Central differences in float64 of the reference, for every parameter.
    rng = np.random.default_rng(0)
    network = random_network(*shape, "float64", rng, n_distant=n_distant)
    X, y = random_windows(6, shape[0], network.parts.inputs.n_context, rng)
    weights = weights_of(network)
    _, analytic = reference.gradients(weights, X, y)
    step = 1e-5
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat  # E is a view: reshape would copy
        chosen = rng.choice(array.size, size=min(array.size, 60), replace=False)
        for i in chosen:
            kept = flat[i]
            flat[i] = kept + step
            above = reference.log_prob(weights, X, y).sum()
            flat[i] = kept - step
            below = reference.log_prob(weights, X, y).sum()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


# 48 leaves a last mini-batch of 12: what it does not fill is from the one before.
@pytest.mark.parametrize("batch_size", [1, 2, 5, 16, 48, 100])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@each_shape
def test_train_equals_reference(shape, precision, alpha, batch_size):
    check_training(shape, precision, batch_size, alpha=alpha)


@pytest.mark.parametrize("batch_size", [1, 5, 48])
@pytest.mark.parametrize(
    ("solver", "n_distant"), [("adam", 0), ("sgd", 2), ("sgd", 9), ("adam", 9)]
)
@each_shape
def test_every_kind_of_part_equals_its_reference(
    shape, precision, solver, n_distant, batch_size
):
    check_training(shape, precision, batch_size, solver=solver, n_distant=n_distant)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("solver", "n_distant"), [("sgd", 0), ("adam", 9)])
@each_shape
def test_threads_share_the_output_units(
    shape, name, solver, n_distant, batch_size, n_threads, monkeypatch
):
    # Also more threads than words, and than this machine has cores.
    monkeypatch.setenv("NPLM_TIER", available_tiers(name)[0])
    first, again = (
        check_training(
            shape, name, batch_size, n_threads, solver=solver, n_distant=n_distant
        )
        for _ in range(2)
    )
    for got, want in zip(weights_of(first).arrays(), weights_of(again).arrays()):
        np.testing.assert_array_equal(got, want)


def check_training(
    shape, precision, batch_size, n_threads=1, *, solver="sgd", n_distant=0, **schedule
):
    rng = np.random.default_rng(1)
    solver = solver_of(solver, **schedule)
    network = random_network(
        *shape, precision, rng, n_threads, n_distant=n_distant, solver=solver,
        clock=(7, 0),
    )  # fmt: skip
    X, y = random_windows(60, shape[0], network.parts.inputs.n_context, rng)
    index = rng.permutation(60)
    expected = wide(weights_of(network))
    # One example alone is not rounded.
    rounded = reference.as_it_is if batch_size == 1 else ROUNDED.get(precision)
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7),
        rounded or reference.as_it_is,
    )  # fmt: skip

    # In two calls, as the epoch loop makes them.
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()

    tolerance = TOLERANCE[precision]
    assert network.loss == pytest.approx(loss, rel=tolerance)
    assert network.n_seen == 67
    for got, want in zip(weights_of(network).arrays(), expected.arrays(), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return network


def test_one_example_is_the_algorithm_of_section_3_2():
    """Its steps written out for one processor, loops and all."""
    rng = np.random.default_rng(2)
    V, n, h, m, rate, alpha = 9, 4, 3, 2, 0.1, 0.01
    solver = solver_of(learning_rate_init=rate, learning_rate_decay=0.0, alpha=alpha)
    network = random_network(V, n - 1, h, m, True, "float64", rng, solver=solver)
    C, H, d, E = (a.copy() for a in weights_of(network).arrays())
    U, W, b = E[:, :h].copy(), E[:, h:-1].copy(), E[:, -1].copy()
    context, target = [5, 2, 5], 7  # text order: w_{t-1} = 5 stands last

    # 1. forward: (a) features, nearest word first, (b) hidden, (c) output units
    x = np.concatenate([C[w] for w in reversed(context)])
    a = np.tanh(d + H @ x)
    p = np.empty(V)
    for j in range(V):
        p[j] = np.exp(b[j] + a @ U[j] + x @ W[j])
    p /= p.sum()
    # 2. backward and update: (a) output units
    da, dx = np.zeros(h), np.zeros((n - 1) * m)
    for j in range(V):
        dy = float(j == target) - p[j]
        b[j] += rate * dy
        dx += dy * W[j]
        da += dy * U[j]
        W[j] += rate * dy * x - rate * alpha * W[j]
        U[j] += rate * dy * a - rate * alpha * U[j]
    # (c) hidden layer
    do = (1 - a**2) * da
    dx += H.T @ do
    d += rate * do
    H += rate * np.outer(do, x) - rate * alpha * H
    # (d) features, where weight decay touches every word
    C *= 1 - rate * alpha
    for k, w in enumerate(reversed(context)):
        C[w] += rate * dx[k * m : (k + 1) * m]

    network.train(
        np.array([context], np.int32), np.array([target], np.int32), np.arange(1), 1
    )
    network.settle()
    assert network.loss == pytest.approx(-np.log(p[target]), rel=1e-12)
    for name, want in dict(C=C, H=H, d=d, U=U, W=W, b=b).items():
        np.testing.assert_allclose(network.parameters.named()[name], want, rtol=1e-12)


@each_shape
@pytest.mark.parametrize("n_distant", [0, 9])
def test_scoring_equals_reference(shape, n_distant, precision):
    rng = np.random.default_rng(3)
    network = random_network(*shape, precision, rng, n_distant=n_distant)
    X, y = random_windows(300, shape[0], network.parts.inputs.n_context, rng)
    weights = wide(weights_of(network))
    rounded = ROUNDED.get(precision, reference.as_it_is)
    tolerance = dict.fromkeys(("rtol", "atol"), 3 * TOLERANCE[precision])
    want = reference.log_prob(weights, X, y, rounded=rounded)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    np.testing.assert_allclose(network.log_prob(X[:1], y[:1]), want[:1], **tolerance)
    network.threads = Threads(3)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    for rows in (X, X[:1], X[:19]):  # one window, and a batch not full
        for logarithm in (False, True):
            options = dict(logarithm=logarithm)
            want = reference.probabilities(weights, rows, rounded=rounded, **options)
            got = network.predict_proba(rows, **options)
            np.testing.assert_allclose(got, want, **tolerance)
        # In full precision always: its normaliser is not made of bfloat16's logits.
        for normalize in (False,) if precision == "bfloat16" else (False, True):
            words = rng.integers(0, shape[0], (len(rows), 5)).astype(np.int32)
            options = dict(normalize=normalize)
            want = reference.candidates(weights, rows, words, **options)
            got = network.candidates(rows, words, **options)
            np.testing.assert_allclose(got, want, **tolerance)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4, 1e37])
def test_logits_of_any_size(precision, size):
    rng = np.random.default_rng(4)
    network = random_network(1000, 2, 3, 2, False, precision, rng)
    network.parameters.E[:, 3] = rng.uniform(-1, 1, 1000) * size
    X, _ = random_windows(5, 1000, 2, rng)
    weights = wide(weights_of(network))
    rounded = ROUNDED.get(precision, reference.as_it_is)
    for logarithm in (False, True):
        want = reference.probabilities(weights, X, logarithm=logarithm, rounded=rounded)
        got = network.predict_proba(X, logarithm=logarithm)
        assert np.isfinite(got).all()
        tolerance = TOLERANCE[precision]
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=tolerance * (size if logarithm else 1)
        )


def test_a_thread_that_fails_does_not_leave_the_others_waiting(monkeypatch):
    rng = np.random.default_rng(5)
    network = random_network(50, 3, 7, 4, False, "float32", rng, n_threads=2)
    X, y = random_windows(10, 50, 3, rng)
    train = _network.train

    def fail_as_leader(team, member, *args, **kwargs):
        if member == 0:
            raise RuntimeError("no memory")
        train(team, member, *args, **kwargs)

    monkeypatch.setattr(_network, "train", fail_as_leader)
    with pytest.raises(RuntimeError, match="no memory"):
        network.train(X, y, np.arange(10), 5)
    monkeypatch.undo()
    network.train(X, y, np.arange(10), 5)
    assert network.n_seen == 10


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_one_asynchronous_thread_is_serial_training(parallel, batch_size):
    rng = np.random.default_rng(6)
    X, y = random_windows(60, 50, 3, rng)
    networks = []
    for mode in ("rows", parallel):
        network = random_network(50, 3, 7, 4, True, "float32", np.random.default_rng(7))
        network.parallel = mode
        network.train(X, y, np.arange(60), batch_size)
        network.settle()
        networks.append(network)
    for got, want in zip(*(weights_of(n).arrays() for n in networks), strict=True):
        np.testing.assert_array_equal(got, want)
    assert networks[0].loss == networks[1].loss
    assert networks[0].clock.read() == networks[1].clock.read()


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_asynchronous_threads_lose_no_count(parallel, n_threads):
    # Part of an update may be lost; an example's loss, its place in the schedule
    # and the weight decay's clock never are.
    rng = np.random.default_rng(8)
    solver = solver_of(learning_rate_decay=0.0)
    network = random_network(
        50, 3, 7, 4, False, "float64", rng, n_threads, solver=solver, parallel=parallel
    )
    X, y = random_windows(2000, 50, 3, rng)
    network.train(X, y, np.arange(2000), 3)
    assert network.n_seen == 2000
    assert network.clock.read()[2] == pytest.approx(-0.01 * 0.05 * 2000, rel=1e-2)
    assert 0 < network.loss < np.inf
    assert all(np.isfinite(array).all() for array in weights_of(network).arrays())


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("why", ["error", "interrupt"])
def test_all_threads_stop_at_once(parallel, why, monkeypatch):
    rng = np.random.default_rng(10)
    network = random_network(500, 3, 7, 4, True, "float32", rng, n_threads=3)
    network.parallel = parallel
    X, y = random_windows(100, 500, 3, rng)
    kernel = _network.train

    def fail_in_one(team, *args, **kwargs):
        if team is network_teams[1] and why == "error":
            time.sleep(0.2)
            raise MemoryError("no room")
        if team is network_teams[1]:
            threading.Timer(0.2, _thread.interrupt_main).start()
        kernel(team, *args, **kwargs)

    def train(n):
        index = np.resize(np.arange(100), n)
        network.train(X, y, index, 5)

    train(15)
    network_teams = list(network._teams)
    monkeypatch.setattr(_network, "train", fail_in_one)
    started = time.monotonic()
    with pytest.raises(MemoryError if why == "error" else KeyboardInterrupt):
        train(10_000_000)
    took = time.monotonic() - started
    left = [array.copy() for array in weights_of(network).arrays()]
    seen = network.n_seen
    time.sleep(0.05)
    for got, want in zip(weights_of(network).arrays(), left, strict=True):
        np.testing.assert_array_equal(got, want)
    assert 15 < seen == network.n_seen
    assert took < 5  # of some minutes
    monkeypatch.undo()
    train(15)
    assert network.n_seen == seen + 15


class Part:
    """One process of several, as far as a network asks before it trains."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [1, 3, 4])
def test_shards_know_what_the_whole_knows(size):
    rng = np.random.default_rng(9)
    network = random_network(50, 3, 7, 4, True, "float64", rng)
    X, y = random_windows(30, 50, 3, rng)
    weights = weights_of(network)
    for rank in range(size):
        first, stop = (min(50, i * -(-50 // size)) for i in (rank, rank + 1))
        part = weights._replace(E=weights.E[first:stop])
        want = reference.score(part, X, y, first=first)
        shard = ShardedNetwork(
            network.parts, network.parameters.copy(slice(first, stop)),
            processes=Part(rank, size), precision="float64",
        )  # fmt: skip
        np.testing.assert_allclose(shard._totals(X, y), want, rtol=1e-12)
