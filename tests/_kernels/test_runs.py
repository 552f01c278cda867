"""Packing, sorting, counting and merging rows of n-grams, against NumPy twins."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm._kernels.ngrams import _runs
from tests.helpers import text
from tests.reference import ngrams as reference

# (order, n_bits): from several words in a 64-bit number to more than three numbers.
CASES = [(2, 1), (3, 4), (5, 7), (5, 16), (4, 25), (6, 21), (7, 31), (9, 30)]


def stream_of(n_bits, n=400):
    words = np.minimum(text(n, n_words=1 << 30), (1 << n_bits) - 1)
    words[::7] = (1 << n_bits) - 1
    return words.astype(np.int32)


def packed(module, order, n_bits):
    stream = stream_of(n_bits)
    width = -(-order // (64 // n_bits))
    rows = np.empty((len(stream) - order + 1, width), dtype=np.uint64)
    module.pack_windows(stream, order - 1, 0, n_bits, rows)
    return rows


def counted(module, order, n_bits, room):
    rows = packed(module, order, n_bits)
    spare = np.empty_like(rows)
    if module.sort_rows(rows, spare, order, n_bits):
        rows = spare
    parts, at = [], 0
    while at < len(rows):
        out = np.empty((room, rows.shape[1] + 1), dtype=np.uint64)
        at, n = module.count_rows(rows, at, out)
        assert 0 < n <= room
        parts.append(out[:n])
    return rows, np.concatenate(parts)


@pytest.mark.parametrize(("order", "n_bits"), CASES)
def test_windows_are_packed_sorted_and_counted_as_by_twins(order, n_bits):
    for room in (9, 1000):
        fast, naive = (
            counted(module, order, n_bits, room) for module in (_runs, reference)
        )
        assert_array_equal(fast[0], naive[0])
        assert_array_equal(fast[1], naive[1])
        assert fast[1][:, -1].sum() == len(fast[0])


@pytest.mark.parametrize(("order", "n_bits"), CASES)
def test_tables_are_packed_and_sorted_with_their_counts(order, n_bits):
    stream = stream_of(n_bits)
    stream[5::11] = 0  # the boundary
    ngrams = np.lib.stride_tricks.sliding_window_view(stream, order).copy()
    counts = np.arange(len(ngrams))
    width = -(-order // (64 // n_bits))
    found = []
    for module in (_runs, reference):
        rows = np.empty((len(ngrams), width + 1), dtype=np.uint64)
        module.pack_counted(ngrams, counts, 0, n_bits, rows)
        windows = np.empty((len(ngrams), width), dtype=np.uint64)
        module.pack_windows(stream, order - 1, 0, n_bits, windows)
        assert_array_equal(rows[:, :-1], windows)
        spare = np.empty_like(rows)
        if module.sort_rows(rows, spare, order, n_bits):
            rows = spare
        found.append(rows)
    assert_array_equal(*found)
    assert sorted(found[0][:, -1].tolist()) == counts.tolist()


@pytest.mark.parametrize("n_runs", [1, 2, 5])
@pytest.mark.parametrize("room", [1, 3, 50])
def test_runs_are_merged_and_equal_rows_added_up(n_runs, room):
    rng = np.random.default_rng(n_runs)
    runs = []
    for _ in range(n_runs):
        keys = np.unique(rng.integers(0, 40, (rng.integers(1, 30), 2)), axis=0)
        counts = rng.integers(1, 9, (len(keys), 1))
        runs.append(np.concatenate([keys, counts], axis=1).astype(np.uint64))
    whole = np.concatenate(runs)
    keys, which = np.unique(whole[:, :2], axis=0, return_inverse=True)
    counts = np.bincount(which.ravel(), whole[:, 2].astype(float)).astype(np.uint64)
    for module in (_runs, reference):
        buffers = np.zeros((n_runs, 4, 3), dtype=np.uint64)
        at, end = np.zeros((2, n_runs), dtype=np.int64)
        rest = [np.array_split(run, range(4, len(run), 4)) for run in runs]

        def fill(r, rest=rest, buffers=buffers, at=at, end=end):
            if rest[r]:
                part = rest[r].pop(0)
                buffers[r, : len(part)], at[r], end[r] = part, 0, len(part)

        for r in range(n_runs):
            fill(r)
        heap = np.arange(n_runs, dtype=np.int32)
        _runs.make_heap(buffers, at, heap)
        out = np.empty((room, 3), dtype=np.uint64)
        found, n, n_live = [], 0, n_runs
        while n_live:
            n, n_live, ended = module.merge_runs(buffers, at, end, heap, n_live, out, n)
            if ended >= 0:
                fill(ended)
            else:
                found.append(out[:n].copy())
                n = 0
        found = np.concatenate([*found, out[:n]])
        assert_array_equal(found, np.column_stack([keys, counts]))
