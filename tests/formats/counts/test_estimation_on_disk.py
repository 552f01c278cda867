"""Estimation keeps to its memory, and leaves no files however it ends."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nplm.base.files.atomic_files
from nplm import KneserNeyLM
from nplm.formats import estimate_arpa, estimate_binary
from nplm.formats.arpa.arpa_reading import read_ngrams
from nplm.models.ngrams.stages import scratch
from tests.helpers.texts import joined, lines_of

STAGES = ["reading", "sorting n-grams", "merging", "estimating"]
LAST = {estimate_binary: "hashing", estimate_arpa: "writing"}


@pytest.mark.parametrize(
    ("estimate", "stage"),
    [(estimate_binary, stage) for stage in STAGES] + list(LAST.items()),
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_leaves_no_files(tmp_path, estimate, stage, n_jobs):
    def interrupt(at, done, total):
        if at == stage and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate(
            KneserNeyLM(3),
            [joined(lines_of(500))],
            tmp_path / "model",
            memory="2K",
            folder=tmp_path,
            n_jobs=n_jobs,
            progress=interrupt,
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("estimate", LAST)
@pytest.mark.parametrize("n_room", [0, 1, 2, 5])
def test_error_of_a_full_disk_names_the_folder(tmp_path, monkeypatch, estimate, n_room):
    calls = []

    def full(file, offset, n_bytes):
        calls.append(n_bytes)
        if len(calls) > n_room:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.truncate(file, n_bytes)

    monkeypatch.setattr(nplm.base.files.atomic_files.os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"is full: .* GiB needed there") as caught:
        estimate(
            KneserNeyLM(3), [joined(lines_of(500))], tmp_path / "model", folder=tmp_path
        )
    assert str(tmp_path) in str(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
@pytest.mark.parametrize("name", ["ids", "runs.", "part.0.2.words"])
def test_error_of_a_full_disk_while_writing_names_the_folder(
    tmp_path, monkeypatch, name
):
    opened = scratch.Scratch._file

    def full(self, wanted):
        if wanted.startswith(name) and wanted not in self._open:
            self._open[wanted] = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
        return opened(self, wanted)

    monkeypatch.setattr(scratch.Scratch, "_file", full)
    needs = "more is" if name == "ids" else "up to .* GiB"
    with pytest.raises(
        OSError, match=rf"{tmp_path} is full: {needs} needed there"
    ) as caught:
        estimate_binary(
            KneserNeyLM(3),
            [joined(lines_of(500))],
            tmp_path / "model",
            folder=tmp_path,
            memory="4K",
            n_jobs=2,
        )
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
def test_error_of_a_full_disk_while_writing_arpa_names_the_folder(
    tmp_path, monkeypatch
):
    def full(path, *args, **options):
        if path.suffix != ".part":
            return open(path, *args, **options)
        path.touch()
        return open("/dev/full", "wb")

    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(nplm.base.files.atomic_files, "open", full, raising=False)
    with pytest.raises(OSError, match="is full: more is needed there") as caught:
        estimate_arpa(
            KneserNeyLM(3), [joined(lines_of(500))], tmp_path / "model", folder=kept
        )
    assert f"the disk of {tmp_path} is" in str(caught.value)
    assert os.listdir(tmp_path) == ["kept"] and not os.listdir(kept)


PEAK = """
import sys, warnings
from nplm import KneserNeyLM, formats

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))

before = peak()
getattr(formats, sys.argv[1])(
    KneserNeyLM(5), [sys.argv[2]], sys.argv[3], memory="32M", n_jobs=2,
    folder=sys.argv[4],
)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process's peak")
@pytest.mark.parametrize("estimate", ["estimate_binary", "estimate_arpa"])
def test_peak_memory_is_bounded(tmp_path, estimate):
    """Estimate from a million words in a separate process, within the limit."""
    rng = np.random.default_rng(0)
    ids = np.minimum(rng.zipf(1.15, 1_000_000), 20_000)
    spelled = [f"w{i}{end}".encode() for end in " \n" for i in range(20_001)]
    ends = 20_001 * (rng.random(len(ids)) < 0.05)
    words = np.array(spelled, dtype=object)[ids + ends]
    (tmp_path / "text").write_bytes(b"".join(words))
    names = [str(tmp_path / name) for name in ("text", "model")]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, estimate, *names, str(tmp_path)],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (tmp_path / "model").stat().st_size > 1.4 * (32 << 20)
    assert int(done.stdout) < 1.3 * (32 << 20)


def test_killed_process_leaves_no_files(tmp_path):
    child = os.fork()
    if child == 0:
        one = scratch.Scratch(tmp_path, 1 << 20)
        one.append("ids", b"much")
        one.array("u1", 1 << 20)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="Linux lists them")
def test_open_files_do_not_grow_with_the_text(tmp_path):
    """Runs, and ranges of words, share their files."""
    before = len(os.listdir("/proc/self/fd"))  # also of tests before
    most = dict.fromkeys((100, 1000), 0)
    for n in most:

        def count(*at, n=n):
            most[n] = max(most[n], len(os.listdir("/proc/self/fd")) - before)

        estimate_arpa(
            KneserNeyLM(3, discount_fallback=0.5), [joined(lines_of(n))],
            tmp_path / "model", memory="2K", n_jobs=2, progress=count,
        )  # fmt: skip
        with scratch.Scratch(tmp_path, 2 << 10, 1, count) as work:
            read_ngrams(tmp_path / "model", work, add_unknown=False)
    assert most[1000] <= most[100] < 100


@pytest.mark.slow
def test_killed_estimation_leaves_the_old_file_or_the_new_one():
    kinds = ["estimation", "estimation, ARPA"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hours.kills", "--kills", "2", "--fits", *kinds],
        capture_output=True, text=True, cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": 2 kills,") == 2
