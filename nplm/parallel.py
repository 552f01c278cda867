"""Threads: how many, and BLAS's own (the only place that limits them)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401 (loads the BLAS that the kernels call)
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads", "n_threads"]


def n_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`, as joblib counts them.

    None is 1; -1 is all cores, but 1 inside a worker of a parallel grid
    search, which would otherwise start threads by the square of the cores.
    """
    return int(effective_n_jobs(1 if n_jobs is None else n_jobs))


@cache
def _controller() -> ThreadpoolController:
    # NumPy's and SciPy's wheels each carry a BLAS: the controller finds both.
    # Made once, for a search of the loaded libraries takes milliseconds.
    return ThreadpoolController()


def blas_threads(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Context in which every BLAS library uses the threads of `n_jobs`."""
    return _controller().limit(limits=n_threads(n_jobs), user_api="blas")
