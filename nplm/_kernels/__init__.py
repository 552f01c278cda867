"""Compiled loops, one idea per file; ``tests/reference`` specifies them.

Kernels take typed memoryviews and fill the arrays they are given: no Python objects,
no estimators, no printing, no stopping rules. Bounds checks are off, so callers
check word ids first (``nplm.base.checks``). The caller still owns the arrays of ids and
may change them after the check: kernels read each id with ``_ids.id_below``, which
keeps it in range.
"""

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

# A finder's look at each module would take longer than most of their imports.
for _folder, _, _files in os.walk(Path(__file__).parent):
    _sources = {name[:-4] for name in _files if name.endswith(".pyx")}
    if _sources - {name.removesuffix(s) for name in _files for s in EXTENSION_SUFFIXES}:
        raise ImportError(
            "nplm is not built for this Python: run `python -m pip install -e .` "
            f"in {Path(__file__).parents[2]}"
        )
