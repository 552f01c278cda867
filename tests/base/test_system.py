"""Locks, open files and memory."""

import errno
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
def test_available_memory_is_told_or_half_of_all(tmp_path, monkeypatch, meminfo, kibi):
    path = tmp_path / "meminfo"
    if meminfo is not None:
        path.write_text(meminfo)
    monkeypatch.setattr(system, "MEMINFO", path)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    expected = half if kibi is None else kibi << 10
    assert system.available_memory() == expected


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


def test_link_is_not_followed_and_a_folder_not_opened(tmp_path):
    (tmp_path / "precious").touch()
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError) as caught:
        system.open_unfollowed(tmp_path / "link")
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(IsADirectoryError):
        system.open_unfollowed(tmp_path)
    os.close(system.open_unfollowed(tmp_path / "new"))
    assert (tmp_path / "new").exists()


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
