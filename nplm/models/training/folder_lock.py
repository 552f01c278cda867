"""FolderLock: a folder for the state of one fit at a time."""

from __future__ import annotations

import os
import platform
import re
import secrets
import stat
import tempfile
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from typing import IO, Self

from nplm.base import system
from nplm.base.exceptions import CheckpointError, ParameterMessage
from nplm.base.files.atomic_files import full_disk_named

LOCK = "lock"
# The files of the saves of a fit, and of its whole state.
SAVES = re.compile(r"latest\.json|save-\d+\.\d+-of-\d+\.\w+")
STATE_FILES = re.compile(rf"choice\.json|{SAVES.pattern}")


class FolderLock(os.PathLike[str]):
    """A folder for the state of one fit at a time, which a context makes and locks.

    It is the path of the folder, too: a fit that is given it has the lock already, and
    enters it again. The lock ends with the outer context, or with this process. Its
    file is then removed if there is no state left, and so is an empty folder.

    - `rank`: of this process; the first of several locks the folder
    - `token`: written to the lock, to identify this process
    """

    def __init__(self, folder: str | os.PathLike[str], rank: int = 0) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(
                f"checkpoint={folder!r} is of type {type(folder).__name__}: pass the "
                "path of a folder, as a str or a pathlib.Path."
            )
        if not os.fspath(folder):
            raise ValueError("checkpoint='' is no folder: pass the path of one.")
        self.path, self._rank = Path(folder), rank
        process = f"process {os.getpid()} on {platform.node()}"
        self.token = f"{process} {secrets.token_hex()}"
        self._file: IO[str] | None = None
        self._depth = 0

    @classmethod
    def of(cls, folder: str | os.PathLike[str], rank: int = 0) -> FolderLock:
        """Return the lock of a folder, which may be one."""
        return folder if isinstance(folder, FolderLock) else cls(folder, rank)

    def __fspath__(self) -> str:
        """Return the path of the folder."""
        return str(self.path)

    def __enter__(self) -> Self:
        if not self._depth:
            try:
                self._lock()
            except BaseException:
                self._unlock()
                raise
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            with suppress(OSError):  # the folder is gone, or no longer writable
                names = os.listdir(self.path)
                if self._file and not any(map(STATE_FILES.fullmatch, names)):
                    (self.path / LOCK).unlink()
                    self.path.rmdir()  # unless it has other files
            self._unlock()

    def _unlock(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _lock(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            message = ParameterMessage(
                "{0} cannot be the folder of the fit's state, because it or one of its "
                "parents is a file: choose another {checkpoint:folder}.", self.path,
            )  # fmt: skip
            raise type(error)(message) from None
        # Only a write is conclusive: os.access ignores read-only file systems.
        tempfile.TemporaryFile(dir=self.path).close()
        if self._rank > 0:
            return
        self._file = _open_lock(self.path / LOCK)
        try:
            system.lock(self._file.fileno(), wait=False)
        except BlockingIOError as error:
            holder = self._file.read().rpartition(" ")[0]  # its token
            message = ParameterMessage(
                "Another fit{0} is using {1}: wait until it ends, or choose another "
                "{checkpoint:folder}.", holder and f" ({holder})", self.path,
            )  # fmt: skip
            raise CheckpointError(message) from error
        except OSError as error:
            if error.errno not in system.NO_LOCKS:
                raise
        with full_disk_named(self.path, "more is"):
            self._file.truncate(0)
            self._file.write(self.token)
            self._file.flush()
            os.fsync(self._file.fileno())


def _open_lock(path: Path) -> IO[str]:
    """Open a file for writing, without following a link."""
    # O_NONBLOCK, because a pipe may wait for a reader.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        number = os.open(path, flags, 0o666)
    except IsADirectoryError as error:
        raise CheckpointError(
            f"{path} is a folder, but the checkpoint needs a file of that name: "
            "remove it."
        ) from error
    except OSError as error:
        if error.errno != ELOOP:
            raise
        raise CheckpointError(
            f"{path} is a link, and its target would be written over: remove it."
        ) from error
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise CheckpointError(
            f"{path} is a pipe, a device or a file with a second hard link, and would "
            "be written over: remove it."
        )
    return open(number, "r+")
