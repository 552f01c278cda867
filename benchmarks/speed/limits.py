"""Measure what this machine can do at most, to set what was achieved beside it.

Needs a C compiler (cc), as building nplm from its sources does.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SECONDS = 0.05  # of a measurement, of which the best of several counts
REPEATS = 8


# Compiler options: the instructions that kernels of a tier may use.
TIERS = {"avx2": ["-march=native", "-mno-avx512f"], "plain": []}


@cache
def _library(tier: str | None = None) -> ctypes.CDLL:
    source = Path(__file__).with_name("limits.c")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "limits.so")
        flags = ["-O2", "-shared", "-fPIC"]
        flags += TIERS.get(tier or "", ["-march=native"])
        subprocess.run(["cc", *flags, source, "-o", built], check=True)
        library = ctypes.CDLL(str(built))
    for name in ("float32_operations", "bfloat16_operations"):
        getattr(library, name).restype = ctypes.c_double
        getattr(library, name).argtypes = [ctypes.c_int64]
    for name in ("read_all", "change_all"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_int64]
    return library


@cache
def gflops(precision: str, threads: int = 1, tier: str | None = None) -> float:
    """Most multiplications and additions a second, in 10^9; 0 without instructions.

    With the instructions of a tier of kernels, or with all that the processor has.
    """
    run = getattr(_library(tier), f"{precision}_operations")
    rounds = 4_000_000

    def work(_: int) -> float:
        return float(run(rounds))

    return _best(work, threads)


@cache
def bandwidth(n_bytes: int, threads: int = 1) -> tuple[float, float]:
    """GB/s of reading, and of changing in place (both ways), arrays of this size.

    The threads share the array, a part each.
    """
    library = _library()
    parts = [aligned_zeros(max(1024, n_bytes // 4 // threads)) for _ in range(threads)]
    for part in parts:
        part += 1  # in memory of its own

    def repeatedly(run: Callable[[int, int], None], moves: int) -> float:
        times = max(1, (1 << 28) // n_bytes)

        def work(i: int) -> float:
            for _ in range(times):
                run(parts[i].ctypes.data, parts[i].size)
            return float(moves * parts[i].nbytes * times)

        return _best(work, threads)

    return repeatedly(library.read_all, 1), repeatedly(library.change_all, 2)


def aligned_zeros(size: int) -> NDArray[np.float32]:
    """Float32 zeros that begin with a cache line, so that no vector straddles two."""
    memory = np.zeros(size + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + size]


def clock(threads: int) -> Callable[[], float]:
    """Give one thread's own time, or else time as it passes.

    Other programs that take turns with one thread cost it no time of its own.
    """
    return time.process_time if threads == 1 else time.perf_counter


def _best(work: Callable[[int], float], threads: int) -> float:
    """Most of what the threads together get done in a nanosecond."""
    best, now = 0.0, clock(threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS):
            done, started = 0.0, now()
            while now() - started < SECONDS:
                done += sum(pool.map(work, range(threads)))
            best = max(best, done / (now() - started) / 1e9)
    return best
