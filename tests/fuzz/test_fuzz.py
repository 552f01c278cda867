"""Damaged files of every kind: an error that names them, or what was right of them.

Each is read in a process of its own, which may crash, hang or take all memory: that is
a failure like another. ``python -m tests.fuzz`` does the same for as long as it is
asked to.
"""

import signal
from functools import cache

import numpy as np
import pytest

import nplm
from nplm import KneserNeyLM, windows
from nplm.formats import save_binary, write_arpa, write_counts, write_vectors
from tests.fuzz.pool import Reader, case
from tests.fuzz.seeds import kinds, quiet, seeds

CASES = 40
# Bytes of memory for each of a file of a megabyte and more: 1.5 to 6 were seen.
A_BYTE_OF_MANY = 20


@pytest.fixture(scope="module")
def reader():
    with Reader() as one:
        yield one


@pytest.mark.parametrize("kind", kinds())
def test_good_files_are_read(reader, kind):
    for files in seeds(kind):
        assert reader.read(kind, files)["came"] == "read"


@pytest.mark.parametrize("kind", kinds())
def test_damaged_files(reader, kind):
    came = set()
    for number in range(CASES):
        report = reader.read(kind, case(kind, number))
        assert report["came"] != "wrong", f"{kind} {number}: {report['why']}"
        came.add(report["came"])
    assert "refused" in came


N_WORDS = 2000
WORDS = ["</s>", *(f"word{i}" for i in range(1, N_WORDS))]


@cache
def large_model():
    ids = np.random.default_rng(0).zipf(1.3, 30_000) % N_WORDS
    model = KneserNeyLM(n_words=N_WORDS, boundary=0)
    return quiet(lambda: model.fit(*windows(ids, 2, boundary=0)))


LARGE = {
    "arpa": lambda path: write_arpa(large_model(), path, WORDS),
    "counts": lambda path: write_counts(large_model(), path, WORDS),
    "vectors": lambda path: write_vectors(path, WORDS, np.ones((N_WORDS, 100)) / 3),
    "binary": lambda path: save_binary(large_model(), path, WORDS),
    "saved": lambda path: nplm.save(large_model(), path),
}


@pytest.mark.parametrize("kind", LARGE)
def test_memory_of_a_larger_file(tmp_path, kind):
    """Small files take as much as their reader does: here the file's bytes count."""
    LARGE[kind](tmp_path / "file")
    data = (tmp_path / "file").read_bytes()
    assert len(data) > 5e5
    with Reader() as reader:  # whose memory is what it was at its beginning
        report = reader.read(kind, {"file": data})
    assert report["came"] == "read"
    assert report["memory"] < A_BYTE_OF_MANY * len(data)


def test_a_crash_and_a_hang_are_seen(reader, monkeypatch):
    """The pool's own: a reader that is killed is a failure, and the next one works."""
    reader.read("text", {"file": b"a\n"})
    reader._job.send_signal(signal.SIGSTOP)
    monkeypatch.setattr("tests.fuzz.pool.SECONDS", 0.01)
    assert "did not end" in reader.read("text", {"file": b"a\n"})["why"]
    monkeypatch.undo()
    reader.read("text", {"file": b"a\n"})
    reader._job.kill()
    assert "ended with -9" in reader._report()["why"]
    assert reader.read("text", {"file": b"a b\n" * 90})["came"] == "read"
