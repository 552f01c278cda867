"""Memory that the processes of one computer have in common."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from nplm.base.array_types import AnyArray, Bytes
from nplm.models.training.parallel.processes import Processes

ALIGNMENT = 64  # bytes of a cache line


def common_memory(processes: Processes, n_bytes: int) -> Bytes:
    """Return zeros that processes of one computer share; the last array frees them."""
    opened: tuple[int, str] | None = None

    def make() -> tuple[str, list[int]]:
        nonlocal opened
        if processes.rank > 0:
            return "", []  # those of the first process are for all
        opened = number, path = _new_file()
        os.ftruncate(number, n_bytes)
        return path, _identity(number)

    try:
        path, identity = processes.agree(processes.all_or_none(make))
        memory = processes.all_or_none(lambda: _mapped(path, identity, n_bytes))
    finally:
        if opened is not None:
            os.close(opened[0])
            if not opened[1].startswith("/proc"):
                os.unlink(opened[1])
    return np.frombuffer(memory, np.uint8)


def _mapped(path: str, identity: list[int], n_bytes: int) -> mmap.mmap:
    """Map the file of another process."""
    try:
        number = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            if _identity(number) != identity:
                raise OSError(f"{path} is another file in this process")
            return mmap.mmap(number, n_bytes)
        finally:
            os.close(number)
    except OSError as error:
        raise ValueError(
            f"the processes cannot share {n_bytes:,} bytes of memory, though they are "
            f"on one computer ({error}). Set NPLM_MPI_SHARED_MEMORY=0, and they send "
            "each other messages instead."
        ) from error


def _new_file() -> tuple[int, str]:
    """Return the descriptor of a new file in memory, and its path for others."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("nplm")
        return number, f"/proc/{os.getpid()}/fd/{number}"
    return tempfile.mkstemp(prefix="nplm")


def _identity(number: int) -> list[int]:
    status = os.fstat(number)
    return [status.st_dev, status.st_ino, status.st_size]


class SharedLayout:
    """Arrays of given sizes, one after the other in a memory, each on a cache line."""

    def __init__(self, sizes: Sequence[int]) -> None:
        whole = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
        self.starts = np.cumsum([0, *whole]).tolist()
        self.sizes = list(sizes)

    @property
    def n_bytes(self) -> int:
        """Number of bytes of all."""
        return int(self.starts[-1])

    def array(self, memory: Bytes, i: int, dtype: DTypeLike = np.uint8) -> AnyArray:
        """Return one of the arrays, with one dimension."""
        start = self.starts[i]
        return memory[start : start + self.sizes[i]].view(dtype)
