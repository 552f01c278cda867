"""Files of models, packed by their name; written whole or not at all."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from nplm.base.files.atomic_files import followed, full_disk_named, replacing

__all__ = ["check_writable", "writing"]

# Level 9, gzip's own default, takes thrice the time of 6 and saves a hundredth.
GZIP_LEVEL = 6


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return `path`, or raise the error that writing to it would end in."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it to write.")
    if path.exists() and not path.is_file():
        raise OSError(
            f"cannot write {path}: it is a device or a pipe, whose place a file would "
            "take; name a file."
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
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file beside `path`; it takes its place when all is written.

    Packed if the name ends in ``.gz`` or ``.xz``. After an error `path` is as it was.
    """
    path = check_writable(path)
    full = full_disk_named(path.absolute().parent, "more is")
    with full, replacing(path) as raw:
        if path.suffix == ".gz":
            # No name and no time in the header: equal models, equal files.
            with gzip.GzipFile(
                "", "wb", compresslevel=GZIP_LEVEL, fileobj=raw, mtime=0
            ) as packed:
                yield cast(BinaryIO, packed)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(raw, "wb") as xz:
                yield cast(BinaryIO, xz)
        else:
            yield raw
