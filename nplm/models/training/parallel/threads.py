"""Threads: their number, how they run kernels, and the limit on BLAS threads."""

from __future__ import annotations

import os
from _thread import LockType, start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, TypeVar

import scipy.linalg.cython_blas  # noqa: F401 (loads the BLAS that the kernels call)
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from nplm.base import system

__all__ = ["Threads", "blas_libraries", "blas_threads", "n_threads"]

T = TypeVar("T")
POLL_SECONDS = 0.05  # interval of checks for signals while threads run
MAX_THREADS = 256  # the capacity of a Team


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of `n_jobs`, as in joblib: None is 1, -1 all cores.

    In a joblib worker, such as one of a parallel grid search, the number is at
    most the worker's share of the cores: otherwise the search would run `n_jobs`
    squared threads. A worker that is a thread has a share of 1.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0: pass 1 or more threads, or -1 for all cores.")
    n = int(effective_n_jobs(1 if n_jobs is None else n_jobs))
    if n > MAX_THREADS:
        raise ValueError(
            f"n_jobs={n_jobs}: a fit can use at most {MAX_THREADS} threads."
        )
    backend, _ = get_active_backend()
    if backend.nesting_level:
        n = min(n, joblibs_limit(backend.MAX_NUM_THREADS_VARS))
    return n


def joblibs_limit(variables: Sequence[str]) -> int:
    """Return the share of threads that joblib gives a worker, from its environment.

    In a worker process joblib sets all of these variables to the share, except those
    that the user has set. In a worker thread the share is unknown.
    """
    limits = []
    for name in variables:
        # OMP_NUM_THREADS may be a list, from the outermost level inwards.
        outermost = os.environ.get(name, "1").split(",")[0].strip()
        if outermost.isdecimal():
            limits.append(max(1, int(outermost)))
    return min(limits, default=1)


@cache
def _controller() -> ThreadpoolController:
    # NumPy's and SciPy's wheels each carry a BLAS: the controller finds both.
    # Cached, because searching the loaded libraries takes milliseconds.
    return ThreadpoolController()


def blas_libraries() -> list[str]:
    """Return name, version and number of threads of every loaded BLAS."""
    return [
        f"{library['internal_api']} {library['version']} "
        f"({library.get('architecture', 'any processor')}, "
        f"threads: {library['num_threads']})"
        for library in _controller().select(user_api="blas").info()
    ]


class _BlasLimit:
    """The limit of `blas_threads`, and the number of threads in its context."""

    lock = Lock()
    number = 0
    limit: Any = None


def _reset_after_fork() -> None:
    """Reset the limit in a fork, which lacks the thread that may hold the lock."""
    if _BlasLimit.number > 0:
        _BlasLimit.limit.restore_original_limits()
    _BlasLimit.lock, _BlasLimit.number = Lock(), 0


system.SYSTEM.after_fork(_reset_after_fork)


@contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Limit every BLAS library to `n` threads within a context.

    The limit applies to the whole process: while several threads are in the context,
    the first one's limit holds, and the last one restores the previous limit.
    """
    with _BlasLimit.lock:
        if _BlasLimit.number == 0:
            _BlasLimit.limit = _controller().limit(limits=n, user_api="blas")
        _BlasLimit.number += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.number -= 1
            if _BlasLimit.number == 0:
                _BlasLimit.limit.restore_original_limits()


class Threads:
    """A few threads that run kernels concurrently; kernels release the GIL.

    There is no OpenMP, which could clash with the run-time library of another package,
    with a fork, or with joblib's workers. Each call starts its threads, which takes
    less than 0.1 ms, and ends them.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def map(
        self,
        work: Callable[[T], None],
        parts: Sequence[T],
        *,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Run ``work(part)`` for every part, concurrently, and wait for all.

        On an error or an interrupt `give_up` must make running parts return. When this
        raises, no part is running, and none starts later. If the system cannot start a
        thread, the error is a MemoryError.
        """
        n = min(self.n, len(parts))
        if n > 1:
            _run(work, parts, n, lambda: None, give_up)
        else:
            for part in parts:
                work(part)

    def abreast(
        self, work: Callable[[int], None], n: int, *, give_up: Callable[[], None]
    ) -> None:
        """Run ``work(0)`` to ``work(n - 1)``, which wait for each other, concurrently.

        `give_up` must make them return if one of them fails. When this returns, or
        raises the first error, none is running. If the system cannot start a thread,
        the error is a MemoryError.
        """

        def run(i: int) -> None:
            try:
                work(i)
            except BaseException:
                give_up()
                raise

        _run(run, range(1, n), n - 1, lambda: run(0), give_up)

    def split(self, n: int, block: int, most: int | None = None) -> list[slice]:
        """Split range(n) into a part per thread, or parts of at most `most` blocks.

        All blocks but the last are complete.
        """
        blocks = -(-n // block)
        size = min(-(-blocks // self.n), most or blocks) * block
        return [slice(i, min(n, i + size)) for i in range(0, n, size)]


def _run(
    work: Callable[[T], None],
    parts: Sequence[T],
    n: int,
    own: Callable[[], None],
    give_up: Callable[[], None],
) -> None:
    """Run the parts in n new threads, and `own` in this one.

    Locks and queues are those written in C: an interrupt within those of `threading`
    and `concurrent.futures` leaves them locked forever.
    """
    waiting, ended = deque(parts), SimpleQueue[BaseException | None]()
    # A running thread holds its lock. After an error all locks are held, so a thread
    # that starts only then returns at once.
    locks = [Lock() for _ in range(n)]

    def serve(lock: LockType) -> None:
        if not lock.acquire(blocking=False):
            return
        try:
            while True:
                try:
                    part = waiting.popleft()
                except IndexError:
                    break
                work(part)
            ended.put(None)
        except BaseException as error:
            ended.put(error)
        finally:
            lock.release()

    error: BaseException | None = None
    try:
        for lock in locks:
            _start(serve, lock, n)
        own()
        for _ in locks:
            error = _next(ended)
            if error is not None:
                raise error
    except BaseException:
        waiting.clear()
        give_up()
        for lock in locks:
            lock.acquire()
        raise
    finally:
        del error  # avoids a reference cycle with this frame and its arrays


def _start(serve: Callable[[LockType], None], lock: LockType, n: int) -> None:
    try:
        start_new_thread(serve, (lock,))
    except RuntimeError as error:
        # Python has no exception class of its own for it.
        if "can't start new thread" not in str(error):
            raise
        raise MemoryError(
            f"the system cannot start {n} more threads: lower n_jobs, or raise its "
            "limits on memory and threads"
        ) from error


def _next(ended: SimpleQueue[BaseException | None]) -> BaseException | None:
    while True:
        # An interrupt received in another thread does not wake this one.
        with suppress(Empty):
            return ended.get(timeout=POLL_SECONDS)
