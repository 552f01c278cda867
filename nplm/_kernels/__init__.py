"""Compiled loops, one idea per file; ``tests/reference`` specifies them.

Kernels take typed memoryviews and fill the arrays they are given: no Python objects,
no estimators, no printing, no stopping rules. Bounds checks are off, so callers
check word ids first (``nplm.base.checks``). The caller still owns the arrays of ids and
may change them after the check: kernels read each id with ``_ids.id_below``, which
keeps it in range.
"""

from importlib.util import find_spec
from pathlib import Path

for _source in Path(__file__).parent.rglob("*.pyx"):
    _parts = _source.relative_to(Path(__file__).parent).with_suffix("").parts
    if find_spec(".".join([__name__, *_parts])) is None:
        raise ImportError(
            "nplm is not built for this Python: run `python -m pip install -e .` "
            f"in {Path(__file__).parents[2]}"
        )
