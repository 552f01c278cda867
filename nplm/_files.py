"""Files that appear whole or not at all, and files that are mapped into memory."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

__all__ = ["GIBI", "allocate", "forget", "full_disk_named", "replacing", "trim"]

FULL = (errno.ENOSPC, errno.EDQUOT)
GIBI = 1 << 30


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path`; it takes its place when all is written.

    After an error `path` is as it was; after a kill or a power cut it is the old
    file or the new one, with perhaps an unfinished ``.part`` file beside it. A link
    stays, and what it names is replaced.
    """
    if path.is_symlink():
        path = path.resolve()
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(unfinished, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    # The new name is on the disk when the folder is.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


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
