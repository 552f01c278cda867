"""Tiles follow the caches of the processor; no bit of any result does."""

import os
import subprocess
import sys

import numpy as np
import pytest

from nplm._kernels.neural import _caches
from nplm._kernels.neural._caches import CHUNK, MOST_ROWS, Caches
from tests.helpers.networks import random_network, random_windows, solver_of, weights_of

KB, MB = 1 << 10, 1 << 20
SMALLEST = Caches(16 * KB, 1, 1)
LARGEST = Caches(64 * KB, 64 * MB, 512 * MB)


@pytest.mark.parametrize("level_2", [256 * KB, 512 * KB, MB, 2 * MB])
@pytest.mark.parametrize("stride", [16, 112, 304, 576, 10_000])
@pytest.mark.parametrize("columns", [16, 128, 512, 2048])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_tile_fits_a_quarter_of_the_second_level_cache(
    level_2, stride, columns, itemsize
):
    rows = Caches(32 * KB, level_2, 8 * MB).tile_rows(stride, columns, itemsize)
    left = level_2 - 2 * columns * stride * itemsize

    def fits(rows):
        logits = rows * columns * itemsize
        return rows * stride * itemsize <= level_2 / 4 and logits <= left / 4

    assert rows % CHUNK == 0 and CHUNK <= rows <= MOST_ROWS
    assert rows == CHUNK or fits(rows)
    assert rows == MOST_ROWS or not fits(rows + CHUNK)


def test_matrix_stays_in_the_last_level_cache():
    assert Caches(32 * KB, MB, 32 * MB).holds(32 * MB)
    assert not Caches(32 * KB, MB, 32 * MB).holds(32 * MB + 1)
    assert Caches(32 * KB, 12 * MB, 0).holds(12 * MB)  # no third level


def test_the_caches_of_this_processor():
    found = _caches.found()
    assert 4 * KB <= found.level_1 <= found.level_2 < found.level_3 * 64


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
def test_caches_match_the_system():
    for level, mine in ((1, "level_1"), (2, "level_2")):
        folder = "/sys/devices/system/cpu/cpu0/cache"
        command = (
            f"for i in {folder}/index*; do [ $(cat $i/level) = {level} ] && "
            "[ $(cat $i/type) != Instruction ] && cat $i/size; done"
        )
        if not os.path.isdir(folder):
            pytest.skip("no sysfs")
        said = subprocess.run(command, shell=True, capture_output=True, text=True)
        sizes = {"K": KB, "M": MB}
        first = said.stdout.split()[0]
        assert getattr(_caches.found(), mine) == int(first[:-1]) * sizes[first[-1]]


def results(caches, precision, batch_size, monkeypatch):
    """All that a network learns and says on a processor with such caches."""
    monkeypatch.setattr(_caches, "found", lambda: caches)
    rng = np.random.default_rng(3)
    network = random_network(
        *(937, 3, 19, 23, True), precision, rng, solver=solver_of(alpha=1e-3)
    )
    X, y = random_windows(90, 937, 3, rng)
    network.train(X, y, np.arange(90), batch_size)
    network.settle()
    learned = [array.tobytes() for array in weights_of(network).arrays()]
    said = network.log_prob(X, y).tobytes(), network.predict_proba(X[:7]).tobytes()
    return network.loss, learned, said


@pytest.mark.parametrize("batch_size", [1, 32])
def test_no_bit_depends_on_the_caches(batch_size, precision, monkeypatch):
    if os.environ["NPLM_TIER"] == "blas":
        pytest.skip("in which order BLAS adds is its own business")
    assert SMALLEST.tile_rows(96, 32, 4) == CHUNK
    assert LARGEST.tile_rows(96, 32, 4) == MOST_ROWS
    small, large = (
        results(caches, precision, batch_size, monkeypatch)
        for caches in (SMALLEST, LARGEST)
    )
    assert small == large
