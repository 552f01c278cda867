"""Thread counts, alone and inside joblib's workers."""

import os

import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

from nplm.parallel import Threads, blas_threads, n_threads


def test_n_jobs_as_joblib_counts():
    assert n_threads(None) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == len(os.sched_getaffinity(0))
    with pytest.raises(ValueError, match="n_jobs"):
        n_threads(0)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_worker_keeps_to_its_share_of_the_cores(backend):
    workers = len(os.sched_getaffinity(0))
    if workers == 1:
        pytest.skip("one core has no share to keep to")
    for n_jobs in (-1, workers):
        counts = Parallel(workers, backend=backend)(
            delayed(n_threads)(n_jobs) for _ in range(2)
        )
        assert counts == [1, 1]


def test_blas_threads_are_limited_in_every_library():
    with blas_threads(1):
        blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
        assert blas
        assert {lib["num_threads"] for lib in blas} == {1}


def test_parts_are_whole_blocks_that_cover_everything():
    for n, block, threads in [(1, 4, 3), (100, 16, 2), (33, 16, 4), (7, 1, 3)]:
        parts = Threads(threads).split(n, block)
        assert len(parts) <= threads
        assert [i for part in parts for i in range(n)[part]] == list(range(n))
        assert all((p.stop - p.start) % block == 0 for p in parts[:-1])
