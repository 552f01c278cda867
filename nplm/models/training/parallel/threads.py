"""Threads: their number, and how they run kernels."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from nplm.base.exceptions import parameter_error

T = TypeVar("T")
MAX_THREADS = 256  # the capacity of a Team


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads of `n_jobs`, as ``Parallel`` with shared memory.

    -1 is all cores, None is that of ``parallel_config("threading")``, elsewhere 1. In a
    joblib worker the number is at most the worker's share of the cores, and 1 in a
    thread: otherwise a grid search would run `n_jobs` squared threads.
    """
    if n_jobs == 0:
        message = "{n_jobs}: pass 1 or more threads, or -1 for all cores."
        raise parameter_error(message, n_jobs=0)
    if n_jobs == 1:
        return 1
    backend = None
    # Unless it is imported, nothing is configured, and a command starts faster.
    if "joblib" in sys.modules or n_jobs is None or n_jobs < 0:
        from joblib.parallel import get_active_backend

        backend, configured = get_active_backend(prefer="threads", require="sharedmem")
        n_jobs = configured if n_jobs is None else n_jobs
        n_jobs = int(backend.effective_n_jobs(n_jobs))
    n = n_jobs
    if n > MAX_THREADS:
        message = "{n_jobs}: a fit can use at most {0} threads."
        raise parameter_error(message, MAX_THREADS, n_jobs=n)
    if backend is not None and backend.nesting_level:
        n = min(n, joblibs_limit(backend.MAX_NUM_THREADS_VARS))
    return n


def joblibs_limit(variables: Sequence[str]) -> int:
    """Return a joblib worker's share of the threads, which joblib sets in variables."""
    limits = []
    for name in variables:
        # OMP_NUM_THREADS may be a list, from the outermost level inwards.
        outermost = os.environ.get(name, "1").split(",")[0].strip()
        if outermost.isdecimal():
            limits.append(max(1, int(outermost)))
    return min(limits, default=1)


class Threads:
    """A few threads that run kernels concurrently; kernels release the GIL.

    joblib starts the threads of each call, and ends them. There is no OpenMP, which
    could clash with the run-time library of another package, with a fork, or with
    joblib's workers. One thread is the caller's, without joblib.
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
        _run(work, parts, min(self.n, len(parts)), give_up)

    def run_together(
        self,
        work: Callable[[int], None],
        n: int,
        *,
        give_up: Callable[[], None],
        finish: bool = False,
    ) -> None:
        """Run ``work(0)`` to ``work(n - 1)``, which wait for each other, concurrently.

        Errors and interrupts are those of `map`. With `finish`, an interrupt is raised
        once all have done their work.
        """
        _run(work, range(n), n, give_up, finish)

    def split(self, n: int, block: int, most: int | None = None) -> list[slice]:
        """Split range(n) for threads, into parts of at most `most` whole blocks."""
        blocks = -(-n // block)
        size = min(-(-blocks // self.n), most or blocks) * block
        return [slice(i, min(n, i + size)) for i in range(0, n, size)]


def _run(
    work: Callable[[T], None],
    parts: Sequence[T],
    n: int,
    give_up: Callable[[], None],
    finish: bool = False,
) -> None:
    if n > 1:
        # Imported here: only a second thread needs joblib.
        from nplm.models.training.parallel.team import run_in_threads

        run_in_threads(work, parts, n, give_up, finish)
    else:
        for part in parts:
            work(part)
