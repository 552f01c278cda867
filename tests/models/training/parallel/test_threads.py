"""The number of threads, and what ends them: errors, signals, too little memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import SequentialBackend
from threadpoolctl import ThreadpoolController, threadpool_info

from nplm import windows
from nplm.models.training.parallel.blas import blas_threads
from nplm.models.training.parallel.threads import (
    Threads,
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    threads.run_together(seen.append, n, give_up=lambda: None)
    assert sorted(seen[50:]) == list(range(n))
    assert threads_end(n_before)


def test_single_thread_is_the_caller():
    seen = []
    Threads(1).map(lambda part: seen.append(threading.get_ident()), range(3))
    assert seen == 3 * [threading.get_ident()]


def run(how, work, n, give_up):
    if how == "map":
        Threads(n).map(work, range(n), give_up=give_up)
    else:
        Threads(n).run_together(work, n, give_up=give_up)


both_ways = pytest.mark.parametrize("how", ["map", "run_together"])


@both_ways
@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()], ids=repr)
def test_threads_end_after_an_error(how, error):
    stop, n_files, n_before = threading.Event(), open_files(), n_running()

    def work(i):
        if i == 1:
            raise error
        assert stop.wait(10)

    for _ in range(20):
        stop.clear()
        with pytest.raises(type(error)) as raised:
            run(how, work, 3, stop.set)
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


def test_no_part_begins_after_an_error():
    stop, done = threading.Event(), []

    def work(i):
        if i == 0:
            raise ValueError("bad")
        assert stop.wait(10)
        done.append(i)

    with pytest.raises(ValueError, match="bad"):
        Threads(2).map(work, range(50), give_up=stop.set)
    assert len(done) <= 1


@pytest.mark.parametrize("n_started", [0, 1, 3])
@both_ways
def test_a_thread_that_cannot_start_is_a_memory_error(monkeypatch, how, n_started):
    stop, start = threading.Event(), threading.Thread.start
    n_before, begun, done = n_running(), [], []

    def fail(thread):
        if len(begun) == n_started:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    def work(i):
        assert stop.wait(10)
        done.append(i)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(MemoryError, match="lower n_jobs, or raise"):
        run(how, work, 4, stop.set)
    monkeypatch.undo()
    assert len(done) <= n_started
    assert not any(thread.is_alive() for thread in begun)
    assert threads_end(n_before)


def test_system_without_another_thread_is_told(monkeypatch):
    refused = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
    with pytest.raises(MemoryError, match="cannot start another thread: lower n_jobs"):
        Threads(2).map(print, "ab")


class HandlerError(Exception):
    """Raised by a handler of a signal."""


def raise_it(number, frame):
    raise HandlerError(number)


@pytest.fixture(params=[signal.SIGINT, signal.SIGALRM, signal.SIGTERM])
def handled(request):
    """A signal whose handler raises."""
    before = signal.signal(request.param, raise_it)
    yield request.param
    signal.signal(request.param, before)


@pytest.mark.parametrize("receiver", ["process", "another thread"])
@both_ways
def test_exception_of_a_signal_handler_is_raised_within_a_tenth_of_a_second(
    handled, how, receiver
):
    stop, sent, seconds, n_before = threading.Event(), [], [], n_running()

    def work(i):
        if i == 1:
            time.sleep(0.03)  # until the main thread waits
            sent.append(time.monotonic())
            if receiver == "process":
                os.kill(os.getpid(), handled)
            else:
                signal.pthread_kill(threading.get_ident(), handled)
        assert stop.wait(10)

    for _ in range(5):
        stop.clear()
        with pytest.raises(HandlerError):
            run(how, work, 2, stop.set)
        seconds.append(time.monotonic() - sent[-1])
        assert signal.getsignal(handled) is raise_it
    assert min(seconds) < 0.1
    assert threads_end(n_before)


def test_interrupt_is_raised_though_a_thread_failed_before():
    begun, stop = threading.Event(), threading.Event()

    def work(i):
        if i == 0:
            assert begun.wait(10)
            raise ValueError("bad")
        begun.set()
        assert stop.wait(10)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        Threads(2).run_together(work, 2, give_up=stop.set)


def test_interrupt_is_raised_once_all_have_finished():
    together, done = threading.Barrier(2, timeout=10), []

    def work(i):
        if i == 0:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        together.wait()
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        Threads(2).run_together(work, 2, give_up=together.abort, finish=True)
    assert sorted(done) == [0, 1]


def test_handler_that_raises_nothing_lets_the_call_go_on():
    seen, done = [], []

    def first(number, frame):
        seen.append(number)
        signal.signal(number, raise_it)  # a second signal shall raise

    before = signal.signal(signal.SIGALRM, first)
    try:
        Threads(2).run_together(
            lambda i: (os.kill(os.getpid(), signal.SIGALRM) if i else None,
                       time.sleep(0.1), done.append(i)),
            2, give_up=done.clear,
        )  # fmt: skip
        assert sorted(done) == [0, 1]
        assert seen == [signal.SIGALRM]
        assert signal.getsignal(signal.SIGALRM) is raise_it
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_fork_within_a_call_is_interrupted():
    """Its handlers raise, as those of any process."""
    codes = []

    def work(i):
        if i == 0:
            child = os.fork()
            if child == 0:
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(5)
                except KeyboardInterrupt:
                    os._exit(7)
                os._exit(1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    Threads(2).run_together(work, 2, give_up=lambda: None)
    assert codes == [7]


def test_call_of_another_thread_is_not_interrupted():
    done, inside = [], threading.Event()

    def work(i):
        inside.set()
        time.sleep(0.1)
        done.append(i)

    def call():
        Threads(2).run_together(work, 2, give_up=done.clear)

    caller = threading.Thread(target=call)
    caller.start()
    with pytest.raises(KeyboardInterrupt):
        assert inside.wait(10)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    caller.join(10)
    assert sorted(done) == [0, 1]


CONTEXTS = {
    "sequential": {"backend": "sequential"},
    "processes": {"prefer": "processes"},
    "loky": {"backend": "loky", "n_jobs": 1, "verbose": 50},
    "threading": {"backend": "threading", "n_jobs": 1},
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_workers_that_wait_for_each_other_meet_in_any_context(capfd, context):
    def meet(n=3):
        together = threading.Barrier(n, timeout=10)
        Threads(n).run_together(lambda i: together.wait(), n, give_up=together.abort)
        return True

    with parallel_config(**CONTEXTS[context]):
        assert meet()
        assert capfd.readouterr() == ("", "")
        nested = Parallel(2, backend="threading", verbose=0)
        assert nested(delayed(meet)() for _ in range(2)) == [True, True]


def test_fit_in_a_sequential_context_has_one_thread():
    X, y = windows(np.tile(np.arange(5), 100), 2)
    lm = paper_lm(n_words=5, n_hidden=2, embedding_dim=2, max_iter=1, random_state=0)
    alone = lm.fit(X, y).log_prob(X, y)
    with parallel_config("sequential"):
        assert n_threads(2) == 1
        lm.set_params(n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(lm.log_prob(X, y), alone)


class Cluster(SequentialBackend):
    """A backend without shared memory, of 64 workers."""

    supports_sharedmem = False

    def effective_n_jobs(self, n_jobs):
        return 64


def test_n_jobs_in_a_context_of_joblib():
    for expected, n_jobs, context in [
        (3, None, {"backend": "threading", "n_jobs": 3}),
        (2, 2, {"backend": "threading", "n_jobs": 3}),
        # Processes are not threads.
        (1, None, {"n_jobs": 3}),
        (1, None, {"backend": "loky", "n_jobs": 3}),
        (1, None, {"backend": Cluster(), "n_jobs": 3}),
        (2, 2, {"backend": Cluster()}),
        (2, 2, {"prefer": "processes"}),
        (1, None, {"backend": "sequential"}),
        (1, 2, {"backend": "sequential"}),
    ]:
        with parallel_config(**context):
            assert n_threads(n_jobs) == expected
    with (
        parallel_config("threading", n_jobs=300),
        pytest.raises(ValueError, match="300: a fit can use at most 256"),
    ):
        n_threads(None)


LATE_IMPORT = """
import sys
from nplm.models.training.parallel.threads import Threads, n_threads

seen = []
threads = Threads(n_threads(1))
threads.map(seen.append, "ab")
threads.run_together(seen.append, 1, give_up=seen.clear)
assert seen == ["a", "b", 0]
assert "joblib" not in sys.modules
Threads(2).map(seen.append, "cd")
assert "joblib" in sys.modules
"""


@pytest.mark.slow
def test_joblib_is_imported_when_a_second_thread_starts():
    subprocess.run([sys.executable, "-c", LATE_IMPORT], check=True, timeout=60)


@pytest.mark.parametrize("fails", [False, True])
def test_call_frees_its_arrays_at_once(fails):
    array = np.zeros(3)
    freed = weakref.ref(array)

    def work(i, array=array):
        array += 1
        if fails:
            raise ValueError("bad")

    gc.disable()
    try:
        try:
            Threads(2).map(work, range(2))
        except ValueError:
            assert fails
        del work, array
        assert freed() is None
    finally:
        gc.enable()


def test_results_are_not_polled_for():
    """joblib's own backend of threads takes 10 ms a call."""
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        Threads(2).map(lambda part: time.sleep(0.002), range(2))
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.008
