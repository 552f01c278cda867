"""Thread counts, alone and inside joblib's workers."""

import os
import signal
import threading
import time
from threading import Lock
from unittest.mock import patch

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.model_selection import GridSearchCV
from threadpoolctl import ThreadpoolController, threadpool_info

from nplm import windows
from nplm._kernels.neural import _network
from nplm.models.training.parallel import threads as module
from nplm.models.training.parallel.threads import (
    Threads,
    blas_threads,
    joblibs_limit,
    n_threads,
)
from tests.helpers import paper_lm


def test_n_jobs_as_joblib_counts():
    assert n_threads(None) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == len(os.sched_getaffinity(0))
    with pytest.raises(ValueError, match="n_jobs=0: pass 1 or more threads"):
        n_threads(0)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_worker_uses_its_share_of_the_cores(backend):
    workers = len(os.sched_getaffinity(0))
    if workers == 1:
        pytest.skip("one core has no share to keep to")
    for n_jobs in (-1, workers):
        counts = Parallel(workers, backend=backend)(
            delayed(n_threads)(n_jobs) for _ in range(2)
        )
        assert counts == [1, 1]


class Counter:
    """Wrap the training kernel, and count the threads that run it concurrently."""

    def __init__(self):
        self.kernel, self.lock = _network.train, Lock()
        self.now = self.most = 0

    def __call__(self, *args, **kwargs):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)
        self.kernel(*args, **kwargs)
        with self.lock:
            self.now -= 1


def at_once(parallel, backend=None):
    """Return how many threads train at once in a search with two workers, or a fit."""
    X, y = windows(np.tile(np.arange(5), 100), 2)
    lm = paper_lm(n_words=5, n_hidden=2, embedding_dim=2, max_iter=2, n_jobs=2)
    lm.set_params(parallel=parallel, batch_size=4)
    with patch.object(_network, "train", Counter()) as counter:
        if backend is None:
            lm.fit(X, y)
        else:
            search = GridSearchCV(lm, {"n_hidden": [2, 3]}, cv=2, n_jobs=2, refit=False)
            with parallel_config(backend):
                search.fit(X, y)
    return counter.most


@pytest.mark.parametrize("parallel", ["sync", "async", "locked"])
def test_a_search_with_threads_runs_no_more_than_its_own(parallel):
    assert at_once(parallel) == 2
    assert at_once(parallel, "threading") == 2
    workers = Parallel(2, backend="loky")
    share = max(1, joblib.cpu_count() // 2)
    assert max(workers(delayed(at_once)(parallel) for _ in range(2))) <= share


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_omp_num_threads_of_the_user_is_not_the_share(monkeypatch, backend):
    monkeypatch.setenv("OMP_NUM_THREADS", "64,2")
    share = max(1, joblib.cpu_count() // 2) if backend == "loky" else 1
    counts = Parallel(2, backend=backend)(delayed(n_threads)(64) for _ in range(2))
    assert counts == [share, share]


def test_the_share_is_the_least_of_the_limits(monkeypatch):
    for one, other, share in [
        ("8", "4", 4), ("1", "4", 1), ("8,2", "9", 8), ("many", "4", 4), ("", "0", 1)
    ]:  # fmt: skip
        monkeypatch.setenv("ONE", one)
        monkeypatch.setenv("OTHER", other)
        assert joblibs_limit(["ONE", "OTHER"]) == share
        assert joblibs_limit(["ONE", "OTHER", "UNSET"]) == 1


def test_inner_max_num_threads_is_the_share():
    with parallel_config("loky", inner_max_num_threads=3):
        assert Parallel(2)(delayed(n_threads)(64) for _ in range(2)) == [3, 3]


def n_blas_threads():
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert blas
    return {lib["num_threads"] for lib in blas}


def test_blas_threads_are_limited_in_every_library():
    with blas_threads(1):
        assert n_blas_threads() == {1}


def test_blas_threads_are_put_back_by_the_last_of_several_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        first, second = blas_threads(1), blas_threads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert n_blas_threads() == {1}
        second.__exit__(None, None, None)
        assert n_blas_threads() == {2}


def test_parts_are_whole_blocks_that_cover_everything():
    for n, block, threads in [(1, 4, 3), (100, 16, 2), (33, 16, 4), (7, 1, 3)]:
        parts = Threads(threads).split(n, block)
        assert len(parts) <= threads
        short = Threads(threads).split(n, block, 1)
        assert len(short) == -(-n // block)
        assert [i for part in short for i in range(n)[part]] == list(range(n))
        assert [i for part in parts for i in range(n)[part]] == list(range(n))
        assert all((p.stop - p.start) % block == 0 for p in parts[:-1])


def open_files():
    return len(os.listdir("/proc/self/fd"))


def n_running():
    return len(os.listdir("/proc/self/task"))


def threads_end(n_before, seconds=5):
    """Return whether the number of threads soon falls to that of before."""
    until = time.monotonic() + seconds
    while n_running() > n_before and time.monotonic() < until:
        time.sleep(0.005)
    return n_running() <= n_before


@pytest.mark.parametrize("n", [2, 4])
def test_threads_run_every_part_once(n):
    threads, seen, n_before = Threads(n), [], n_running()
    threads.map(seen.append, range(50))
    assert sorted(seen) == list(range(50))
    threads.abreast(seen.append, n, give_up=lambda: None)
    assert sorted(seen[50:]) == list(range(n))
    assert threads_end(n_before)


def test_single_thread_is_the_caller():
    seen = []
    Threads(1).map(lambda part: seen.append(threading.get_ident()), range(3))
    assert seen == 3 * [threading.get_ident()]


@pytest.mark.parametrize("how", ["map", "abreast"])
@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()], ids=repr)
def test_threads_end_after_an_error(how, error):
    threads, stop = Threads(3), threading.Event()
    n_files, n_before = open_files(), n_running()

    def work(i):
        if i == 1:
            raise error
        assert stop.wait(10)

    for _ in range(20):
        stop.clear()
        with pytest.raises(type(error)) as raised:
            if how == "map":
                threads.map(work, range(3), give_up=stop.set)
            else:
                threads.abreast(work, 3, give_up=stop.set)
    assert threads_end(n_before)
    assert open_files() == n_files
    assert raised.value is error


@pytest.mark.parametrize("parallel", ["sync", "async"])
def test_interrupted_scores_leave_no_threads_or_files(parallel):
    X, y = windows(np.random.default_rng(0).integers(0, 300, 60_000), 2)
    lm = paper_lm(
        n_words=300, n_hidden=30, max_iter=1, n_jobs=2, parallel=parallel,
        random_state=0,
    ).fit(X[:500], y[:500])  # fmt: skip
    n_files, n_before, n_interrupts = open_files(), n_running(), 0
    expected = lm.log_prob(X[:500], y[:500])
    for i in range(15):
        timer = threading.Timer(0.002 * (i + 1), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            while True:
                lm.log_prob(X, y)
        except KeyboardInterrupt:
            n_interrupts += 1
    assert n_interrupts == 15
    assert threads_end(n_before)
    assert open_files() == n_files
    np.testing.assert_array_equal(lm.log_prob(X[:500], y[:500]), expected)


@pytest.mark.parametrize("n_started", [0, 1])
@pytest.mark.parametrize("how", ["map", "abreast"])
def test_a_thread_that_cannot_start_is_a_memory_error(monkeypatch, how, n_started):
    threads, stop, start = Threads(4), threading.Event(), module.start_new_thread
    begun = []

    def fail(*args):
        if len(begun) >= n_started:
            raise RuntimeError("can't start new thread")
        begun.append(args)
        start(*args)

    done = []

    def work(i):
        stop.wait(10)
        done.append(i)

    monkeypatch.setattr(module, "start_new_thread", fail)
    with pytest.raises(MemoryError, match="lower n_jobs, or raise"):
        if how == "map":
            threads.map(work, range(4), give_up=stop.set)
        else:
            threads.abreast(work, 4, give_up=stop.set)
    monkeypatch.undo()
    n_done = len(done)
    assert n_done <= n_started
    time.sleep(0.02)
    assert len(done) == n_done  # none starts later
    threads.map(done.append, range(4))
    assert len(done) == n_done + 4
