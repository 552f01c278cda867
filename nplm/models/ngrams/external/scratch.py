"""What an estimation keeps on disk while it runs, and the threads that work on it."""

from __future__ import annotations

import glob
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.files.atomic_files import (
    GIBI,
    allocate,
    forget,
    full_disk_named,
    is_abandoned,
    owned,
    trim,
)
from nplm.models.ngrams.trie.context_trie import BLOCK_FOLLOWERS
from nplm.training.parallel.threads import Threads

__all__ = ["Scratch"]

T = TypeVar("T")
# The file of a folder that tells whether its process lives.
OWNER = "owner"
# Of a file that is written: a merge has some dozens open at once.
BUFFER_BYTES = 1 << 16


class GivenUpError(Exception):
    """Another thread had an error, or was interrupted."""


class Scratch:
    """A temporary folder, gone when it is left, and what else a stage works with.

    Its name says the machine. Those beside it that processes of this machine and user
    left, because they were killed, are removed.

    Parameters
    ----------
    folder : path-like or None
        Where the folder is made; where temporary files usually are, if None.
    memory : int
        Bytes that the stages may take for their buffers.
    threads : Threads
        Those that work.
    progress : callable, optional
        Called with the name of a stage, how much of it is done, and all of it.

    Attributes
    ----------
    needs : int
        The most bytes that a stage writes in files, 0 where that is not known.
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
        self._names: set[str] = set()  # of files that were begun
        self._arrays: dict[str, NDArray[Any]] = {}
        self._given_up = Event()

    def __enter__(self) -> Self:
        parent = Path(tempfile.gettempdir() if self._parent is None else self._parent)
        if not parent.is_dir():
            raise NotADirectoryError(
                f"folder={str(parent)!r} is no folder: make it first, for temporary "
                "files, or name another."
            )
        prefix = f"nplm-{socket.gethostname()}-"
        # On another machine a lock may not be seen.
        for path in parent.glob(f"{glob.escape(prefix)}*"):
            with suppress(OSError):
                _remove_abandoned(path)
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            self._owner = owned(self.folder / OWNER)
            try:
                self._owner.__enter__()
            except FileNotFoundError:  # another removed it, for it was empty
                continue
            except BaseException:
                self._remove()
                raise
            return self

    def __exit__(self, *error: object) -> None:
        self._arrays.clear()
        try:
            self._remove()
        finally:  # what is left now, after an interrupt, the next one removes
            self._owner.__exit__(None, None, None)

    def _remove(self) -> None:
        """Remove the folder, without a file descriptor: none may be left."""
        for name in [*self._names, OWNER]:  # last the one that tells what it is
            with suppress(OSError):
                (self.folder / name).unlink()
        with suppress(OSError):
            self.folder.rmdir()

    @property
    def block(self) -> int:
        """n-grams of which the threads look at what is on disk, a block each."""
        return min(max(self.memory // self.threads.n // 128, 1 << 10), BLOCK_FOLLOWERS)

    # -- files ---------------------------------------------------------------------

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file of the folder; a full disk names it."""
        path = self._new(name)
        needs = f"up to {self.needs / GIBI:.3g} GiB" if self.needs else "more is"
        with (
            full_disk_named(self.folder, needs),
            open(path, "xb", buffering=BUFFER_BYTES) as file,
        ):
            yield file

    def _new(self, name: str) -> Path:
        self._names.add(name)
        return self.folder / name

    def reading(self, name: str) -> BinaryIO:
        """Open a file of the folder."""
        return open(self.folder / name, "rb", buffering=0)

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return (self.folder / name).stat().st_size

    def remove(self, name: str) -> None:
        """Give the room of a file back, or that of an array."""
        self._arrays.pop(name, None)
        (self.folder / name).unlink()
        self._names.discard(name)

    def array(self, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Make an array on disk, mapped into memory: its room is there from now on."""
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
        """Let the memory of mapped arrays go, those of this folder and `arrays`."""
        self._go_on()
        forget(*self._arrays.values(), *arrays)

    # -- work ----------------------------------------------------------------------

    def stage(self, name: str, total: int) -> None:
        """Begin a stage: `total` is what `tell` will come to."""
        # What the stage before has freed is not beside what this one takes.
        trim()
        self._stage, self._done, self._total = name, 0, total
        self.tell(0)

    def tell(self, n: int) -> None:
        """Tell that `n` more of the stage is done."""
        self._go_on()
        with self._lock:
            self._done += n
            if self._progress is not None:
                self._progress(self._stage, self._done, self._total)

    def each(self, work: Callable[[int, T], Any], parts: Iterable[T]) -> None:
        """Let the threads take the parts, one after another: ``work(thread, part)``.

        After an error or an interrupt no part is begun, and who works on one stops
        where it tells or forgets next; when this raises none is worked on.
        """
        lock = Lock()
        coming, ended = iter(parts), object()

        def run(thread: int) -> None:
            # Who is told to give up has no error of its own.
            with suppress(GivenUpError):
                while True:
                    self._go_on()
                    part: Any = None  # what is done goes before more is made
                    with lock:
                        part = next(coming, ended)
                    if part is ended:
                        return
                    work(thread, part)

        self.threads.abreast(run, self.threads.n, give_up=self._given_up.set)

    def _go_on(self) -> None:
        if self._given_up.is_set():
            raise GivenUpError


def _remove_abandoned(path: Path) -> None:
    """Remove a folder of `Scratch` whose process was killed.

    Whatever takes its name meanwhile, nothing is removed but files of the folder that
    was looked at.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return
        try:
            owner = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            path.rmdir()  # killed before it had an owner or after, it is empty
            return
        try:
            if is_abandoned(owner):
                _empty(folder)
                path.rmdir()
        finally:
            os.close(owner)
    finally:
        os.close(folder)


def _empty(folder: int) -> None:
    """Remove the files of a folder that is open, last the one that tells what it is."""
    for name in sorted(os.listdir(folder), key=OWNER.__eq__):
        os.unlink(name, dir_fd=folder)
