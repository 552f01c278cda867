"""The network's kernels against plain NumPy, and its gradients numerically."""

import _thread
import threading
import time

import numpy as np
import pytest
from nplm._kernels.neural._workspace import available_tiers

from nplm._kernels.neural import _network
from nplm._kernels.reference import neural as reference
from nplm.neural.network import Network
from nplm.parallel.threads import Threads

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


def random_network(
    n_words, n_context, n_hidden, embedding_dim, direct, precision, rng, n_threads=1
):
    n_inputs = n_context * embedding_dim
    return Network(
        C=rng.normal(size=(n_words, embedding_dim)),
        H=rng.normal(size=(n_hidden, n_inputs)),
        d=rng.normal(size=n_hidden),
        U=rng.normal(size=(n_words, n_hidden)),
        W=rng.normal(size=(n_words, n_inputs)) if direct else None,
        b=rng.normal(size=n_words),
        precision=precision,
        threads=Threads(n_threads),
    )


def random_windows(n, n_words, n_context, rng):
    X = rng.integers(0, n_words, (n, n_context)).astype(np.int32)
    return X, rng.integers(0, n_words, n).astype(np.int32)


def parameters(network):
    # Views: what fills up the rows of E to whole vectors is left out.
    return network.C, network.H, network.d, network.E[:, : network.n_outputs]


@pytest.mark.parametrize(
    "shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES]
)
def test_gradients_numerically(shape):
    # Central differences in float64 of the reference, for every parameter.
    rng = np.random.default_rng(0)
    network = random_network(*shape, "float64", rng)
    X, y = random_windows(6, shape[0], shape[1], rng)
    arrays = parameters(network)
    _, *analytic = reference.gradients(*arrays, X, y)
    step = 1e-5
    for array, gradient in zip(arrays, analytic, strict=True):
        flat = array.flat  # E is a view: reshape would copy
        chosen = rng.choice(array.size, size=min(array.size, 60), replace=False)
        for i in chosen:
            kept = flat[i]
            flat[i] = kept + step
            above = reference.log_prob(*arrays, X, y).sum()
            flat[i] = kept - step
            below = reference.log_prob(*arrays, X, y).sum()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


# 48 leaves a last mini-batch of 12: what it does not fill is from the one before.
@pytest.mark.parametrize("batch_size", [1, 2, 5, 16, 48, 100])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize(
    "shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES]
)
def test_train_equals_reference(shape, precision, alpha, batch_size):
    check_training(shape, precision, alpha, batch_size, n_threads=1)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES]
)
def test_threads_share_the_output_units(
    shape, name, batch_size, n_threads, monkeypatch
):
    # Also more threads than words, and than this machine has cores.
    monkeypatch.setenv("NPLM_TIER", available_tiers(name)[0])
    first = check_training(shape, name, 0.05, batch_size, n_threads)
    again = check_training(shape, name, 0.05, batch_size, n_threads)
    for got, want in zip(parameters(first), parameters(again), strict=True):
        np.testing.assert_array_equal(got, want)


def check_training(shape, precision, alpha, batch_size, n_threads):
    rng = np.random.default_rng(1)
    network = random_network(*shape, precision, rng, n_threads)
    X, y = random_windows(60, shape[0], shape[1], rng)
    index = rng.permutation(60)
    schedule = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=alpha)
    expected = [a.astype(np.float64) for a in parameters(network)]
    # One example alone is not rounded.
    rounded = reference.as_it_is if batch_size == 1 else ROUNDED.get(precision)
    loss = reference.train(
        *expected, X, y, index, batch_size=batch_size, n_seen=7, **schedule,
        rounded=rounded or reference.as_it_is,
    )  # fmt: skip

    network.tally[1] = 7
    # In two calls, as the epoch loop makes them.
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size=batch_size, **schedule)
    network.train(X, y, index[cut:], batch_size=batch_size, **schedule)
    network.settle()

    tolerance = TOLERANCE[precision]
    assert network.tally[0] == pytest.approx(loss, rel=tolerance)
    assert network.tally[1] == 67
    for got, want in zip(parameters(network), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return network


def test_one_example_is_the_algorithm_of_section_3_2():
    """Its steps written out for one processor, loops and all."""
    rng = np.random.default_rng(2)
    V, n, h, m, rate, alpha = 9, 4, 3, 2, 0.1, 0.01
    network = random_network(V, n - 1, h, m, True, "float64", rng)
    C, H, d, E = (a.copy() for a in parameters(network))
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
        np.array([context], np.int32), np.array([target], np.int32), np.arange(1),
        batch_size=1, learning_rate_init=rate, learning_rate_decay=0.0, alpha=alpha,
    )  # fmt: skip
    network.settle()
    assert network.tally[0] == pytest.approx(-np.log(p[target]), rel=1e-12)
    for name, want in dict(C=C, H=H, d=d, U=U, W=W, b=b).items():
        np.testing.assert_allclose(network.arrays()[name], want, rtol=1e-12)


@pytest.mark.parametrize(
    "shape", [p.values for p in SHAPES], ids=[p.id for p in SHAPES]
)
def test_scoring_equals_reference(shape, precision):
    rng = np.random.default_rng(3)
    network = random_network(*shape, precision, rng)
    X, y = random_windows(300, shape[0], shape[1], rng)
    wide = [a.astype(np.float64) for a in parameters(network)]
    rounded = ROUNDED.get(precision, reference.as_it_is)
    tolerance = dict.fromkeys(("rtol", "atol"), 3 * TOLERANCE[precision])
    want = reference.log_prob(*wide, X, y, rounded=rounded)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    np.testing.assert_allclose(network.log_prob(X[:1], y[:1]), want[:1], **tolerance)
    network.threads = Threads(3)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    for rows in (X, X[:1], X[:19]):  # one window, and a batch not full
        for logarithm in (False, True):
            options = dict(logarithm=logarithm)
            want = reference.probabilities(*wide, rows, rounded=rounded, **options)
            got = network.predict_proba(rows, **options)
            np.testing.assert_allclose(got, want, **tolerance)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4, 1e37])
def test_logits_of_any_size(precision, size):
    rng = np.random.default_rng(4)
    network = random_network(1000, 2, 3, 2, False, precision, rng)
    network.E[:, 3] = rng.uniform(-1, 1, 1000) * size
    X, _ = random_windows(5, 1000, 2, rng)
    wide = [a.astype(np.float64) for a in parameters(network)]
    rounded = ROUNDED.get(precision, reference.as_it_is)
    for logarithm in (False, True):
        want = reference.probabilities(*wide, X, logarithm=logarithm, rounded=rounded)
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
    schedule = dict(learning_rate_init=0.1, learning_rate_decay=0.0, alpha=0.0)
    train = _network.train

    def fail_as_leader(team, member, *args, **kwargs):
        if member == 0:
            raise RuntimeError("no memory")
        train(team, member, *args, **kwargs)

    monkeypatch.setattr(_network, "train", fail_as_leader)
    with pytest.raises(RuntimeError, match="no memory"):
        network.train(X, y, np.arange(10), batch_size=5, **schedule)
    monkeypatch.undo()
    network.train(X, y, np.arange(10), batch_size=5, **schedule)
    assert network.tally[1] == 10


SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=0.05)


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_one_asynchronous_thread_is_serial_training(parallel, batch_size):
    rng = np.random.default_rng(6)
    X, y = random_windows(60, 50, 3, rng)
    networks = []
    for mode in ("rows", parallel):
        network = random_network(50, 3, 7, 4, True, "float32", np.random.default_rng(7))
        network.parallel = mode
        network.train(X, y, np.arange(60), batch_size=batch_size, **SCHEDULE)
        network.settle()
        networks.append(network)
    for got, want in zip(*map(parameters, networks), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(networks[0].tally, networks[1].tally)


@pytest.mark.parametrize("parallel", ["async", "locked"])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_asynchronous_threads_lose_no_count(parallel, n_threads):
    # Part of an update may be lost; an example's loss, its place in the schedule
    # and the weight decay's clock never are.
    rng = np.random.default_rng(8)
    network = random_network(50, 3, 7, 4, False, "float64", rng, n_threads)
    network.parallel = parallel
    X, y = random_windows(2000, 50, 3, rng)
    network.train(
        X, y, np.arange(2000), batch_size=3, learning_rate_init=0.01,
        learning_rate_decay=0.0, alpha=0.05,
    )  # fmt: skip
    assert network.tally[1] == 2000
    assert network.tally[2] == pytest.approx(-0.01 * 0.05 * 2000, rel=1e-2)
    assert 0 < network.tally[0] < np.inf
    assert all(np.isfinite(array).all() for array in parameters(network))


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
        network.train(X, y, index, batch_size=5, **SCHEDULE)

    train(15)
    network_teams = [worker.team for worker in network._workers]
    monkeypatch.setattr(_network, "train", fail_in_one)
    started = time.monotonic()
    with pytest.raises(MemoryError if why == "error" else KeyboardInterrupt):
        train(10_000_000)
    took = time.monotonic() - started
    left = [array.copy() for array in parameters(network)]
    seen = network.tally[1]
    time.sleep(0.05)
    for got, want in zip(parameters(network), left, strict=True):
        np.testing.assert_array_equal(got, want)
    assert 15 < seen == network.tally[1]
    assert took < 5  # of some minutes
    monkeypatch.undo()
    train(15)
    assert network.tally[1] == seen + 15


def test_shards_know_what_the_whole_knows():
    rng = np.random.default_rng(9)
    network = random_network(50, 3, 7, 4, True, "float64", rng)
    X, y = random_windows(30, 50, 3, rng)
    arrays = parameters(network)
    for first, stop in [(0, 50), (0, 20), (20, 41), (41, 50)]:
        want = reference.score(*arrays[:3], arrays[3][first:stop], X, y, first=first)
        shard = random_network(50, 3, 7, 4, True, "float64", rng)
        shard.C, shard.H, shard.d = network.C, network.H, network.d
        shard.E = network.E[first:stop]
        np.testing.assert_allclose(shard._totals(X, y, first=first), want, rtol=1e-12)
