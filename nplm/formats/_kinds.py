"""The kinds of files, recognised by how their contents begin."""

from __future__ import annotations

import codecs
import os
import re
from enum import Enum, auto

from nplm.base.files.atomic_files import check_regular
from nplm.base.files.compressed import UnpackingError, reading
from nplm.base.files.foreign import refuse_foreign
from nplm.base.files.tensors import begins_as_tensors

__all__ = ["ARPA", "START_BYTES", "Kind", "kind_of"]

START_BYTES = 512
# Mapped n-grams before they were safetensors files.
OLD_BINARY = b"nplm n-grams\r\n\x1a\n"
# A line of ARPA files, near their beginning.
ARPA = b"\\data\\"
# The numbers of words and features; then, in text, a word and its first number.
# Editors may add a byte order mark, blanks and blank lines to text.
VECTORS = re.compile(rb"\d+ \d+\n")
TEXT_VECTORS = re.compile(
    rb"(\xef\xbb\xbf)?\s*\d+[ \t]+\d+[ \t\r]*\n\s*\S+ +[-+.\d]+(e[-+]?\d+)?\s", re.I
)
# All lines of classes and of counts end so.
TABLE = re.compile(rb"([^\t\n]+\t\d+\r?\n)+")


class Kind(Enum):
    """The kind of a file, as far as its first bytes show."""

    TENSORS = auto()  # of nplm.save, of save_binary, of a checkpoint, or of others
    OLD_BINARY = auto()
    TEXT_VECTORS = auto()
    BINARY_VECTORS = auto()
    TABLE = auto()  # classes or counts
    TEXT = auto()  # ARPA, or the reader of ARPA says what is wrong
    OTHER = auto()

    @property
    def is_vectors(self) -> bool:
        """Whether it has word vectors."""
        return self in (Kind.TEXT_VECTORS, Kind.BINARY_VECTORS)


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Recognise a file by its first bytes, unpacked if it is packed.

    Returns `kind`: ``TEXT`` of a file that cannot be unpacked: its reader says why.
    Raises OSError if the file cannot be read, or is a pipe: its reader would lack the
    first bytes. Raises ValueError if the file is packed by another program than gzip,
    bzip2, xz and zstd, or is a model of another tool that is not read.
    """
    check_regular(path)
    with reading(path) as file:
        try:
            start = file.read(START_BYTES)
        except UnpackingError:
            return Kind.TEXT
    refuse_foreign(start, os.fspath(path))
    if begins_as_tensors(start):
        return Kind.TENSORS
    if start.startswith(OLD_BINARY):
        return Kind.OLD_BINARY
    if TEXT_VECTORS.match(start):
        return Kind.TEXT_VECTORS
    if VECTORS.match(start):
        return Kind.BINARY_VECTORS
    if not _is_text(start):
        return Kind.OTHER
    lines = start[: start.rfind(b"\n") + 1]
    return Kind.TABLE if TABLE.fullmatch(lines) else Kind.TEXT


def _is_text(start: bytes) -> bool:
    if not start or b"\0" in start or start[:1] == b"{":
        return False
    if ARPA in start:  # of ARPA, whatever the encoding
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True
