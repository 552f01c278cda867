"""Files that are written atomically, opened for reading, or mapped into memory."""

from __future__ import annotations

import errno
import io
import mmap
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from nplm.base import system

if TYPE_CHECKING:
    from numpy.typing import NDArray

FULL = (errno.ENOSPC, errno.EDQUOT)
GIBI = 1 << 30


def opened(path: str | os.PathLike[str], *, pipes: bool = False) -> io.BufferedReader:
    """Open a file for reading; a named pipe or a device only with `pipes`, as for text.

    A pipe without a name in a folder (``/dev/stdin``, a shell's ``<(...)``) is open
    already, and is always accepted. Raises OSError for others, and for a folder.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(
            f"{os.fspath(path)} is a folder: pass the name of a file in it."
        )
    is_unnamed = stat.S_ISFIFO(mode) and not os.path.exists(os.path.realpath(path))
    if not (pipes or is_unnamed):
        check_regular(path)
    return open(path, "rb")


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise OSError if a file, which is read more than once, is a pipe or a device."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(
            f"{os.fspath(path)} is a pipe or a device: write its contents to a file, "
            "and pass the name of that file."
        )


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return `path`, or raise an error if it cannot be written."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it to write.")
    if path.exists() and not path.is_file():
        raise OSError(
            f"cannot write {path}: it is a device or a pipe, which a file would "
            "replace; name a file."
        )
    folder = followed(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {folder}; create it first."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"cannot write {path}: the folder {folder} is read-only for this "
            "user; choose another folder, or change its permissions."
        )
    return path


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path`, which replaces `path` once it is complete.

    A kill may leave an unfinished ``.part`` file, which the next writer of this machine
    removes. The target of a link is replaced. Permissions stay those of the old file.
    """
    path = followed(path)
    _remove_unfinished(path)
    suffix = _machine_id() + os.urandom(4).hex()
    unfinished = path.with_name(f"{path.name}.{suffix}.part")
    try:
        full = full_disk_named(path.absolute().parent, "more is")
        with full, owned(unfinished) as file:
            # Before the first write: the old file may be private.
            _keep_permissions(path, file)
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Under its lock: no other process removes it meanwhile.
            unfinished.replace(path)
    except BaseException:
        with suppress(OSError):  # it would hide the original error or interrupt
            unfinished.unlink()
        raise
    # The new name is on the disk once the folder is synced.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep_permissions(path: Path, file: BinaryIO) -> None:
    """Copy the permissions of the replaced file, if any, to a new file."""
    with suppress(FileNotFoundError):
        old = stat.S_IMODE(path.lstat().st_mode) & 0o777
        # Only if they differ: some file systems refuse every change.
        if stat.S_ISREG(path.lstat().st_mode) and old != stat.S_IMODE(
            os.fstat(file.fileno()).st_mode
        ):
            os.fchmod(file.fileno(), old)


def followed(path: Path) -> Path:
    """Return the file that is written at `path`: the target if it is a link."""
    # Not resolve(), which raises in a cycle of links: one of them is replaced.
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _machine_id() -> str:
    """Return eight hexadecimal digits that identify this machine in file names."""
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"


def _remove_unfinished(path: Path) -> None:
    """Remove the unfinished files of this machine's killed processes."""
    # The locks of other machines may be invisible here.
    suffix = _machine_id() + "[0-9a-f]{8}"
    unfinished = re.compile(rf"{re.escape(path.name)}\.{suffix}\.part")
    # All names at once: an interrupt would leave a folder's iterator open.
    for name in os.listdir(path.parent):
        if unfinished.fullmatch(name):
            with suppress(OSError), open(path.with_name(name), "r+b") as file:
                system.lock(file.fileno(), wait=False)
                path.with_name(name).unlink()


@contextmanager
def owned(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, locked to show other processes that it is in use."""
    while True:
        with open(path, "x+b") as file:
            try:
                system.lock(file.fileno(), wait=True)
            except OSError as error:
                if error.errno not in system.NO_LOCKS:
                    raise
            if path.exists():  # else another process removed it before it was locked
                yield file
                return


def allocate(file: BinaryIO, n_bytes: int, folder: Path) -> None:
    """Allocate disk space: writing to a mapped file on a full disk ends the process."""
    with full_disk_named(folder, f"{n_bytes / GIBI:.3g} GiB"):
        if n_bytes and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.truncate(n_bytes)


class FullDiskError(OSError):
    """The error of a full disk, with its folder."""


@contextmanager
def full_disk_named(folder: Path, needs: str) -> Iterator[None]:
    """Add the folder and the space needed there to the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or isinstance(error, FullDiskError):
            raise
        free = shutil.disk_usage(folder).free
        raise FullDiskError(
            error.errno,
            f"the disk of {folder} is full: {needs} needed there, and "
            f"{free / GIBI:.3g} GiB left; free some space, or choose another folder",
        ) from error


def release_pages(*arrays: NDArray[Any]) -> None:
    """Release the memory of mapped arrays; their values stay in the files."""
    for array in arrays:
        pages = getattr(array, "_mmap", None)
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


def use_large_pages(array: NDArray[Any]) -> None:
    """Ask the system to fill a mapped array in large pages: reads are faster."""
    pages = getattr(array, "_mmap", None)
    if pages is not None and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)


def user_cache() -> Path:
    """Return ``nplm`` in ``XDG_CACHE_HOME`` (``~/.cache``); it need not exist."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "nplm"
