"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


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
        with open(unfinished, "xb") as file:
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
