"""Damaged files of every kind are read to valid results or refused by name.

They are read in a separate process, so that crashes, hangs and excessive memory are
failures of a test. ``python -m tests.fuzz`` does the same for a given time.
"""

import os
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

# Saved models are of many kinds.
N_CASES, N_SAVED = 40, 300
# Bytes of memory for each byte of a file of half a megabyte or more. Readers take 1.5
# to 6, and 17 for a corpus, whose words are Python objects.
MAX_BYTES_PER_BYTE, MAX_BYTES_PER_BYTE_OF_CORPUS = 20, 40
# A folder for each kind and case, as ``python -m tests.fuzz`` writes them.
REGRESSIONS = sorted(Path(__file__).with_name("broke").glob("*/*"))


@pytest.fixture(scope="module")
def reader():
    with Reader() as one:
        yield one


@pytest.mark.parametrize("kind", kinds())
def test_valid_files_are_read(reader, kind):
    for files in seeds(kind):
        assert reader.read(kind, files)["outcome"] == "read"


@pytest.mark.parametrize("kind", kinds())
def test_damaged_files_are_refused_or_read_to_valid_results(reader, kind):
    outcomes = set()
    for number in range(N_SAVED if kind == "saved" else N_CASES):
        report = reader.read(kind, case(kind, number))
        assert report["outcome"] != "failed", f"{kind} {number}: {report['why']}"
        outcomes.add(report["outcome"])
    assert "refused" in outcomes


@pytest.mark.parametrize("folder", REGRESSIONS, ids=lambda path: path.name)
def test_file_that_once_broke_a_reader_is_refused(reader, folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = reader.read(folder.parent.name, files)
    assert report["outcome"] == "refused", report


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
def test_memory_is_bounded_by_the_size_of_a_large_file(tmp_path, kind):
    """The memory for small files depends on the reader, here on the file's size."""
    LARGE[kind](tmp_path / "file")
    data = (tmp_path / "file").read_bytes()
    assert len(data) > 5e5
    with Reader() as reader:  # a new process
        report = reader.read(kind, {"file": data})
    assert report["outcome"] == "read"
    is_corpus = kind == "corpus"
    most = MAX_BYTES_PER_BYTE_OF_CORPUS if is_corpus else MAX_BYTES_PER_BYTE
    assert report["memory"] < most * len(data)


def test_crash_and_hang_are_failures(reader, monkeypatch):
    """The pool reports a killed reader as a failure, and starts another one."""
    reader.read("text", {"file": b"a\n"})
    os.kill(reader._process.pid, signal.SIGSTOP)
    monkeypatch.setattr("tests.fuzz.pool.TIMEOUT_SECONDS", 0.01)
    assert "did not end" in reader.read("text", {"file": b"a\n"})["why"]
    monkeypatch.undo()
    reader.read("text", {"file": b"a\n"})
    reader._process.kill()
    assert "ended with -9" in reader._report()["why"]
    assert reader.read("text", {"file": b"a b\n" * 90})["outcome"] == "read"
