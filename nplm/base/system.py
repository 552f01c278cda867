"""Parts of POSIX and of Linux: locks of files, and memory."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

# Errors of a file system without locks; network file systems return ENOLCK too.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
MIN_MEMORY_BYTES = 1 << 10
# Arguments of mallopt, and the largest size that it takes.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
REUSED_BYTES = 1 << 25
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MEMINFO = Path("/proc/meminfo")
# Files of a control group, version 2 and 1: its limit and the use of memory.
GROUP_LIMITS = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
]


def lock(number: int, *, wait: bool) -> None:
    """Lock an open file until it is closed.

    Raises BlockingIOError if it is locked, unless `wait`, and OSError, such as one of
    `NO_LOCKS`, if the file system has no locks.
    """
    fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def trim() -> None:
    """Return freed memory to the system, where the C library is glibc."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def reuse_freed_memory() -> None:
    """Let large arrays take the memory of earlier ones, where the C library is glibc.

    Otherwise the system clears the pages of each anew, until an array of this size has
    been freed once. It holds until the process ends, so only commands do it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, REUSED_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2 * REUSED_BYTES)


def free_memory() -> int:
    """Return three quarters of the memory that is available here, or in a container.

    The rest is left for the pages of files and for other programs. Linux before 3.14,
    and some containers, tell only what is free or holds files; of other systems it is
    half of all memory.
    """
    try:
        lines = MEMINFO.read_text().splitlines()
        kibi = {name: int(n[0]) for name, *n in map(str.split, lines) if n}
        names = ["MemAvailable:"]
        if names[0] not in kibi:
            names = ["MemFree:", "Buffers:", "Cached:"]
        free = sum(kibi[name] for name in names) << 10
    except (OSError, ValueError, KeyError):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    for group in GROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number: there is no limit
            limit, used = (int(Path(name).read_text()) for name in group)
            free = min(free, max(limit - used, 0))
    return free * 3 // 4


def memory_in_bytes(memory: int | str) -> int:
    """Return the bytes of a number or of text such as "2G" or "500M", or raise."""
    size = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)B?", str(memory).strip().upper())
    n_bytes = int(float(size[1]) * UNITS[size[2]]) if size else 0
    if isinstance(memory, bool) or n_bytes < MIN_MEMORY_BYTES:
        raise ValueError(
            f"memory={memory!r} must be a number of bytes, at least "
            f"{MIN_MEMORY_BYTES}, or a size such as '500M' or '2G'."
        )
    return n_bytes
