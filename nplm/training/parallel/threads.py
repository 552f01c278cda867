"""Threads: how many, how they are run, and BLAS's own (the only limit on those)."""

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

__all__ = ["Threads", "blas_libraries", "blas_threads", "n_threads"]

T = TypeVar("T")
SECONDS_A_WAIT = 0.05  # for threads, before signals are looked at
MAX_THREADS = 256  # as many members as a Team has room for


def n_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`, as joblib counts them: None is 1, -1 all cores.

    Inside a worker of joblib, such as one of a parallel grid search, no more
    than the worker's share of the cores: the search would otherwise run threads
    by the square of `n_jobs`. A worker that is a thread has one.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0: give 1 or more threads, or -1 for all cores.")
    n = int(effective_n_jobs(1 if n_jobs is None else n_jobs))
    if n > MAX_THREADS:
        raise ValueError(
            f"n_jobs={n_jobs}: one fit uses at most {MAX_THREADS} threads."
        )
    backend, _ = get_active_backend()
    if backend.nesting_level:
        n = min(n, joblibs_limit(backend.MAX_NUM_THREADS_VARS))
    return n


def joblibs_limit(variables: Sequence[str]) -> int:
    """Threads that joblib lets a worker run, from the environment it made for it.

    In a worker process it sets all of these variables: to the share, but where the
    user has set one already. In a worker thread nothing tells the share.
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
    # Made once, for a search of the loaded libraries takes milliseconds.
    return ThreadpoolController()


def blas_libraries() -> list[str]:
    """Name and version of every BLAS that is loaded, and the threads it may run."""
    return [
        f"{library['internal_api']} {library['version']} "
        f"({library.get('architecture', 'any processor')}, "
        f"threads: {library['num_threads']})"
        for library in _controller().select(user_api="blas").info()
    ]


class _Inside:
    """Who is inside of `blas_threads`."""

    lock = Lock()
    number = 0
    limit: Any = None


def _forget_the_others() -> None:
    """Begin anew in a fork: the thread that holds the lock is not in it."""
    if _Inside.number > 0:
        _Inside.limit.restore_original_limits()
    _Inside.lock, _Inside.number = Lock(), 0


os.register_at_fork(after_in_child=_forget_the_others)


@contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Context in which every BLAS library uses `n` threads.

    The number is the whole process's: while several threads are inside, it is the
    first one's, and the last one out puts back what was there before.
    """
    with _Inside.lock:
        if _Inside.number == 0:
            _Inside.limit = _controller().limit(limits=n, user_api="blas")
        _Inside.number += 1
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.number -= 1
            if _Inside.number == 0:
                _Inside.limit.restore_original_limits()


class Threads:
    """A few threads that run kernels at once; these give the GIL away.

    No OpenMP: nothing to clash with the run-time library of another package,
    with a fork, or with joblib's workers. Each call starts its threads, which takes
    less than 0.1 ms, and none outlives it.
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
        """Run ``work(part)`` for every part, at once or in turn, and wait for all.

        On an error or an interrupt `give_up` must make those at work return. None
        runs any more when this raises, and none begins later. When the system cannot
        start a thread the error is a MemoryError.
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
        """Run ``work(0)`` to ``work(n - 1)``, which wait for each other, at once.

        `give_up` must make them return when one of them will never come. None
        runs any more when this returns or raises: the first error, if any did. When the
        system cannot start a thread the error is a MemoryError.
        """

        def run(i: int) -> None:
            try:
                work(i)
            except BaseException:
                give_up()
                raise

        _run(run, range(1, n), n - 1, lambda: run(0), give_up)

    def split(self, n: int, block: int, most: int | None = None) -> list[slice]:
        """Cut range(n) into a part a thread, or more if `most` blocks are one's limit.

        Blocks are whole, but for the last.
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
    """Let n new threads do the parts while this one does its own work.

    Only locks and queues that are written in C: an interrupt in the midst of those of
    `threading` and `concurrent.futures` leaves them locked for good.
    """
    waiting, ended = deque(parts), SimpleQueue[BaseException | None]()
    # A thread at work holds its lock. After an error all are held, and a thread that
    # begins only then finds that it has nothing to do.
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
        del error  # it would hold this frame, and its arrays, in a cycle


def _start(serve: Callable[[LockType], None], lock: LockType, n: int) -> None:
    try:
        start_new_thread(serve, (lock,))
    except RuntimeError as error:
        # Python has no class of its own for it.
        if "can't start new thread" not in str(error):
            raise
        raise MemoryError(
            f"the system cannot start {n} more threads: lower n_jobs, or raise its "
            "limits on memory and threads"
        ) from error


def _next(ended: SimpleQueue[BaseException | None]) -> BaseException | None:
    while True:
        # An interrupt that another thread hears of wakes nobody.
        with suppress(Empty):
            return ended.get(timeout=SECONDS_A_WAIT)
