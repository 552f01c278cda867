"""Files that appear whole or not at all, that are opened, and that are mapped."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import io
import mmap
import os
import re
import secrets
import shutil
import socket
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

__all__ = [
    "GIBI", "NO_LOCKS", "allocate", "followed", "forget", "full_disk_named",
    "is_abandoned", "opened", "owned", "replacing", "trim",
]  # fmt: skip

FULL = (errno.ENOSPC, errno.EDQUOT)
# What a file system without locks says; over a network also that there are none.
NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}
GIBI = 1 << 30


def opened(path: str | os.PathLike[str], *, pipes: bool = False) -> io.BufferedReader:
    """Open a file for reading.

    Parameters
    ----------
    path : path-like
        The file.
    pipes : bool, default=False
        Whether it may be a pipe or a device, as text may be. Opening a pipe waits for
        its writer. A pipe without a name in a folder (``/dev/stdin``, a shell's
        ``<(...)``) is open already and is read in either case.

    Returns
    -------
    file : io.BufferedReader

    Raises
    ------
    IsADirectoryError
        If it is a folder.
    OSError
        If it cannot be opened, or is a pipe or a device and may not be one.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(
            f"{os.fspath(path)} is a folder: give the name of a file in it."
        )
    is_unnamed = stat.S_ISFIFO(mode) and not os.path.exists(os.path.realpath(path))
    if not (stat.S_ISREG(mode) or pipes or is_unnamed):
        raise OSError(
            f"{os.fspath(path)} is a pipe or a device: write what it gives to a file, "
            "and give the name of that file."
        )
    return open(path, "rb")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path`; it takes its place when all is written.

    After an error `path` is as it was; after a kill or a power cut it is the old
    file or the new one, with perhaps an unfinished ``.part`` file beside it, which the
    next of this machine to write there removes. A link stays, and what it names is
    replaced. The new file has the permissions of the old one.
    """
    path = followed(path)
    _remove_unfinished(path)
    mark = _machine_mark() + secrets.token_hex(4)
    unfinished = path.with_name(f"{path.name}.{mark}.part")
    try:
        with owned(unfinished) as file:
            # Before anything is written: the old file may be private.
            _keep_permissions(path, file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            unfinished.replace(path)
    except BaseException:
        with suppress(OSError):  # it would hide the error, or the interrupt, itself
            unfinished.unlink()
        raise
    # The new name is on the disk when the folder is.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep_permissions(path: Path, file: BinaryIO) -> None:
    """Give a new file the permissions of the one that it will replace, if any."""
    with suppress(FileNotFoundError):
        old = stat.S_IMODE(path.lstat().st_mode) & 0o777
        # Not where they agree: some file systems refuse every change.
        if stat.S_ISREG(path.lstat().st_mode) and old != stat.S_IMODE(
            os.fstat(file.fileno()).st_mode
        ):
            os.fchmod(file.fileno(), old)


def followed(path: Path) -> Path:
    """Give the file that is written at `path`: what links name, if anything."""
    # Not resolve(), which raises where links run in a circle: one of them is replaced.
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _machine_mark() -> str:
    """Tell this machine from others in the names of files: eight digits."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _remove_unfinished(path: Path) -> None:
    """Remove what this machine's processes left that were killed as they wrote."""
    # On another machine a lock may not be seen.
    mark = _machine_mark() + "[0-9a-f]{8}"
    own = re.compile(rf"{re.escape(path.name)}\.{mark}\.part")
    # Names at once: an interrupt would leave a folder open that is gone through.
    for name in os.listdir(path.parent):
        if own.fullmatch(name):
            with suppress(OSError), open(path.with_name(name), "r+b") as file:
                if is_abandoned(file.fileno()):
                    path.with_name(name).unlink()


@contextmanager
def owned(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that is not abandoned for as long as it is open."""
    while True:
        with open(path, "x+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            if path.exists():  # nobody has removed it before it was locked
                yield file
                return


def is_abandoned(descriptor: int) -> bool:
    """Whether a file of `owned` is of no process any more; it is then this one's."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or who knows
        return False
    return True


def allocate(file: BinaryIO, n_bytes: int, folder: Path) -> None:
    """Give a file its room now: a mapped file that finds none ends the process."""
    with full_disk_named(folder, f"{n_bytes / GIBI:.3g} GiB"):
        if n_bytes and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)


@contextmanager
def full_disk_named(folder: Path, needs: str) -> Iterator[None]:
    """Make the error of a full disk say which folder, and what is needed there."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        free = shutil.disk_usage(folder).free
        raise OSError(
            error.errno,
            f"the disk of {folder} is full: {needs} needed there, and "
            f"{free / GIBI:.3g} GiB left; free some, or name another folder",
        ) from error


def forget(*arrays: NDArray[Any]) -> None:
    """Let the memory of mapped arrays go: what they hold stays in their files."""
    for array in arrays:
        pages = getattr(array, "_mmap", None)
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


def trim() -> None:
    """Give memory that has been freed back to the system, where glibc keeps it."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)
