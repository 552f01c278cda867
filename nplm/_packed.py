"""Files that are read, unpacked if they begin as those of gzip or xz do."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

__all__ = ["UNPACKING_ERRORS", "reading", "unpacked"]

# What reading a damaged packed file raises.
UNPACKING_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
# How files begin that other programs packed.
PACKED_OTHERWISE = re.compile(
    rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)"
)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it begins as gzip or xz does."""
    with open(path, "rb") as raw, unpacked(raw, os.fspath(path)) as file:
        yield file


@contextmanager
def unpacked(raw: io.BufferedReader, name: str) -> Iterator[BinaryIO]:
    """Unpack what begins as gzip or xz does."""
    start = raw.peek(10)[:10]
    if other := PACKED_OTHERWISE.match(start):
        raise ValueError(
            f"{name} is packed by {other.lastgroup}, and what is read here may be by "
            "gzip or xz: unpack it first."
        )
    if start.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=raw) as packed:
            yield cast(BinaryIO, packed)
    elif start.startswith(b"\xfd7zXZ\x00"):
        with lzma.LZMAFile(raw) as xz:
            yield cast(BinaryIO, xz)
    else:
        yield raw
