"""Open files for reading, and decompress gzip, bzip2, xz and zstd.

Models of other tools that nplm does not read are recognised by their first bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, cast

from nplm.base.exceptions import missing_packages
from nplm.base.files.atomic_files import opened

# First bytes that are enough to recognise them.
START_BYTES = 64
# Errors of reading a damaged compressed file; bzip2's is an OSError without a number.
UNPACKING_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)
# First bytes of unsupported formats. That of .lzma, before xz, has no checksums.
UNSUPPORTED_MAGIC = re.compile(rb"(?P<zip>PK\x03\x04)|(?P<lzma>\]\0\0)")
# The module of zstd: the standard library's, or the same for earlier Pythons.
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
# The begin of a first block of bzip2, and of the end of a file without blocks.
BZIP2_BLOCKS = b"1AY&SY", b"\x17rE8P\x90"
# The decompressor of one stream, by the first bytes of a file.
DECOMPRESSORS: dict[bytes, Callable[[], object]] = {
    b"\xfd7zXZ\x00": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ),
    **{
        b"BZh%d" % n + block: bz2.BZ2Decompressor
        for n in range(1, 10)
        for block in BZIP2_BLOCKS
    },
    b"\x28\xb5\x2f\xfd": lambda: import_module(ZSTD).ZstdDecompressor(),
    # zstd's frames without text, with which pzstd's files begin.
    **{
        bytes([first]) + b"\x2a\x4d\x18": lambda: import_module(ZSTD).ZstdDecompressor()
        for first in range(0x50, 0x60)
    },
}
GZIP = b"\x1f\x8b"
# Bytes that a file may always decompress to, and more for each byte of the file. Text
# and models decompress to 3 to 10 times their size; a bomb to 1,000 (gzip), 7,000 (xz)
# or 20,000 (bzip2).
FREE_BYTES, MAX_EXPANSION = 16 << 20, 64
BUFFER_BYTES = 1 << 16
# Bytes of a compressed file that are read at once; they are copied once a stream.
COMPRESSED_BYTES = 1 << 13
# zstd's error of a window above 128 MB, which a file can only ask for.
LARGE_WINDOW = "requires too much memory"


# Files of other tools: how they begin, what they are, and what to read instead.
FOREIGN = {
    rb"mmap lm http://kheafield\.com/code": (
        "a binary model of KenLM, compressed or in place of another file",
        "give the file as build_binary wrote it to nplm.load, or to a command that "
        "takes a MODEL",
    ),
    rb"SRILM_BINARY_": (
        "a binary file of SRILM",
        "write a model as ARPA by 'ngram -order N -lm FILE -write-lm model.arpa'",
    ),
    rb"(?s)Trie Language Model[\0-\x08]|.{4}Darpa Trigram LM": (
        "a binary model of CMU Sphinx",
        "write it as ARPA by 'pocketsphinx_lm_convert -i FILE -o FILE.arpa -ofmt arpa'",
    ),
    rb"[QI]?blmt \d+ \d+": (
        "a binary model of IRSTLM",
        "write it as ARPA by 'compile-lm --text=yes FILE model.arpa'",
    ),
    rb"\xba\x16\x4f\x2f": (
        "a model of fastText",
        "give its vectors, the .vec file",
    ),
    rb"\xd6\xfd\xb2\x7e": (
        "a transducer of OpenFst, such as Kaldi's",
        "give the ARPA file that it was built from",
    ),
}


def unpacking_errors() -> tuple[type[Exception], ...]:
    """Return the errors of reading a damaged compressed file."""
    zstd = sys.modules.get(ZSTD)
    return UNPACKING_ERRORS if zstd is None else (*UNPACKING_ERRORS, zstd.ZstdError)


class UnpackingError(ValueError):
    """A compressed file is damaged, truncated, or decompresses to too much."""


@contextmanager
def reading(
    path: str | os.PathLike[str], *, pipes: bool = False
) -> Iterator[io.BufferedReader]:
    """Open a file for reading, as `opened`; decompress gzip, bzip2, xz and zstd."""
    with opened(path, pipes=pipes) as raw, unpacked(raw, os.fspath(path)) as file:
        yield file


@contextmanager
def unpacked(raw: io.BufferedReader, name: str) -> Iterator[io.BufferedReader]:
    """Decompress an open file of gzip, bzip2, xz or zstd; see `reading`."""
    start = raw.peek(START_BYTES)[:START_BYTES]
    refuse_foreign(start, name)
    if other := UNSUPPORTED_MAGIC.match(start):
        raise ValueError(
            f"{name} is compressed by {other.lastgroup}, but only gzip, bzip2, xz and "
            "zstd are supported: decompress it first."
        )
    magic = next((m for m in (GZIP, *DECOMPRESSORS) if start.startswith(m)), None)
    if magic is None:
        yield raw
        return
    compressed = _Counted(raw)
    try:
        decompressed: Any = (
            gzip.GzipFile(fileobj=cast(Any, compressed), mode="rb")
            if magic == GZIP
            else _Streams(compressed, DECOMPRESSORS[magic])
        )
    except ImportError:
        raise missing_packages(
            f"{name} is compressed by zstd, which below Python 3.14",
            "backports.zstd",
            otherwise="Or decompress it first.",
        ) from None
    with decompressed as file:
        bounded: Any = _Bounded(file, compressed, name)
        with io.BufferedReader(bounded, BUFFER_BYTES) as buffered:
            yield buffered


class _Counted:
    """A file that counts the bytes that are read from it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self.n_read = raw, 0

    def read(self, n: int = -1) -> bytes:
        data = self._raw.read(n)
        self.n_read += len(data)
        return data


class _Streams(io.RawIOBase):
    """The contents of all streams of a compressed file, with zeros between them or not.

    Other bytes between streams are an error: `lzma.LZMAFile` and `bz2.BZ2File` ignore
    them, and all streams after them.
    """

    def __init__(self, compressed: _Counted, decompressor: Callable[[], Any]) -> None:
        self._compressed, self._new = compressed, decompressor
        self._decompressor = decompressor()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._decompressor.unused_data.lstrip(b"\0")
                while not data:
                    if not (data := self._compressed.read(COMPRESSED_BYTES)):
                        return 0
                    data = data.lstrip(b"\0")
                self._decompressor = self._new()
            elif self._decompressor.needs_input and not (
                data := self._compressed.read(COMPRESSED_BYTES)
            ):
                raise EOFError("it ends inside a stream")
            text = self._decompressor.decompress(data, len(buffer))
            if text:
                buffer[: len(text)] = text
                return len(text)


class _Bounded(io.RawIOBase):
    """A decompressed file that raises an error when it becomes too long."""

    def __init__(
        self, file: io.RawIOBase | io.BufferedIOBase, compressed: _Counted, name: str
    ) -> None:
        self._file, self._compressed, self._name = file, compressed, name
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            n = self._file.readinto(memoryview(buffer)[:BUFFER_BYTES])
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk
            if not isinstance(error, (*unpacking_errors(), OSError)):
                raise
            reason = f"{self._name} cannot be decompressed ({error}): "
            if LARGE_WINDOW in str(error):
                raise UnpackingError(
                    f"{reason}it needs a window of more than 128 MB, as files of "
                    "zstd --long=28 or more do. Decompress it first: zstd -d --long=31."
                ) from None
            raise UnpackingError(f"{reason}it is damaged or truncated.") from None
        self._n_bytes += n
        n_read = self._compressed.n_read
        if self._n_bytes > FREE_BYTES + MAX_EXPANSION * n_read:
            raise UnpackingError(
                f"{self._name} decompresses to more than {MAX_EXPANSION} times its "
                f"size ({self._n_bytes} bytes from {n_read} so far), which may be an "
                "attempt to fill the memory. If its contents are right, decompress it "
                "first."
            )
        return n


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise ValueError if a file that begins so is another tool's that is not read."""
    for pattern, (what, advice) in FOREIGN.items():
        if re.match(pattern, start):
            raise ValueError(f"{name} is {what}, which nplm does not read: {advice}.")
