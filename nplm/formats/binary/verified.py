"""Notes of verified files: a file is verified once.

A note is in the user's cache, not beside the file: a file that comes from someone else
cannot bring its note along, and models may be in folders that are read-only.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from nplm.base.files.atomic_files import replacing, user_cache
from nplm.base.files.tensors import CHECKSUM, TensorFile

# Notes of other rules do not count: increase it when verification checks more.
RULES = 2
MAX_NOTE_BYTES = 1 << 16
# Times of files are coarse: a file that was just written may be written again without a
# change of its times.
SETTLED_NANOSECONDS = 2_000_000_000


def is_verified(file: TensorFile) -> bool:
    """Return whether this user has verified the file as it is now."""
    try:
        with open(_path_of(file), "rb") as note:
            # A note of another user says nothing.
            if os.fstat(note.fileno()).st_uid != os.geteuid():
                return False
            noted = json.loads(note.read(MAX_NOTE_BYTES))
    except (OSError, RuntimeError, ValueError, RecursionError):
        return False
    return bool(noted == _note_of(file))


def note_verified(file: TensorFile) -> None:
    """Note that a file has been verified, if it can be, and was not just written."""
    # RuntimeError: the user has no home.
    with suppress(OSError, RuntimeError):
        is_settled = time.time_ns() - max(file.stamp[-2:]) > SETTLED_NANOSECONDS
        if not is_settled or file.stamp != file.stamp_now():
            return
        path = _path_of(file)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as note:
            note.write(json.dumps(_note_of(file)).encode())


def _path_of(file: TensorFile) -> Path:
    """Return the path of a file's note."""
    import hashlib  # it loads OpenSSL, and most files are not verified

    name = hashlib.sha256(os.fsencode(os.path.realpath(file.path))).hexdigest()[:32]
    return user_cache() / "verified" / f"{name}.json"


def _note_of(file: TensorFile) -> dict[str, object]:
    # The time of the last change (ctime) cannot be set back, unlike mtime.
    return {
        "rules": RULES,
        "file": os.path.realpath(file.path),
        "stamp": list(file.stamp),
        "checksum": file.metadata[CHECKSUM],
    }
