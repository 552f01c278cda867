"""Damaged files of every kind: an error that names them, or what was right of them.

Each is read in a process of its own, which may crash, hang or take all memory: that is
a failure like another. ``python -m tests.fuzz`` does the same for as long as it is
asked to.
"""

import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nplm
from nplm import KneserNeyLM, windows
from nplm.formats import save_binary, write_arpa, write_counts, write_vectors
from tests.fuzz.pool import Reader, case
from tests.fuzz.seeds import kinds, quiet, seeds

CASES = 40
# Bytes of memory for each of a file of half a megabyte and more: 1.5 to 6 were seen,
# and 17 of a corpus, each word of which is an object of Python's.
A_BYTE_OF_MANY, A_BYTE_OF_WORDS = 20, 40
# A folder a kind, in it a folder a case, as ``python -m tests.fuzz`` keeps them.
BROKE = sorted(Path(__file__).with_name("broke").glob("*/*"))


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


@pytest.mark.parametrize("folder", BROKE, ids=lambda path: path.name)
def test_files_that_once_broke_a_reader(reader, folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = reader.read(folder.parent.name, files)
    assert report["came"] == "refused", report


N_WORDS = 2000
WORDS = ["</s>", *(f"word{i}" for i in range(1, N_WORDS))]


@cache
def large_model():
    ids = np.random.default_rng(0).zipf(1.3, 30_000) % N_WORDS
    model = KneserNeyLM(n_words=N_WORDS, boundary=0)
    return quiet(lambda: model.fit(*windows(ids, 2, boundary=0)))


def large_text():
    ids = np.random.default_rng(0).zipf(1.3, 100_000) % (N_WORDS - 1) + 1
    return "\n".join(" ".join(WORDS[i] for i in row) for row in ids.reshape(-1, 20))


LARGE = {
    "arpa": lambda path: write_arpa(large_model(), path, WORDS),
    "counts": lambda path: write_counts(large_model(), path, WORDS),
    "vectors": lambda path: write_vectors(path, WORDS, np.ones((N_WORDS, 100)) / 3),
    "binary": lambda path: save_binary(large_model(), path, WORDS),
    "saved": lambda path: nplm.save(large_model(), path),
    "text": lambda path: path.write_text(large_text()),
    "stream": lambda path: path.write_text(large_text()),
    "corpus": lambda path: path.write_text(large_text()),
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
    a_byte = A_BYTE_OF_WORDS if kind == "corpus" else A_BYTE_OF_MANY
    assert report["memory"] < a_byte * len(data)


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
