"""Threads that train a network: when one fails, is interrupted, or is alone."""

import _thread
import threading
import time

import numpy as np
import pytest

from nplm._kernels.neural import _network
from tests.helpers.networks import random_network, random_windows, solver_of, weights_of


def test_failed_thread_releases_the_others(monkeypatch):
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
@pytest.mark.parametrize("n_threads", [2, 5])
def test_asynchronous_threads_count_all_examples(parallel, n_threads):
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
    network_teams = list(network.sharing(5).teams)
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
