"""Checkpoints of a fit: written whole or not at all, read without running code."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from errno import ELOOP
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from nplm.base.exceptions import CheckpointError
from nplm.base.files.atomic_files import NO_LOCKS, replacing
from nplm.base.files.tensors import CHECKSUM, read_tensors, write_tensors
from nplm.base.fitted import Fitted
from nplm.base.warnings import warn
from nplm.training.parallel.processes import Processes

__all__ = ["Checkpoint", "discard", "fingerprint", "has_save"]

T = TypeVar("T")

# Between two saves within an epoch; the end of an epoch is always saved.
SECONDS_A_SAVE = 60.0
FORMAT = 3
STATE = "state"  # the name of all that is not an array, beside the arrays
ROWS_A_PIECE = 4096
# What is raised by things that are not of the kind that they should be.
UNFIT = (
    ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip

# Parameters that may differ when a fit goes on: none changes what is computed.
FREE = ("max_iter", "verbose")


def fingerprint(
    parameters: dict[str, Any], data: dict[str, NDArray[Any] | None]
) -> dict[str, str]:
    """Tell one fit from another: parameters, and shapes and checksums of the data."""
    marks = {name: str(value) for name, value in parameters.items()}
    for name, array in data.items():
        if array is None:
            marks[name] = "None"
        else:
            marks[name] = f"{array.dtype} {array.shape}, checksum {_crc(array):08x}"
    return marks


def _crc(array: NDArray[Any]) -> int:
    """CRC-32 of an array; a piece at a time, for windows share their memory."""
    crc = 0
    for start in range(0, len(array), ROWS_A_PIECE):
        piece = np.ascontiguousarray(array[start : start + ROWS_A_PIECE])
        crc = zlib.crc32(piece.data, crc)
    return crc


def has_save(folder: Path) -> bool:
    """Whether a fit can go on from what is there."""
    return (folder / "latest.json").exists()


def discard(folder: Path) -> None:
    """Remove the saves of a fit that is done, but nothing that others put there."""
    if not folder.is_dir():
        return
    for name in os.listdir(folder):
        if re.fullmatch(r"lock|latest\.json|save-\d+\.\d+-of-\d+\.\w+", name):
            with suppress(OSError):  # a folder of that name, or no permission
                (folder / name).unlink()
    with suppress(OSError):  # not empty
        folder.rmdir()


class _Latest(NamedTuple):
    """The last save: its number, and the checksum of each process's file."""

    number: int
    checksums: list[str]


class Checkpoint:
    """The last saved state of one fit, in a folder of its own.

    ``latest.json`` says which save is whole, and has the checksums of its files, of
    which each process of the fit has one. All files of a save are on disk before
    ``latest.json`` is replaced, in one step, and those of the save before are removed
    after it: whenever the fit is killed, one whole save is there. As a context, it has
    the folder to itself, and hears of interrupts of several processes.

    Parameters
    ----------
    folder : path-like
        Made if need be.
    marks : dict of str to str
        The `fingerprint` of the fit.
    processes : Processes
        Those that share the fit.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        marks: dict[str, str],
        processes: Processes,
    ) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(
                f"checkpoint={folder!r} is of type {type(folder).__name__}: give the "
                "path of a folder, as a str or a pathlib.Path."
            )
        self._given, self.folder = folder, Path(folder)
        self.marks = {k: v for k, v in marks.items() if k not in FREE}
        self.marks["processes"] = str(processes.size)
        self.rank, self.n_ranks = processes.rank, processes.size
        self._processes = processes
        self._lock: IO[str] | None = None
        self._interrupts = processes.interrupts()
        self._number = 0
        self._saved_at = time.monotonic()

    def __enter__(self) -> Self:
        processes, token = self._processes, secrets.token_hex()
        try:
            processes.all_or_none(lambda: self._take(token))
            token = processes.everyones(token)[0]
            processes.all_or_none(lambda: self._check_shared(token))
        except BaseException:
            self._let_go()
            raise
        self._meet = self._interrupts.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._let_go()
        self._interrupts.__exit__(*error)

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _take(self, token: str) -> None:
        """Take the folder for this fit, for as long as this process lives."""
        if not os.fspath(self._given):
            raise ValueError("checkpoint='' names no folder.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise type(error)(
                f"checkpoint={str(self.folder)!r} cannot be a folder, for there is a "
                "file of that name, or of one before it: name another."
            ) from None
        # Only writing tells: permissions say yes on a read-only file system.
        tempfile.TemporaryFile(dir=self.folder).close()
        if self.rank > 0:
            return
        self._lock = _own_file(self.folder / "lock")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CheckpointError(
                f"Another fit is at work in {self.folder}: wait for its end, or give "
                "this one a folder of its own."
            ) from error
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        self._lock.truncate(0)
        self._lock.write(token)
        self._lock.flush()
        os.fsync(self._lock.fileno())

    def _check_shared(self, token: str) -> None:
        """Raise when the first process's folder is not this one's."""
        lock = self.folder / "lock"
        if not lock.is_file() or lock.read_text() != token:
            raise CheckpointError(
                f"Process {self.rank} does not find in {self.folder} what process 0 "
                "writes there: the processes of a fit need one folder for all."
            )

    def due(self) -> tuple[bool, KeyboardInterrupt | None]:
        """Whether the last save is long ago, and what ends all processes after one."""
        due, interrupt = self._meet(time.monotonic() - self._saved_at >= SECONDS_A_SAVE)
        return due or interrupt is not None, interrupt

    def save(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Replace the last save by this one; when it cannot be written, warn."""
        self._number += 1
        number, path = self._number, self._file(self._number)
        text = {STATE: json.dumps(state)}
        checksum, failure = self._try(
            lambda: write_tensors(_no_link(path), arrays, text)
        )
        if failure is not None:
            # The folder may be gone, or not ours any more: the fit goes on.
            with suppress(OSError):
                path.unlink()
        else:
            latest = _Latest(number, self._processes.everyones(checksum or ""))
            _, failure = self._try(lambda: self._point_to(latest))
        if failure is None:
            self._remove_others(number)
        elif self.rank == 0:
            warn(
                f"The fit goes on, but could not be saved to {self.folder}: {failure}.",
                RuntimeWarning,
            )
        self._saved_at = time.monotonic()

    def load(self, resume: Callable[[Fitted, Fitted], T]) -> T | None:
        """Give what `resume` makes of the last save; None if there is none.

        Parameters
        ----------
        resume : callable
            Called with the arrays and the state, of which nothing is believed: it has
            to take all of both. A ValueError says that no fit saved them.
        """
        processes = self._processes
        latest = processes.everyones(processes.all_or_none(self._latest))[0]
        if latest is None:
            return None
        self._number = latest.number
        made = processes.all_or_none(lambda: self._read(latest, resume))
        self._remove_others(latest.number)
        return made

    def _try(self, work: Callable[[], T]) -> tuple[T | None, str | None]:
        """Do it in every process; give what a disk said against it in one."""
        done, failure = None, None
        try:
            done = work()
        except OSError as error:
            failure = str(error)
        return done, next(filter(None, self._processes.everyones(failure)), None)

    def _point_to(self, save: _Latest) -> None:
        """Make it the last save; the first process does."""
        if self.rank == 0:
            latest = {
                "format": FORMAT, "save": save.number, "files": save.checksums,
                "fit": self.marks,
            }  # fmt: skip
            text = json.dumps(latest).encode()
            with replacing(_no_link(self.folder / "latest.json")) as file:
                file.write(text)

    def _latest(self) -> _Latest | None:
        """Give the last save, if any; the first process does."""
        path = self.folder / "latest.json"
        if self.rank > 0 or not path.exists():
            return None
        try:
            _check_is_file(path)
            latest = Fitted(json.loads(path.read_bytes()))
            version = latest.take("format")
            if version != FORMAT:
                raise CheckpointError(
                    f"{path} is a checkpoint of format {version!r:.80}, and this nplm "
                    f"reads format {FORMAT}: finish the fit with the nplm that began "
                    "it."
                )
            save = _Latest(latest.whole("save", 1), latest.texts("files"))
            marks = latest.take("fit", dict)
            latest.done()
        except UNFIT as error:
            if isinstance(error, CheckpointError):
                raise
            raise self._damaged(path, error) from error
        self._check_same_fit(marks)
        if len(save.checksums) != self.n_ranks:
            raise self._damaged(path, ValueError(f"{len(save.checksums)} checksums"))
        return save

    def _read(self, save: _Latest, resume: Callable[[Fitted, Fitted], T]) -> T:
        path = self._file(save.number)
        try:
            _check_is_file(path)
            # What goes on copies them: into the arrays that it has.
            arrays, texts = read_tensors(path, mmap=True)
            if texts.get(CHECKSUM) != save.checksums[self.rank]:
                raise ValueError("it is not the file that latest.json has noted")
            state = Fitted(json.loads(texts[STATE]))
            taken = Fitted(arrays)
            made = resume(taken, state)
            taken.done()
            state.done()
        except (*UNFIT, FileNotFoundError) as error:
            raise self._damaged(path, error) from error
        return made

    def _file(self, number: int) -> Path:
        name = f"save-{number}.{self.rank}-of-{self.n_ranks}.safetensors"
        return self.folder / name

    def _remove_others(self, number: int) -> None:
        """Remove this process's files of other saves, finished or not."""
        own = re.compile(
            rf"save-\d+\.{self.rank}-of-{self.n_ranks}\.safetensors(\.\w+\.part)?"
            + (r"|latest\.json\.\w+\.part" if self.rank == 0 else "")
        )
        kept = self._file(number).name
        names: list[str] = []
        with suppress(OSError):  # the folder cannot be read any more
            # Names at once: an interrupt would leave a folder open that is gone
            # through.
            names = os.listdir(self.folder)
        for name in names:
            if name != kept and own.fullmatch(name):
                with suppress(OSError):
                    (self.folder / name).unlink()

    def _check_same_fit(self, marks: dict[str, str]) -> None:
        for name in sorted(self.marks.keys() | marks.keys()):
            was, now = marks.get(name), self.marks.get(name)
            if was != now:
                raise CheckpointError(
                    f"The checkpoint in {self.folder} is of another fit: its {name} "
                    f"was {was}, this one's is {now}. Give the same again to go on, or "
                    "another folder to start anew."
                )

    def _damaged(self, path: Path, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{path} is damaged ({type(error).__name__}: {error}); the fit cannot go "
            f"on from it. Remove {self.folder} to start anew."
        )


def _no_link(path: Path) -> Path:
    """Give the name of a file that is replaced, not one elsewhere that a link names."""
    if path.is_symlink():
        path.unlink()
    return path


def _check_is_file(path: Path) -> None:
    """Raise ValueError for a pipe, which would hang its reader, or a folder."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise ValueError(f"it is {kind}, not a file")


def _own_file(path: Path) -> IO[str]:
    """Open a file to write in, not one elsewhere that a link names."""
    try:
        # Without waiting: opening a pipe may wait for a reader.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        number = os.open(path, flags, 0o666)
    except IsADirectoryError as error:
        raise CheckpointError(
            f"{path} is a folder, where the checkpoint needs a file of that name: "
            "remove it."
        ) from error
    except OSError as error:
        if error.errno != ELOOP:
            raise
        raise CheckpointError(
            f"{path} is a link, and what it names would be written over: remove it."
        ) from error
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(number)
        raise CheckpointError(
            f"{path} is no file of this folder alone (but a device, or a file with a "
            "second name), and would be written over: remove it."
        )
    return open(number, "r+")
