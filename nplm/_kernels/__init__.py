"""Compiled loops, one idea a file; ``reference`` is their specification in NumPy.

Kernels take typed memoryviews and fill what they are given: no Python object,
no estimator, no print, no stopping rule. Bounds checks are off, so callers
check word ids first (``nplm._checks``).
"""

from importlib.util import find_spec
from pathlib import Path

for _source in Path(__file__).parent.glob("*/*.pyx"):
    if find_spec(f"{__name__}.{_source.parent.name}.{_source.stem}") is None:
        raise ImportError(
            "nplm is not built for this Python: run `python -m pip install -e .` "
            f"in {Path(__file__).parents[2]}"
        )
