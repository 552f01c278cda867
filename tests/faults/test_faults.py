"""Disks that are full, memory that ends: an error, and nothing lost or half there."""

import io
import os
import re
import resource
import shutil
import subprocess
import sys
import warnings
from contextlib import contextmanager
from errno import EMFILE
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import nplm
from nplm import KneserNeyLM, WordClasses, windows
from nplm.formats import (
    estimate_arpa,
    estimate_binary,
    save_binary,
    write_arpa,
    write_classes,
    write_counts,
    write_vectors,
)
from nplm.models.training import checkpoint as checkpoints
from tests.faults.allocations import WORK
from tests.helpers import neural_lm, paper_lm

N_WORDS = 30
WORDS = [f"w{i}" for i in range(N_WORDS)]
IDS = np.random.default_rng(0).zipf(1.4, 600) % N_WORDS
X, Y = windows(IDS, 2)
SMALL = dict(n_words=N_WORDS, n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)


@cache
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KneserNeyLM(n_words=N_WORDS).fit(X, Y)


def estimated(estimate, path):
    lines = "\n".join(" ".join(WORDS[i] for i in line) for line in IDS.reshape(-1, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimate(
            KneserNeyLM(3), [io.BytesIO(lines.encode())], path, memory="4K", n_jobs=2,
            folder=path.parent.parent,
        )  # fmt: skip


SAVERS = {
    "save": lambda path: nplm.save(model(), path),
    "arpa": lambda path: write_arpa(model(), path, WORDS),
    "arpa.gz": lambda path: write_arpa(model(), path, WORDS),
    "counts": lambda path: write_counts(model(), path, WORDS),
    "classes": lambda path: write_classes(path, WORDS, np.arange(N_WORDS) % 4),
    "vectors": lambda path: write_vectors(path, WORDS, np.ones((N_WORDS, 9))),
    "vectors.bin": lambda path: write_vectors(
        path, WORDS, np.ones((N_WORDS, 9)), binary=True
    ),
    "binary": lambda path: save_binary(model(), path, WORDS),
    "estimated": lambda path: estimated(estimate_binary, path),
    "estimated.arpa": lambda path: estimated(estimate_arpa, path),
    "quantized": lambda path: save_binary(model(), path, WORDS, bits=8),
}


@contextmanager
def full_at(n):
    """Let no file grow beyond n bytes: the system's own short write and error.

    None of pytest's either: so the limit ends with the block, whatever ends that.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", SAVERS)
def test_a_disk_that_is_full_at_any_byte(tmp_path, name):
    path, save = tmp_path / name, SAVERS[name]
    save(path)
    size = path.stat().st_size
    path.write_bytes(b"old")
    for n in (0, 1, size // 3, size - 1):
        with full_at(n), pytest.raises(OSError, match="too large"):
            save(path)
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == [name]


@contextmanager
def at_most_files(n):
    """Let the process open n more files; then none."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        # The lowest free number is given out next: all below it are taken.
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1 + n, limits[1]))
        while taken[-1] < taken[0]:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in taken:
            os.close(number)


@pytest.mark.parametrize("name", SAVERS)
def test_descriptors_that_end_leave_nothing_behind(tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    path, save = folder / name, SAVERS[name]
    save(path)
    path.write_bytes(b"old")
    n_failed = 0
    for n in [*range(12), *range(20, 400, 20)]:
        try:
            with at_most_files(n):
                save(path)
        except OSError as error:
            assert error.errno == EMFILE
            n_failed += 1
        else:
            break
        assert path.read_bytes() == b"old"
        assert os.listdir(folder) == [name]
        assert os.listdir(tmp_path) == ["folder"]
    assert n_failed > 0
    assert path.read_bytes() != b"old"


class Steps:
    """Has the n-th call of some functions of the system fail."""

    def __init__(self, monkeypatch):
        self.left, self.error = 0, OSError(28, "No space left on device")
        for name in ("fsync", "replace", "open"):
            monkeypatch.setattr(os, name, self.failing(getattr(os, name)))

    def failing(self, call):
        def one(*args, **kwargs):
            self.left -= 1
            if self.left == 0:
                raise self.error
            return call(*args, **kwargs)

        return one


@pytest.mark.parametrize("name", SAVERS)
@pytest.mark.parametrize(
    "error", [OSError(5, "I/O error"), KeyboardInterrupt()], ids=repr
)
def test_each_step_of_a_save_fails(tmp_path, monkeypatch, name, error):
    path, save = tmp_path / name, SAVERS[name]
    save(path)
    whole = path.read_bytes()
    steps = Steps(monkeypatch)
    steps.error, n = error, 0
    while True:
        path.write_bytes(b"old")
        n += 1
        steps.left = n
        try:
            save(path)
        except type(error):
            error.__traceback__ = None  # whose frames keep what was mapped
            assert path.read_bytes() in (b"old", whole)
            assert os.listdir(tmp_path) == [name]
        else:
            assert path.read_bytes() == whole
            if steps.left > 0:  # this save has fewer steps
                break
    assert n > 3  # the file and the folder on the disk, and the renaming between them


@pytest.mark.parametrize(
    "model",
    [neural_lm(**SMALL), paper_lm(**SMALL), WordClasses(4, random_state=0)],
    ids=["default", "paper", "classes"],
)
def test_a_save_of_a_fit_that_fails_loses_nothing(tmp_path, monkeypatch, model):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 0)
    monkeypatch.setattr("nplm.models.training.pace.SECONDS_A_CALL", 0.001)

    def fitted(**options):
        own = clone(model)
        if isinstance(model, WordClasses):
            return own.fit(IDS, **options).labels_
        trained = own.fit(X, Y, **options)._trained.parameters.trained()
        return np.concatenate([array.ravel() for array in trained.values()])

    whole = fitted()
    for i, limit in enumerate((100, 1500)):  # room for the lock's token, at least
        folder = tmp_path / str(i)
        failing = pytest.warns(RuntimeWarning, match="could not be saved")
        with failing, full_at(limit):
            np.testing.assert_array_equal(fitted(checkpoint=folder), whole)
        assert not [*tmp_path.rglob("*.part")]
        np.testing.assert_array_equal(fitted(checkpoint=folder), whole)


def preload(tmp_path):
    """Compile what makes allocations fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no C compiler, or no glibc")
    source, shim = Path(__file__).with_name("fail_malloc.c"), tmp_path / "shim.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", shim, source], check=True
    )
    return str(shim)


def test_each_allocation_fails(tmp_path):
    """Every 23rd here; ``python -m tests.faults.allocations`` has all of them fail."""
    places = [str(Path(__file__).parents[2]), str(Path(nplm.__file__).parents[1])]
    job = subprocess.run(
        [sys.executable, "-m", "tests.faults.allocations", "--stride", "23"],
        env={
            **os.environ,
            "LD_PRELOAD": preload(tmp_path),
            "PYTHONPATH": os.pathsep.join(places),
        },
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr[-3000:]
    failed = dict(re.findall(r"(.*): (\d+) allocations failed", job.stdout))
    assert list(failed) == list(WORK)
    assert sum(int(n) > 0 for n in failed.values()) > 0.8 * len(WORK)
