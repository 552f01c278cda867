"""Damaged files of every kind: an error that names them, or what was right of them.

Each is read in a process of its own, which may crash, hang or take all memory: that is
a failure like another. ``python -m tests.fuzz`` does the same for as long as it is
asked to.
"""

import signal

import pytest

from tests.fuzz.pool import Reader, case
from tests.fuzz.seeds import kinds, seeds

CASES = 40


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
