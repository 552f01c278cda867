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
from nplm.base.files.atomic_files import (
    GIBI,
    allocate,
    forget,
    full_disk_named,
    owned,
)
from nplm.models.ngrams.trie.context_trie import BLOCK_FOLLOWERS

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

    Parameters
    ----------
    folder : path-like or None
        Folder in which to create the temporary folder. None uses the system's folder
        of temporary files.
    memory : int
        Bytes that the stages may use for their buffers.
    threads : Threads
        Threads that do the work.
    progress : callable, optional
        Called with the name of the stage, the amount done, and the total.

    Attributes
    ----------
    needs : int
        Maximum number of bytes that a stage writes to files, 0 if unknown.
    arrays : dict of ndarray
        The arrays of the folder, by name.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        memory: int,
        threads: Threads,
        progress: Callable[[str, int, int], Any] | None = None,
    ) -> None:
        self._parent = folder
        self.memory, self.threads = memory, threads
        self.needs = 0
        self._progress = progress
        self._lock = Lock()
        self._done = self._total = 0
        self._stage = ""
        self._names: set[str] = set()  # of the files created
        self.arrays: dict[str, NDArray[Any]] = {}
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
        self.arrays.clear()
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
    def block(self) -> int:
        """Number of n-grams in a block that one thread processes at a time."""
        return min(max(self.memory // self.threads.n // 128, 1 << 10), BLOCK_FOLLOWERS)

    @property
    def n_at_once(self) -> int:
        """Number of float64 that are held in memory at once."""
        return max(self.memory // 2 // 8, 1 << 8)

    @property
    def n_at_random(self) -> int:
        """Number of accesses at random whose pages fit in memory."""
        return max(self.memory // 4 // PAGE_BYTES, 1 << 10)

    # -- files ---------------------------------------------------------------------

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; the error of a full disk names the folder."""
        path = self._new(name)
        needs = f"up to {self.needs / GIBI:.3g} GiB" if self.needs else "more is"
        with (
            full_disk_named(self.folder, needs),
            open(path, "xb", buffering=BUFFER_BYTES) as file,
        ):
            yield file

    @contextmanager
    def appending(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for writing at its end, which may be new."""
        path = self._new(name)
        with full_disk_named(self.folder, "more is"), open(path, "ab") as file:
            yield file

    def _new(self, name: str) -> Path:
        self._names.add(name)
        return self.folder / name

    def reading(self, name: str) -> BinaryIO:
        """Open a file of the folder for reading."""
        return open(self.folder / name, "rb", buffering=0)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self.folder / name).stat().st_size

    def remove(self, name: str) -> None:
        """Remove the file, or the array, of this name."""
        self.arrays.pop(name, None)
        (self.folder / name).unlink()
        self._names.discard(name)

    def array(self, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array on disk, mapped into memory, with its space allocated."""
        path = self._new(name)
        n_bytes = size * np.dtype(dtype).itemsize
        with open(path, "x+b") as file:
            allocate(file, n_bytes, self.folder)
        array = np.zeros(0, dtype=dtype)
        if n_bytes:
            array = np.memmap(path, dtype, "r+", shape=(size,))
        self.arrays[name] = array
        return array

    def rename(self, name: str, new_name: str) -> None:
        """Give an array another name."""
        (self.folder / name).rename(self._new(new_name))
        self._names.discard(name)
        self.arrays[new_name] = self.arrays.pop(name)

    def forget(self, *arrays: NDArray[Any]) -> None:
        """Release the memory of mapped arrays: `arrays` and those of this folder."""
        self._check_aborted()
        forget(*self.arrays.values(), *arrays)

    # -- work ----------------------------------------------------------------------

    def stage(self, name: str, total: int) -> None:
        """Begin a stage, whose progress runs from 0 to `total`."""
        # Return freed memory to the system before this stage allocates its own.
        system.trim()
        self._stage, self._done, self._total = name, 0, total
        self.tell(0)

    def tell(self, n: int) -> None:
        """Report that `n` more units of the stage are done."""
        self._check_aborted()
        with self._lock:
            self._done += n
            if self._progress is not None:
                self._progress(self._stage, self._done, self._total)

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

        self.threads.run_together(run, self.threads.n, give_up=self._aborted.set)

    def _check_aborted(self) -> None:
        if self._aborted.is_set():
            raise StageAbortedError
