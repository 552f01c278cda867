"""The processes of a fit: this one, or ranks of MPI; and memory that ranks share."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.array_types import AnyArray, Bytes, Floats, Index
from nplm.base.generators import private_generator

T = TypeVar("T")
# Called by all processes together with whether a save is due; returns the first
# process's answer, and the interrupt of any process.
Meeting = Callable[[bool], tuple[bool, KeyboardInterrupt | None]]


class Processes:
    """Collective operations of a fit, here of one process, of several in `Ranks`."""

    rank, size = 0, 1

    @property
    def share_memory(self) -> bool:
        """Whether several processes are on one computer, and may share its memory."""
        return False

    def agree(self, value: T) -> T:
        """Return the first process's value in all processes."""
        return value

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Call `work` in every process; if it fails in one, raise an error in all."""
        return work()

    def everyones(self, value: T) -> list[T]:
        """Return every process's value in all processes."""
        return [value]

    def total(self, value: T) -> T | None:
        """Return the sum of all processes' values in the first, None in the others."""
        return value

    def check_same(self, fingerprint: dict[str, str], of_data: str = "") -> None:
        """Raise an error in all if parameters or data differ from the first's."""

    def check_running(self, process_ids: list[int]) -> None:
        """Abort all if a process of this computer has ended, by the ids of all."""

    def guard(self) -> AbstractContextManager[None]:
        """Return a context in which a process that fails alone aborts all."""
        return nullcontext()

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return the first process's generator, never NumPy's global one, in all."""
        return private_generator(rng)

    def interrupts(self) -> AbstractContextManager[Meeting]:
        """Return a context in which several processes are interrupted together."""
        return nullcontext(lambda due: (due, None))

    # -- operations on arrays, in place -------------------------------------------

    def sum(self, array: AnyArray) -> None:
        """Sum an array over all processes."""

    def maximum(self, array: AnyArray) -> None:
        """Take the elementwise maximum over all processes."""

    def minimum(self, array: AnyArray) -> None:
        """Take the elementwise minimum over all processes."""

    def gather(self, array: AnyArray) -> None:
        """Set ``array[i]`` to that of process i, for all i."""

    def join_bytes(self, mine: Bytes, to: Bytes, starts: Index) -> None:
        """Fill `to` with the bytes of all processes, those of i at ``starts[i]``."""
        to[...] = mine

    def join(
        self,
        rows: AnyArray,
        starts: list[int],
        to: AnyArray | None,
        *,
        everywhere: bool,
    ) -> None:
        """Concatenate the rows of all processes, in all processes or the first."""
        if to is not None:
            to[...] = rows


ALONE = Processes()


class Seconds:
    """The seconds of this rank in an epoch, by activity."""

    NAMES = ("computing", "communicating", "waiting")

    def __init__(self) -> None:
        self.array = np.zeros((3, 1))

    def add(self, total: float, messages: Floats, processes: Processes) -> None:
        """Add a call of `total` seconds, with those in the messages of mini-batches."""
        # The last rank to arrive does not wait, so its time is that of the messages.
        # Pairs of mini-batches are added, because slow messages make ranks arrive last
        # in turn.
        both = np.add.reduceat(messages, np.arange(0, len(messages), 2))
        least = both.copy()
        processes.minimum(least)
        spent = float(both.sum())
        communicating = float(least.sum())
        self.array[:, 0] += total - spent, communicating, spent - communicating

    def taken(self) -> dict[str, float]:
        """Return the seconds by activity, and begin another epoch."""
        seconds = dict(zip(self.NAMES, self.array[:, 0].tolist()))
        self.array[:] = 0
        return seconds


def part_of(data: T, process: int, n_processes: int) -> T:
    """Return the slice of a sequence that is a process's part; all are about equal."""
    if isinstance(data, (str, bytes, os.PathLike)):
        raise TypeError(
            f"data={data!r} is one name: pass a list of names of files, or the array "
            "of a file, such as np.load(path, mmap_mode='r')."
        )
    items: Any = data
    n = len(items)
    if n < n_processes:
        raise ValueError(
            f"data has {n} items, which is too few for parts of {n_processes} "
            "processes; start fewer processes, or make more files."
        )
    return items[n * process // n_processes : n * (process + 1) // n_processes]


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

    def array(self, memory: Bytes, i: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return one of the arrays, with one dimension."""
        start = self.starts[i]
        return memory[start : start + self.sizes[i]].view(dtype)
