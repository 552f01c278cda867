"""The limit on the threads of BLAS libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401 (loads the BLAS that the kernels call)
from threadpoolctl import ThreadpoolController


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


os.register_at_fork(after_in_child=_reset_after_fork)


@contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Limit every BLAS library of the process to `n` threads within a context.

    Of several threads in it, the limit of the first holds for all.
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
