"""Threads: how many, how they are run, and BLAS's own (the only limit on those)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Self, TypeVar

import scipy.linalg.cython_blas  # noqa: F401 (loads the BLAS that the kernels call)
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = ["Threads", "blas_libraries", "blas_threads", "n_threads"]

T = TypeVar("T")
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

    No OpenMP: nothing to clash with the run-time library of another package, with a
    fork, or with joblib's workers. Nor joblib, which may run fewer threads than asked
    for, one after the other, though they wait for each other, and looks for the end of
    a call every 10 ms. The caller is one of them, and as a context this keeps the
    others from call to call.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self.n, thread_name_prefix="nplm")
        return self

    def __exit__(self, *error: object) -> None:
        assert self._pool is not None
        self._pool.shutdown()
        self._pool = None

    def map(self, work: Callable[[T], None], parts: Iterable[T]) -> None:
        """Run ``work(part)`` for every part, a thread one after another.

        After an error or an interrupt no other part begins, and when this raises none
        runs any more.
        """
        left = deque(parts)

        def run(thread: int) -> None:
            while left:
                try:
                    part = left.popleft()
                except IndexError:  # another thread has it
                    return
                work(part)

        self.abreast(run, min(self.n, len(left)), give_up=left.clear)

    def abreast(
        self, work: Callable[[int], None], n: int, *, give_up: Callable[[], None]
    ) -> None:
        """Run ``work(0)`` to ``work(n - 1)``, which may wait for each other, at once.

        `give_up` must make them return when one of them will never come. None
        runs any more when this returns or raises: the first error, if any did.
        """

        def run(i: int) -> None:
            try:
                work(i)
            except BaseException:
                give_up()
                raise

        if self._pool is None and n > 1:
            with self:
                self.abreast(work, n, give_up=give_up)
            return
        futures: list[Future[None]] = []
        try:
            for i in range(1, n):
                assert self._pool is not None
                futures.append(self._pool.submit(run, i))
            if n > 0:
                run(0)
            for future in as_completed(futures):
                future.result()
        except BaseException:
            give_up()
            wait(futures)
            raise

    def split(self, n: int, block: int, most: int | None = None) -> list[slice]:
        """Cut range(n) into a part a thread, or more if `most` blocks are one's limit.

        Blocks are whole, but for the last.
        """
        blocks = -(-n // block)
        size = min(-(-blocks // self.n), most or blocks) * block
        return [slice(i, min(n, i + size)) for i in range(0, n, size)]
