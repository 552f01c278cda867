"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import nplm._kernels  # noqa: F401 (first: unbuilt sources say what to run)

__version__ = "0.1.0.dev0"

SUBMODULES = ("datasets", "experiments", "formats", "inspection")


def _modules() -> dict[str, str]:
    """Find the module of each public name, as ``__init__.pyi`` has it."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


MODULES = _modules()
__all__ = sorted(MODULES)


def __getattr__(name: str) -> Any:
    """Load what is asked for: most programs need few of the models."""
    if name in SUBMODULES:
        return import_module(f"nplm.{name}")
    if name not in MODULES:
        raise AttributeError(f"module 'nplm' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES, *SUBMODULES})
