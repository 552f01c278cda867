"""Scratch: the temporary files, threads and progress of an estimation on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base import system
from nplm.base.array_types import AnyArray
from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import GIBI, allocate, full_disk_named, release_pages
from nplm.base.files.tensors import put
from nplm.models.ngrams.trie.work import BLOCK_FOLLOWERS, Progress, Work
from nplm.models.training.parallel.threads import Threads, n_threads

if TYPE_CHECKING:
    from io import FileIO

T = TypeVar("T")
PAGE_BYTES = 4096
# Bytes written at once: for larger pieces the system looks for larger free ranges of
# memory, and leaves that of files just removed, which takes less time to use again.
PIECE_BYTES = 1 << 17


class StageAbortedError(Exception):
    """Raised in a thread after another one failed or was interrupted."""


class Scratch(Work):
    """Temporary files of an estimation, with its memory budget and threads.

    The files have no names, so that the system removes them when the process ends,
    however it ends. Each has an open descriptor: the text's ids, the runs of each
    thread, the arrays of each level and thread while runs are merged, and arrays.
    """

    on_disk = True

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        memory: int | str,
        n_jobs: int | None = 1,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(progress)
        self._threads = Threads(n_threads(n_jobs))
        self.n_threads = self._threads.n
        self._budget = system.memory_in_bytes(memory)
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        if not self._folder.is_dir():
            raise NotADirectoryError(
                f"folder={str(self._folder)!r}, for temporary files, is not a "
                "directory: create it, or pass another one."
            )
        self.reserve(0)
        self._needs = 0
        self._lock = Lock()
        self._open: dict[str, FileIO] = {}
        # Those on disk, and their files.
        self._arrays: list[tuple[AnyArray, FileIO]] = []
        self._aborted = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.drop(*(array for array, _ in self._arrays))
        self.remove(*self._open)

    def reserve(self, n_bytes: int) -> None:
        self.memory = memory = max(self._budget - n_bytes, self._budget // 4)
        self.block = min(max(memory // self.n_threads // 128, 1 << 10), BLOCK_FOLLOWERS)
        self.n_at_once = max(memory // 2 // 8, 1 << 8)
        self.n_at_random = max(memory // 4 // PAGE_BYTES, 1 << 10)

    # -- files ---------------------------------------------------------------------

    def append(self, name: str, data: Any) -> None:
        """Append bytes to a file; the error of a full disk says where and how much."""
        needs = f"up to {self._needs / GIBI:.3g} GiB" if self._needs else "more is"
        with full_disk_named(self._folder, needs):
            file, rest = self._file(name), memoryview(data)
            rest = rest.cast("B") if rest.nbytes else rest[:0]
            while rest:
                rest = rest[file.write(rest[:PIECE_BYTES]) :]

    def size(self, name: str) -> int:
        return os.fstat(self._file(name).fileno()).st_size

    def read(self, name: str, dtype: DTypeLike, size: int) -> Iterator[NDArray[Any]]:
        n = self.size(name) // np.dtype(dtype).itemsize
        for part in blocks(n, size):
            yield self.at(name, dtype, (part.start, part.stop - part.start))

    def at(self, name: str, dtype: DTypeLike, *spans: tuple[int, int]) -> NDArray[Any]:
        numbers: NDArray[Any] = np.empty(sum(n for _, n in spans), dtype)
        file, begin = self._file(name).fileno(), 0
        for first, n in spans:
            rest = numbers[begin : begin + n].view(np.uint8).data
            begin, offset = begin + n, first * numbers.itemsize
            while rest:
                n_read = os.preadv(file, [rest], offset)
                if n_read == 0:
                    raise OSError("a temporary file was truncated while being read")
                rest, offset = rest[n_read:], offset + n_read
        return numbers

    def remove(self, *names: str) -> None:
        for name in names:
            if name in self._open:
                self._open.pop(name).close()

    def _file(self, name: str) -> FileIO:
        if name not in self._open:
            self._open[name] = self._new()
        return self._open[name]

    def _new(self) -> FileIO:
        return tempfile.TemporaryFile(dir=self._folder, buffering=0)

    def array(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array on disk, mapped into memory, with its space allocated."""
        n_bytes = size * np.dtype(dtype).itemsize
        array = np.zeros(0, dtype=dtype)
        file = self._new()
        self._arrays.append((array, file))  # closes the file, whatever happens
        allocate(file, n_bytes, self._folder)
        if n_bytes:
            array = np.memmap(file, dtype, "r+", shape=(size,))
            self._arrays[-1] = array, file
        return array

    def put(self, array: AnyArray, values: AnyArray) -> None:
        for mapped, file in self._arrays:
            if getattr(mapped, "_mmap", self) is getattr(array, "_mmap", None):
                put(array, values, file, PIECE_BYTES)
                return
        array[:] = values

    def drop(self, *arrays: AnyArray | None) -> None:
        kept = []
        for array, file in self._arrays:
            if any(array is other for other in arrays):
                file.close()
            else:
                kept.append((array, file))
        self._arrays = kept

    def release_pages(self, *arrays: AnyArray) -> None:
        self._check_aborted()
        release_pages(*(array for array, _ in self._arrays), *arrays)

    # -- work ----------------------------------------------------------------------

    def stage(self, name: str, total: int, n_bytes: int = 0) -> None:
        self._needs = n_bytes
        # Return freed memory to the system before this stage allocates its own.
        system.trim()
        super().stage(name, total)

    def advance(self, n: int) -> None:
        self._check_aborted()
        with self._lock:
            super().advance(n)

    def each(self, work: Callable[[int, T], Any], parts: Iterable[T]) -> None:
        """Call ``work(thread, part)`` for each part, in parallel.

        After an error or an interrupt no further part begins, and the other threads
        stop at their next `advance` or `release_pages`. No thread is running when this
        raises.
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
