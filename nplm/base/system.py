"""Differences between operating systems: locks, open files, forks.

Everything of POSIX alone is here, beside what Windows has in its place. The rest of
nplm calls ``system.SYSTEM``, the one of this computer.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Protocol

__all__ = ["NO_LOCKS", "SYSTEM", "Posix", "System", "Windows"]

# Linux's file of how much memory there is.
MEMINFO = Path("/proc/meminfo")
# Errors of a file system without locks; network file systems return ENOLCK too.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


class System(Protocol):
    """The operations that nplm needs from an operating system."""

    def lock(self, number: int, *, wait: bool) -> None:
        """Lock an open file for this process, until the file is closed.

        Raises
        ------
        BlockingIOError
            If another process has locked it, without `wait`.
        OSError
            For example one of `NO_LOCKS`, if the file system has no locks.
        """

    def open_unfollowed(self, path: Path) -> int:
        """Open a file to read and write, made if it is missing, and no link.

        Raises
        ------
        IsADirectoryError
            If it is a folder.
        OSError
            With the number ELOOP if it is a link.
        """

    def set_mode(self, number: int, mode: int) -> None:
        """Set the permissions of an open file."""

    def replace(self, file: BinaryIO, unfinished: Path, path: Path) -> None:
        """Rename an open file that this process has locked; it may be closed."""

    def unlink(self, file: BinaryIO, path: Path) -> None:
        """Remove an open file that this process has locked; it may be closed."""

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a folder are on disk."""

    def remove_abandoned(self, folder: Path, owner: str) -> None:
        """Remove a folder of this user if nobody has locked its file `owner`.

        The folder contains only files. It stays, or an OSError is raised, in any doubt.
        """

    def is_own(self, number: int) -> bool:
        """Whether this user owns an open file, as far as the system tells."""

    def read_at(self, number: int, buffer: memoryview, offset: int) -> int:
        """Fill a buffer from an open file; return the number of bytes read."""

    def after_fork(self, reset: Callable[[], None]) -> None:
        """Call `reset` in every process that is forked from this one."""

    def trim(self) -> None:
        """Return freed memory to the system."""

    def available_memory(self) -> int | None:
        """Return the bytes of memory that new work may take, None if unknown."""


class Posix:
    """Linux, macOS and other Unix systems."""

    def __init__(self, fcntl: Any) -> None:
        self._fcntl = fcntl

    def lock(self, number: int, *, wait: bool) -> None:
        """Lock a file with ``flock``."""
        fcntl = self._fcntl
        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def open_unfollowed(self, path: Path) -> int:
        """Open a file; O_NONBLOCK, because a pipe may wait for a reader."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(path, flags, 0o666)

    def set_mode(self, number: int, mode: int) -> None:
        """Set the permissions."""
        os.fchmod(number, mode)

    def replace(self, file: BinaryIO, unfinished: Path, path: Path) -> None:
        """Rename the file under its lock: no other process removes it meanwhile."""
        unfinished.replace(path)

    def unlink(self, file: BinaryIO, path: Path) -> None:
        """Remove the file under its lock."""
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        """Sync the folder, as a file."""
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove_abandoned(self, folder: Path, owner: str) -> None:
        """Remove the files through the open folder.

        So nothing else is removed if another folder takes its name meanwhile.
        """
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if not self.is_own(opened):
                return
            try:
                number = os.open(owner, os.O_RDWR | os.O_NOFOLLOW, dir_fd=opened)
            except FileNotFoundError:
                folder.rmdir()  # empty: killed before or after it was locked
                return
            try:
                self.lock(number, wait=False)
                for name in sorted(os.listdir(opened), key=owner.__eq__):
                    os.unlink(name, dir_fd=opened)  # the locked file last
                folder.rmdir()
            finally:
                os.close(number)
        finally:
            os.close(opened)

    def is_own(self, number: int) -> bool:
        """Compare the owner with the user of this process."""
        return os.fstat(number).st_uid == os.geteuid()

    def read_at(self, number: int, buffer: memoryview, offset: int) -> int:
        """Read without a position, so that threads share the file."""
        return os.preadv(number, [buffer], offset)

    def after_fork(self, reset: Callable[[], None]) -> None:
        """Register the function."""
        os.register_at_fork(after_in_child=reset)

    def trim(self) -> None:
        """Call glibc's ``malloc_trim``, where it is."""
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)

    def available_memory(self) -> int | None:
        """Return what Linux calls available; elsewhere half of all memory.

        Linux before 3.14, and some containers, tell only what is free or holds files.
        """
        try:
            lines = MEMINFO.read_text().splitlines()
            kibi = {name: int(own[0]) for name, *own in map(str.split, lines) if own}
            names = ["MemAvailable:"]
            if names[0] not in kibi:
                names = ["MemFree:", "Buffers:", "Cached:"]
            return sum(kibi[name] for name in names) << 10
        except (OSError, ValueError, KeyError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


class Windows:
    """Windows, where an open file has no other name, and nothing forks."""

    # Others cannot read locked bytes: lock one beyond the end of the file.
    LOCKED_BYTE = 1 << 40
    SECONDS_TO_WAIT = 0.02

    def __init__(self, msvcrt: Any) -> None:
        self._msvcrt = msvcrt
        self._reading = Lock()

    def lock(self, number: int, *, wait: bool) -> None:
        """Lock a byte of the file."""
        position = os.lseek(number, 0, os.SEEK_CUR)
        os.lseek(number, self.LOCKED_BYTE, os.SEEK_SET)
        try:
            while not self._try_lock(number):
                if not wait:
                    raise BlockingIOError(errno.EAGAIN, "another process locked it")
                time.sleep(self.SECONDS_TO_WAIT)
        finally:
            os.lseek(number, position, os.SEEK_SET)

    def _try_lock(self, number: int) -> bool:
        try:
            self._msvcrt.locking(number, self._msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
            return False
        return True

    def open_unfollowed(self, path: Path) -> int:
        """Look at the file first, for there is no flag."""
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        return os.open(path, flags, 0o666)

    def set_mode(self, number: int, mode: int) -> None:
        """Do nothing: a new file has the permissions of its folder."""

    def replace(self, file: BinaryIO, unfinished: Path, path: Path) -> None:
        """Close the file, which has no lock then, and rename it."""
        file.close()
        unfinished.replace(path)

    def unlink(self, file: BinaryIO, path: Path) -> None:
        """Close the file and remove it: that fails if another process opened it."""
        file.close()
        path.unlink()

    def sync_folder(self, path: Path) -> None:
        """Do nothing: a folder cannot be synced."""

    def remove_abandoned(self, folder: Path, owner: str) -> None:
        """Remove the files by their names, the locked one last."""
        if folder.is_symlink():
            return
        with suppress(FileNotFoundError), open(folder / owner, "r+b") as file:
            self.lock(file.fileno(), wait=False)
        for name in sorted(os.listdir(folder), key=owner.__eq__):
            (folder / name).unlink()
        folder.rmdir()

    def is_own(self, number: int) -> bool:
        """Return True: the folders of a user are closed to others."""
        return True

    def read_at(self, number: int, buffer: memoryview, offset: int) -> int:
        """Move to the offset and read, one thread at a time."""
        with self._reading:
            os.lseek(number, offset, os.SEEK_SET)
            found = os.read(number, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def after_fork(self, reset: Callable[[], None]) -> None:
        """Do nothing: there are no forks."""

    def trim(self) -> None:
        """Do nothing."""

    def available_memory(self) -> int | None:
        """Return None: this is untried."""
        return None


def _this() -> System:
    try:
        return Posix(import_module("fcntl"))
    except ImportError:
        return Windows(import_module("msvcrt"))


SYSTEM = _this()
