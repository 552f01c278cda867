"""Checkpoints of a fit: written atomically, read without running code."""

from __future__ import annotations

import json
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from nplm.base.array_types import AnyArray
from nplm.base.exceptions import CheckpointError, DivergenceError, ParameterMessage
from nplm.base.files.atomic_files import replacing
from nplm.base.files.tensors import CHECKSUM, read_tensors, write_tensors
from nplm.base.fitted import INVALID_VALUE_ERRORS, Fitted
from nplm.base.warnings import warn
from nplm.models.training.folder_lock import LOCK, SAVES, FolderLock
from nplm.models.training.parallel.processes import Processes

T = TypeVar("T")

# Interval of saves within an epoch, at most; the end of an epoch is always saved.
SECONDS_A_SAVE = 60.0
# It is shorter where saves take less than this share of it, so that a fit of a minute
# is not lost; but not shorter than these seconds.
SAVE_SHARE, LEAST_SECONDS_A_SAVE = 0.01, 5.0
FORMAT = 5
PROCESSES = "processes"  # key of their number in a fingerprint
STATE = "state"  # key of the JSON state, beside the arrays
ROWS_PER_CHUNK = 4096
# Errors that unexpected content of a checkpoint can raise.
CONTENT_ERRORS = (*INVALID_VALUE_ERRORS, RecursionError)

# Parameters that may differ in a resumed fit: they do not change its results.
IGNORED_PARAMETERS = ("max_iter", "verbose")


def fingerprint(
    parameters: dict[str, object], data: Mapping[str, AnyArray | None]
) -> dict[str, str]:
    """Identify a fit by its parameters, and the shapes and checksums of its data."""
    values = {name: str(value) for name, value in parameters.items()}
    for name, array in data.items():
        if array is None:
            values[name] = "None"
        else:
            values[name] = f"{array.dtype} {array.shape}, checksum {_crc(array):08x}"
    return values


def _crc(array: AnyArray) -> int:
    """Return the CRC-32 of an array, in chunks to avoid copies of whole views."""
    crc = 0
    for start in range(0, len(array), ROWS_PER_CHUNK):
        chunk = np.ascontiguousarray(array[start : start + ROWS_PER_CHUNK])
        crc = zlib.crc32(chunk.data, crc)
    return crc


def check_same_fit(
    folder: Path, fit_before: Mapping[str, str], fit: Mapping[str, str]
) -> None:
    """Raise CheckpointError if the fit of a folder has another fingerprint than `fit`.

    The first difference is reported: data, which follow from parameters, come last.
    """
    for name in dict.fromkeys([*fit, *fit_before]):
        was, now = fit_before.get(name), fit.get(name)
        if was != now:
            name, _, part = name.partition(".")
            what = "number of processes" if name == PROCESSES else f"{{{name}}}"
            what = f"{part} of {what}" if part else what
            message = ParameterMessage(
                f"The checkpoint in {{0}} is of another fit: its {what} was {{1}}, now "
                "it is {2}. To resume, pass the same value; to start anew, choose "
                "another {checkpoint:folder}.", folder, was, now,
            )  # fmt: skip
            raise CheckpointError(message)


def has_save(folder: Path) -> bool:
    """Return whether a folder has a save that a fit can resume from."""
    return (folder / "latest.json").exists()


def discard(folder: str | os.PathLike[str]) -> None:
    """Remove the saves of a finished fit, but no other files of the folder.

    A `FolderLock` keeps its lock, and removes the folder itself.
    """
    path, has_lock = Path(folder), isinstance(folder, FolderLock)
    if not path.is_dir():
        return
    for name in os.listdir(path):
        is_lock = name == LOCK and not has_lock
        if is_lock or SAVES.fullmatch(name):
            with suppress(OSError):  # a directory, or no permission
                (path / name).unlink()
    with suppress(OSError):  # not empty
        path.rmdir()


class _Latest(NamedTuple):
    """The latest save: its number, and the checksum of each process's file."""

    number: int
    checksums: list[str]


class Checkpoint:
    """The latest saved state of one fit, in a folder of its own.

    A save has one file per process. ``latest.json`` names the latest complete save and
    has the checksums of its files. All files of a save are on disk before
    ``latest.json`` is replaced atomically, and the files of the previous save are
    removed afterwards: whenever the fit is killed, one complete save exists. As a
    context manager, a checkpoint locks the folder and handles interrupts of several
    processes.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fingerprint: dict[str, str],
        processes: Processes,
    ) -> None:
        self._lock = FolderLock.of(folder, processes.rank)
        self.folder = self._lock.path
        self._fingerprint = {
            k: v for k, v in fingerprint.items() if k not in IGNORED_PARAMETERS
        }
        self._fingerprint[PROCESSES] = str(processes.size)
        self.rank, self.n_ranks = processes.rank, processes.size
        self._processes = processes
        self._interrupts = processes.interrupts()
        self._number = 0
        self._saved_at, self._save_seconds = time.monotonic(), 0.0

    def __enter__(self) -> Self:
        processes = self._processes
        try:
            processes.all_or_none(self._lock.__enter__)
            token = processes.everyones(self._lock.token)[0]
            processes.all_or_none(lambda: self._check_shared(token))
        except BaseException:  # in another process, perhaps
            self._lock.__exit__()
            raise
        self._meet = self._interrupts.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is DivergenceError:  # it would diverge again
            discard(self._lock)
        self._lock.__exit__()
        self._interrupts.__exit__(kind, *error)

    def _check_shared(self, token: str) -> None:
        """Raise an error if the first process has another folder."""
        lock = self.folder / LOCK
        if not lock.is_file() or lock.read_text() != token:
            raise CheckpointError(
                f"Process {self.rank} cannot read in {self.folder} what process 0 "
                "wrote there: choose a folder on a file system that all processes "
                "share."
            )

    def due(self) -> tuple[bool, KeyboardInterrupt | None]:
        """Return whether to save now, and the interrupt to raise afterwards, if any."""
        interval = max(LEAST_SECONDS_A_SAVE, self._save_seconds / SAVE_SHARE)
        interval = min(interval, SECONDS_A_SAVE)
        due, interrupt = self._meet(time.monotonic() - self._saved_at >= interval)
        return due or interrupt is not None, interrupt

    def save(self, arrays: dict[str, AnyArray], state: Mapping[str, object]) -> None:
        """Replace the latest save; warn if it cannot be written."""
        began = time.monotonic()
        self._number += 1
        number, path = self._number, self._file(self._number)
        text = {STATE: json.dumps(state)}
        checksum, failure = self._try(
            lambda: write_tensors(_without_link(path), arrays, text)
        )
        if failure is not None:
            # The folder may be gone or no longer writable: the fit continues.
            with suppress(OSError):
                path.unlink()
        else:
            latest = _Latest(number, self._processes.everyones(checksum or ""))
            _, failure = self._try(lambda: self._point_to(latest))
        if failure is None:
            self._remove_others(number)
        elif self.rank == 0:
            warn(
                f"The fit continues, but could not be saved to {self.folder}: "
                f"{failure}.",
                RuntimeWarning,
            )
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began

    def load(self, resume: Callable[[Fitted, Fitted], T]) -> T | None:
        """Return what `resume` makes of the untrusted latest save; None without."""
        processes = self._processes
        latest = processes.everyones(processes.all_or_none(self._latest))[0]
        if latest is None:
            return None
        self._number = latest.number
        resumed = processes.all_or_none(lambda: self._read(latest, resume))
        self._remove_others(latest.number)
        return resumed

    def _try(self, work: Callable[[], T]) -> tuple[T | None, str | None]:
        """Call `work` in every process; return its result and any process's OSError."""
        done, failure = None, None
        try:
            done = work()
        except OSError as error:
            failure = str(error)
        return done, next(filter(None, self._processes.everyones(failure)), None)

    def _point_to(self, save: _Latest) -> None:
        """Write ``latest.json``, in the first process."""
        if self.rank == 0:
            latest = {
                "format": FORMAT, "save": save.number, "files": save.checksums,
                "fit": self._fingerprint,
            }  # fmt: skip
            text = json.dumps(latest).encode()
            with replacing(_without_link(self.folder / "latest.json")) as file:
                file.write(text)

    def _latest(self) -> _Latest | None:
        """Read ``latest.json`` if it exists, in the first process."""
        path = self.folder / "latest.json"
        if self.rank > 0 or not path.exists():
            return None
        try:
            _check_is_file(path)
            latest = Fitted(json.loads(path.read_bytes()))
            version = latest.take("format")
            if version != FORMAT:
                raise CheckpointError(
                    f"{path} is a checkpoint of format {version!r:.80}, but this "
                    f"version of nplm reads format {FORMAT}: finish the fit with the "
                    "version that started it."
                )
            save = _Latest(latest.whole("save", 1), latest.texts("files"))
            fingerprint = latest.take("fit", dict)
            latest.done()
        except CONTENT_ERRORS as error:
            if isinstance(error, CheckpointError):
                raise
            raise self._damaged(path, error) from error
        check_same_fit(self.folder, fingerprint, self._fingerprint)
        if len(save.checksums) != self.n_ranks:
            raise self._damaged(path, ValueError(f"{len(save.checksums)} checksums"))
        return save

    def _read(self, save: _Latest, resume: Callable[[Fitted, Fitted], T]) -> T:
        path = self._file(save.number)
        try:
            _check_is_file(path)
            # A mapping suffices: `resume` copies the arrays.
            arrays, texts = read_tensors(path, mmap=True)
            if texts.get(CHECKSUM) != save.checksums[self.rank]:
                raise ValueError("its checksum is not the one in latest.json")
            state = Fitted(json.loads(texts[STATE]))
            checked = Fitted(arrays)
            resumed = resume(checked, state)
            checked.done()
            state.done()
        except (*CONTENT_ERRORS, FileNotFoundError) as error:
            raise self._damaged(path, error) from error
        return resumed

    def _file(self, number: int) -> Path:
        name = f"save-{number}.{self.rank}-of-{self.n_ranks}.safetensors"
        return self.folder / name

    def _remove_others(self, number: int) -> None:
        """Remove this process's files of other saves, complete or not."""
        of_this_process = re.compile(
            rf"save-\d+\.{self.rank}-of-{self.n_ranks}\.safetensors(\.\w+\.part)?"
            + (r"|latest\.json\.\w+\.part" if self.rank == 0 else "")
        )
        kept = self._file(number).name
        names: list[str] = []
        with suppress(OSError):  # the folder is no longer readable
            # A list, because an interrupt would leave an iterated folder open.
            names = os.listdir(self.folder)
        for name in names:
            if name != kept and of_this_process.fullmatch(name):
                with suppress(OSError):
                    (self.folder / name).unlink()

    def _damaged(self, path: Path, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{path} is damaged ({type(error).__name__}: {error}); the fit cannot be "
            f"resumed from it. Remove {self.folder} to start anew."
        )


def _without_link(path: Path) -> Path:
    """Return `path`, removed if it is a link, so that a write does not follow it."""
    if path.is_symlink():
        path.unlink()
    return path


def _check_is_file(path: Path) -> None:
    """Raise a ValueError for a folder, or for a pipe, which would block."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise ValueError(f"it is {kind}, not a file")
