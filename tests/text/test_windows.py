"""Windows over a stream, and contiguous splits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nplm
from nplm import contiguous_split, windows

STREAMS = st.lists(st.integers(0, 6), min_size=1, max_size=30)


@given(ids=STREAMS, n_context=st.integers(1, 5), boundary=st.sampled_from([None, 0]))
def test_window_is_the_context_of_its_word(ids, n_context, boundary):
    if boundary is None and len(ids) <= n_context:
        with pytest.raises(ValueError, match="too few for a window"):
            windows(ids, n_context)
        return
    X, y = windows(ids, n_context, boundary=boundary)
    first = n_context if boundary is None else 0
    assert y.tolist() == ids[first:]
    for row, at in zip(X.tolist(), range(first, len(ids)), strict=True):
        before = ids[:at]
        if boundary in before:
            last = len(before) - 1 - before[::-1].index(boundary)
            before = before[last:] if boundary is not None else before
        expected = ([boundary] * n_context + before)[-n_context:]
        if boundary is not None:
            inside = [i for i, w in enumerate(expected) if w == boundary]
            cut = inside[-1] if inside else 0
            expected = [boundary] * cut + expected[cut:]
        assert row == expected


@given(ids=STREAMS, history=st.lists(st.integers(0, 6), min_size=5, max_size=9))
def test_history_gives_every_token_a_window(ids, history):
    X, y = windows(ids, 5, history=history)
    whole, _ = windows(history + ids, 5)
    assert y.tolist() == ids
    np.testing.assert_array_equal(X, whole[len(history) - 5 :])


def test_windows_are_read_only_views():
    ids = np.arange(1000, dtype=np.int32)
    X, y = windows(ids, 4)
    assert np.shares_memory(X, ids)
    assert np.shares_memory(y, ids)
    for array in (X, y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    ids[0] = 7  # the caller's array is still writable


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (dict(n_context=0), "n_context must be a whole number from 1.*got 0"),
        (dict(n_context=2.0), "n_context must be a whole number.*got 2.0"),
        (dict(n_context="2"), "n_context must be a whole number.*got '2'"),
        (dict(n_context=2, boundary=0.5), "boundary must be a whole number.*got 0.5"),
        (dict(n_context=2, boundary=10**10), "boundary must be a whole number"),
        (dict(n_context=2, boundary=-1), "boundary must be a whole number"),
        (dict(n_context=2, history=[1]), "history has 1 ids"),
        (dict(n_context=9), "too few for a window of 9"),
        (dict(n_context=2, ids=[]), "ids is empty"),
        (dict(n_context=2, ids=[1, -2, 3]), "ids has -2 at 1"),
        (dict(n_context=2, ids=[[1, 2, 3]]), "ids must have 1 dimension"),
        (dict(n_context=2, ids=["a", "b", "c"]), "Vocabulary"),
        (dict(n_context=2, ids=[1, 2.5, 3]), "ids has 2.5 at 1"),
    ],
)
def test_invalid_windows_parameters_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        windows(**{"ids": [1, 2, 3, 4], **kwargs})


@given(n=st.integers(10, 200), valid=st.floats(0.1, 0.4), test=st.integers(0, 5))
def test_split_parts_are_consecutive(n, valid, test):
    ids = np.arange(n)
    parts = contiguous_split(ids, valid=valid, test=test)
    assert np.concatenate(parts).tolist() == ids.tolist()
    assert len(parts[1]) == round(valid * n)
    assert len(parts[2]) == test


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (dict(valid=0.01), "valid=0.01 of 10 tokens rounds to 0"),
        (dict(valid=5, test=5), "leave nothing to train on"),
        (dict(valid=1.5), "valid=1.5 must be"),
        (dict(valid=-1), "valid=-1 must be"),
        (dict(valid=True), "valid=True must be"),
        (dict(test=float("nan")), "test=nan must be"),
        (dict(test="a"), "test='a' must be"),
    ],
)
def test_invalid_splits_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        contiguous_split(range(10), **sizes)


@pytest.mark.slow
def test_import_of_unbuilt_sources_names_the_command(tmp_path):
    shutil.copytree(
        Path(nplm.__file__).parent,
        tmp_path / "nplm",
        ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"),
    )
    # Without site-packages even NumPy is missing.
    run = subprocess.run(
        [sys.executable, "-S", "-c", "import nplm"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith(
        "ImportError: nplm is not built for this Python: run `python"
    )
