"""Lines of a file compressed by zstd."""

import sys
from importlib import import_module
from pathlib import Path

from nplm.datasets import TextLines

zstd = import_module(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
)
Path("text.zst").write_bytes(zstd.compress(b"a rose\nis a rose\n"))
assert list(TextLines("text.zst")) == ["a rose", "is a rose"]
