"""Locks, open files and memory."""

import os
import platform
import subprocess
import sys

import pytest

from nplm.base import system


@pytest.mark.parametrize(
    ("meminfo", "kibi"),
    [
        ("MemTotal: 900 kB\nMemFree: 1 kB\nMemAvailable:  700 kB\n", 700),
        ("MemTotal: 900 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 3 kB\n", 123),
        ("MemTotal: 900 kB\n", None),
        ("", None),
        (None, None),
    ],
)
def test_free_memory_is_that_of_the_system_or_of_the_group(
    tmp_path, monkeypatch, meminfo, kibi
):
    path = tmp_path / "meminfo"
    if meminfo is not None:
        path.write_text(meminfo)
    monkeypatch.setattr(system, "MEMINFO", path)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    expected = half if kibi is None else kibi << 10
    limit, used = tmp_path / "limit", tmp_path / "used"
    monkeypatch.setattr(system, "GROUP_LIMITS", [(limit, used)])
    assert system.free_memory() == expected * 3 // 4
    groups = {"max": expected, "9" * 18: expected, "9000": 8000, "900": 0}
    for of_group, free in groups.items():
        limit.write_text(of_group)
        used.write_text("1000")
        assert system.free_memory() == free * 3 // 4


def test_locked_file_is_locked_once_and_read_by_all(tmp_path):
    path = tmp_path / "lock"
    path.write_bytes(b"token")
    with open(path, "r+b") as one, open(path, "r+b") as other:
        one.seek(2)
        system.lock(one.fileno(), wait=False)
        with pytest.raises(BlockingIOError):
            system.lock(other.fileno(), wait=False)
        assert one.read() == b"ken" and other.read() == b"token"
    with open(path, "r+b") as third:  # closing a file unlocks it
        system.lock(third.fileno(), wait=False)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_large_arrays_reuse_freed_memory():
    program = (
        "import resource, numpy as np\n"
        "from nplm.base import system\n"
        "def n_faults():\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "system.reuse_freed_memory()\n"
        "np.ones(1 << 24, np.uint8)\n"
        "before = n_faults()\n"
        "for _ in range(10):\n"
        "    np.ones(1 << 24, np.uint8)\n"
        "print(n_faults() - before)\n"
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 100
