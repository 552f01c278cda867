"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_cache"]


def user_cache() -> Path:
    """Return the folder ``nplm`` in the user's cache, which need not exist.

    It is in ``XDG_CACHE_HOME``, by default ``~/.cache``.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "nplm"
