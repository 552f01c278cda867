"""Estimation keeps to its memory, and leaves no files however it ends."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import nplm.base.files.atomic_files
from nplm import KneserNeyLM
from nplm.formats import estimate_arpa, estimate_binary
from nplm.models.ngrams.stages import scratch
from nplm.models.training.parallel.threads import Threads
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
@pytest.mark.parametrize("name", ["ids", "run.1", "part.0.2.words"])
def test_error_of_a_full_disk_while_allocating_names_the_folder(
    tmp_path, monkeypatch, name
):
    def full(path, *args, **options):
        if path.name == name:
            return open("/dev/full", "wb")
        return open(path, *args, **options)

    monkeypatch.setattr(scratch, "open", full, raising=False)
    needs = "more is" if name == "ids" else "up to .* GiB"
    with pytest.raises(
        OSError, match=rf"nplm-.* is full: {needs} needed there"
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


def test_only_folders_of_killed_processes_are_removed(tmp_path):
    def temporary():
        return scratch.Scratch(tmp_path, 1 << 20, Threads(1))

    def names():
        return {path.name for path in tmp_path.iterdir()}

    child = os.fork()
    if child == 0:
        temporary().__enter__().array("much", "u1", 1 << 20)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert (left / "much").stat().st_size == 1 << 20
    # Folders of another machine, whose locks may be invisible, and of an unknown
    # owner, and a link.
    (prefix,) = re.findall("nplm-.*-", left.name)
    others = [tmp_path / f"nplm-other.{prefix}x", tmp_path / f"{prefix}mine"]
    shutil.copytree(left, others[0])
    others[1].mkdir()
    (others[1] / "kept").touch()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(left, elsewhere)
    (tmp_path / f"{prefix}link").symlink_to(elsewhere)
    others = [*others, elsewhere, tmp_path / f"{prefix}link"]
    (tmp_path / f"{prefix}empty").mkdir()  # killed before it had an owner
    with temporary() as one, temporary() as other:
        assert names() == {path.name for path in (*others, one.folder, other.folder)}
    assert names() == {path.name for path in others}
    assert all(list(path.iterdir()) for path in others)


def test_folder_is_made_again_if_it_is_removed_while_empty(tmp_path, monkeypatch):
    made, mkdtemp = [], tempfile.mkdtemp

    def taken_for_abandoned(**where):
        made.append(mkdtemp(**where))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_for_abandoned)
    with scratch.Scratch(tmp_path, 1 << 20, Threads(1)) as one:
        assert str(one.folder) == made[1]
    assert not list(tmp_path.iterdir())


def test_folder_of_a_killed_removal_is_removed_by_the_next(tmp_path):
    unlink, n_kills = os.unlink, 0

    def kill(after):
        left = after

        def killed(*args, **kwargs):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            unlink(*args, **kwargs)

        return killed

    for after in range(4):
        child = os.fork()
        if child == 0:
            try:
                one = scratch.Scratch(tmp_path, 1 << 20, Threads(1)).__enter__()
                for name in ("a", "z"):
                    one.array(name, "u1", 10)
                os.unlink = kill(after)
                one.__exit__(None, None, None)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        n_kills += os.WIFSIGNALED(status)
        with scratch.Scratch(tmp_path, 1 << 20, Threads(1)) as one:
            assert list(tmp_path.iterdir()) == [one.folder]
    assert n_kills == 3


@pytest.mark.slow
def test_killed_estimation_leaves_the_old_file_or_the_new_one():
    kinds = ["estimation", "estimation, ARPA"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hours.kills", "--kills", "4", "--fits", *kinds],
        capture_output=True, text=True, cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": 4 kills,") == 2
