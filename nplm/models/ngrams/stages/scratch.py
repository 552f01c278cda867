"""Scratch: the temporary folder, threads and progress of an estimation on disk."""

from __future__ import annotations

import glob
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base import system
from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import (
    GIBI,
    allocate,
    forget,
    full_disk_named,
    owned,
)
from nplm.models.ngrams.trie.work import BLOCK_FOLLOWERS

if TYPE_CHECKING:
    from nplm.models.training.parallel.threads import Threads

__all__ = ["Scratch"]

T = TypeVar("T")
# Name of the lock file that shows whether the process of a folder is alive.
OWNER = "owner"
# Write buffer of a file. Small, because a merge keeps dozens of files open.
BUFFER_BYTES = 1 << 16
PAGE_BYTES = 4096


class StageAbortedError(Exception):
    """Raised in a thread after another one failed or was interrupted."""


class Scratch:
    """Temporary folder of an estimation, with its memory budget and threads.

    The folder is removed on exit. Its name contains the host name. Entering also
    removes folders next to it left by killed processes of the same host and user.

    - `folder`: folder in which to create the temporary folder. None uses the system's
      folder of temporary files
    - `memory`: bytes that the stages may use for their buffers, until `reserve` is
      called
    - `threads`: threads that do the work
    - `progress`: called with the name of the stage, the amount done, and the total
    """

    on_disk = True

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        memory: int,
        threads: Threads,
        progress: Callable[[str, int, int], Any] | None = None,
    ) -> None:
        self._parent = folder
        self._total = self.memory = memory
        self._threads = threads
        self._needs = 0
        self._progress = progress
        self._lock = Lock()
        self._done = self._stage_total = 0
        self._stage = ""
        self._names: set[str] = set()  # of the files created
        self._arrays: dict[str, NDArray[Any]] = {}
        self._aborted = Event()

    def __enter__(self) -> Self:
        parent = Path(tempfile.gettempdir() if self._parent is None else self._parent)
        if not parent.is_dir():
            raise NotADirectoryError(
                f"folder={str(parent)!r}, for temporary files, is not a directory: "
                "create it, or pass another one."
            )
        prefix = f"nplm-{socket.gethostname()}-"
        # Only folders of this host: the locks of other hosts may be invisible.
        for path in parent.glob(f"{glob.escape(prefix)}*"):
            with suppress(OSError):
                system.remove_abandoned(path, OWNER)
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            self._owner = owned(self.folder / OWNER)
            try:
                self._owner.__enter__()
            except FileNotFoundError:  # another process removed the empty folder
                continue
            except BaseException:
                self._remove()
                raise
            return self

    def __exit__(self, *error: object) -> None:
        self._arrays.clear()
        try:
            # First: Windows removes no open file.
            self._owner.__exit__(None, None, None)
        finally:  # after an interrupt, the next estimation removes the rest
            self._remove()

    def _remove(self) -> None:
        """Remove the folder without opening a file: descriptors may be exhausted."""
        for name in [*self._names, OWNER]:  # the lock file last: it marks the folder
            with suppress(OSError):
                (self.folder / name).unlink()
        with suppress(OSError):
            self.folder.rmdir()

    @property
    def n_threads(self) -> int:
        """Number of threads that do the work."""
        return self._threads.n

    @property
    def block(self) -> int:
        """Number of n-grams in a block that one thread processes at a time."""
        return min(max(self.memory // self.n_threads // 128, 1 << 10), BLOCK_FOLLOWERS)

    @property
    def n_at_once(self) -> int:
        """Number of float64 that are held in memory at once."""
        return max(self.memory // 2 // 8, 1 << 8)

    @property
    def n_at_random(self) -> int:
        """Number of accesses at random whose pages fit in memory."""
        return max(self.memory // 4 // PAGE_BYTES, 1 << 10)

    def reserve(self, n_bytes: int) -> None:
        """Leave bytes to others: buffers get the rest, or at least a quarter."""
        self.memory = max(self._total - n_bytes, self._total // 4)

    # -- files ---------------------------------------------------------------------

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for writing at its end; the error of a full disk names it."""
        path = self._new(name)
        needs = f"up to {self._needs / GIBI:.3g} GiB" if self._needs else "more is"
        with (
            full_disk_named(self.folder, needs),
            open(path, "ab", buffering=BUFFER_BYTES) as file,
        ):
            yield file

    def _new(self, name: str) -> Path:
        self._names.add(name)
        return self.folder / name

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self.folder / name).stat().st_size

    def read(self, name: str, dtype: DTypeLike, size: int) -> Iterator[NDArray[Any]]:
        """Yield the numbers in a file, at most `size` at once."""
        n = self.size(name) // np.dtype(dtype).itemsize
        with open(self.folder / name, "rb", buffering=0) as file:
            for part in blocks(n, size):
                yield np.fromfile(file, dtype, part.stop - part.start)

    def read_at(self, name: str, offset: int, buffer: memoryview) -> None:
        """Fill a buffer of bytes from a place of a file."""
        with open(self.folder / name, "rb", buffering=0) as file:
            while len(buffer):
                n = os.preadv(file.fileno(), [buffer], offset)
                if n == 0:
                    raise OSError(f"{file.name} was truncated while being read")
                buffer, offset = buffer[n:], offset + n

    def remove(self, *names: str) -> None:
        """Remove files."""
        for name in names:
            (self.folder / name).unlink()
            self._names.discard(name)

    def drop(self, *arrays: NDArray[Any] | None) -> None:
        """Remove arrays that `array` returned."""
        for name in [
            n for n, own in self._arrays.items() if any(own is a for a in arrays)
        ]:
            del self._arrays[name]
            self.remove(name)

    def array(self, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array on disk, mapped into memory, with its space allocated."""
        while name in self._names:
            name = f"{name}'"
        path = self._new(name)
        n_bytes = size * np.dtype(dtype).itemsize
        with open(path, "x+b") as file:
            allocate(file, n_bytes, self.folder)
        array = np.zeros(0, dtype=dtype)
        if n_bytes:
            array = np.memmap(path, dtype, "r+", shape=(size,))
        self._arrays[name] = array
        return array

    def forget(self, *arrays: NDArray[Any]) -> None:
        """Release the memory of mapped arrays: `arrays` and those of this folder."""
        self._check_aborted()
        forget(*self._arrays.values(), *arrays)

    # -- work ----------------------------------------------------------------------

    def stage(self, name: str, total: int, n_bytes: int = 0) -> None:
        """Begin a stage, which writes files of `n_bytes` at most (0: unknown).

        Its progress runs from 0 to `total`.
        """
        self._needs = n_bytes
        # Return freed memory to the system before this stage allocates its own.
        system.trim()
        self._stage, self._done, self._stage_total = name, 0, total
        self.tell(0)

    def tell(self, n: int) -> None:
        """Report that `n` more units of the stage are done."""
        self._check_aborted()
        with self._lock:
            self._done += n
            if self._progress is not None:
                self._progress(self._stage, self._done, self._stage_total)

    def each(self, work: Callable[[int, T], Any], parts: Iterable[T]) -> None:
        """Call ``work(thread, part)`` for each part, in parallel.

        After an error or an interrupt no further part begins, and the other threads
        stop at their next `tell` or `forget`. No thread is running when this raises.
        """
        lock = Lock()
        remaining, end = iter(parts), object()

        def run(thread: int) -> None:
            # An aborted thread has no error of its own to report.
            with suppress(StageAbortedError):
                while True:
                    self._check_aborted()
                    part: Any = None  # free the last part before making the next one
                    with lock:
                        part = next(remaining, end)
                    if part is end:
                        return
                    work(thread, part)

        self._threads.run_together(run, self.n_threads, give_up=self._aborted.set)

    def _check_aborted(self) -> None:
        if self._aborted.is_set():
            raise StageAbortedError
