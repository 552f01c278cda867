"""Files that are read, unpacked if they begin as those of gzip or xz do."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from nplm.base.files.atomic_files import opened

__all__ = ["UNPACKING_ERRORS", "UnpackingError", "reading", "unpacked"]

# What reading a damaged packed file raises.
UNPACKING_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
# How files begin that other programs packed.
PACKED_OTHERWISE = re.compile(
    rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)"
)
# By how files begin.
UNPACKED: dict[bytes, Callable[[Any], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
# A packed file may unpack to so many bytes, and to so many for each of its own. Text
# and models unpack to 3 to 10 times their size; a bomb to 1000 (gzip) or 7000 (xz).
LEAST_UNPACKED, MOST_A_BYTE = 16 << 20, 64
BUFFER_BYTES = 1 << 16


class UnpackingError(ValueError):
    """A packed file is damaged, cut short, or unpacks to too much."""


@contextmanager
def reading(path: str | os.PathLike[str], *, pipes: bool = False) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it begins as gzip or xz does.

    See `opened` for `pipes` and the errors of opening. Reading a packed file raises
    `UnpackingError`.
    """
    with opened(path, pipes=pipes) as raw, unpacked(raw, os.fspath(path)) as file:
        yield file


@contextmanager
def unpacked(raw: io.BufferedReader, name: str) -> Iterator[BinaryIO]:
    """Unpack what begins as gzip or xz does; see `reading`."""
    start = raw.peek(10)[:10]
    if other := PACKED_OTHERWISE.match(start):
        raise ValueError(
            f"{name} is packed by {other.lastgroup}, and what is read here may be by "
            "gzip or xz: unpack it first."
        )
    opener = next((UNPACKED[mark] for mark in UNPACKED if start.startswith(mark)), None)
    if opener is None:
        yield raw
        return
    packed = _Counted(raw)
    with (
        opener(packed) as file,
        io.BufferedReader(_Bounded(file, packed, name), BUFFER_BYTES) as bounded,
    ):
        yield cast(BinaryIO, bounded)


class _Counted:
    """A file that is read from its beginning to its end, its bytes counted."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self.n_read = raw, 0

    def read(self, n: int = -1) -> bytes:
        data = self._raw.read(n)
        self.n_read += len(data)
        return data


class _Bounded(io.RawIOBase):
    """What a packed file unpacks to, unless that is too much."""

    def __init__(self, file: io.BufferedIOBase, packed: _Counted, name: str) -> None:
        self._file, self._packed, self._name = file, packed, name
        self._n_unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            n = self._file.readinto(memoryview(buffer)[:BUFFER_BYTES])
        except UNPACKING_ERRORS as error:
            raise UnpackingError(
                f"{self._name} cannot be unpacked ({error}): it is damaged or cut "
                "short."
            ) from None
        self._n_unpacked += n
        if self._n_unpacked > LEAST_UNPACKED + MOST_A_BYTE * self._packed.n_read:
            raise UnpackingError(
                f"{self._name} unpacks to more than {MOST_A_BYTE} times its size "
                f"({self._n_unpacked} bytes of {self._packed.n_read} so far), which "
                "may be an attempt to fill the memory. If its contents are right, "
                "unpack it first."
            )
        return n
