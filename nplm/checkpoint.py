"""Checkpoints of a fit: written whole or not at all, read without running code."""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Checkpoint", "CheckpointError", "fingerprint"]

# Between two saves within an epoch; the end of an epoch is always saved.
SECONDS_A_SAVE = 60.0
FORMAT = 1
ROWS_A_PIECE = 4096

# Parameters that may differ when a fit goes on: none changes what is computed.
FREE = ("max_iter", "verbose")


class CheckpointError(ValueError):
    """A checkpoint is damaged, or is another fit's."""


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


class Checkpoint:
    """The last saved state of one fit, in a folder of its own.

    ``latest.json`` says which save is whole; each process of the fit has a file
    of arrays in it. All files of a save are on disk before ``latest.json`` is
    replaced, in one step, and those of the save before are removed after it:
    whenever the fit is killed, one whole save is there.

    Parameters
    ----------
    folder : path-like
        Made if need be.
    marks : dict of str to str
        The `fingerprint` of the fit.
    rank, n_ranks : int
        This process, and how many share the fit.
    barrier : callable
        Returns when all processes have called it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        marks: dict[str, str],
        *,
        rank: int = 0,
        n_ranks: int = 1,
        barrier: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder = Path(folder)
        self.marks = {k: v for k, v in marks.items() if k not in FREE}
        self.marks["processes"] = str(n_ranks)
        self.rank, self.n_ranks, self.barrier = rank, n_ranks, barrier
        self._number = 0
        self._saved_at = time.monotonic()

    def due(self) -> bool:
        """Whether the last save is long ago."""
        return time.monotonic() - self._saved_at >= SECONDS_A_SAVE

    def save(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Replace the last save by this one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        before, self._number = self._file(self._number), self._number + 1
        _write(self._file(self._number), lambda file: _savez(file, arrays))
        self.barrier()
        if self.rank == 0:
            latest = {
                "format": FORMAT,
                "save": self._number,
                "fit": self.marks,
                "state": state,
            }
            text = json.dumps(latest).encode()
            _write(self.folder / "latest.json", lambda file: file.write(text))
        self.barrier()
        before.unlink(missing_ok=True)
        self._saved_at = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Arrays and state of the last save; None if there is none."""
        latest_path = self.folder / "latest.json"
        if not latest_path.exists():
            return None
        try:
            latest = json.loads(latest_path.read_bytes())
            version, marks = latest["format"], latest["fit"]
            number, state = int(latest["save"]), latest["state"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(latest_path, error) from error
        if version != FORMAT:
            raise CheckpointError(
                f"{latest_path} is a checkpoint of format {version}, and this nplm "
                f"reads format {FORMAT}: finish the fit with the nplm that began it."
            )
        self._check_same_fit(marks)
        self._number = number
        path = self._file(number)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as saved:
                return {name: saved[name] for name in saved.files}, state
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise self._damaged(path, error) from error

    def _file(self, number: int) -> Path:
        return self.folder / f"save-{number}.{self.rank}-of-{self.n_ranks}.npz"

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


def _savez(file: IO[bytes], arrays: dict[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _write(path: Path, fill: Callable[[IO[bytes]], Any]) -> None:
    """Write a file that is there whole or not at all, even after a power cut."""
    unfinished = path.with_name(path.name + ".part")
    with open(unfinished, "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
