"""Base classes and helpers of all estimators."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, init: str, submodules: Sequence[str] = ()
) -> tuple[list[str], Callable[[str], Any]]:
    """Return ``__all__`` and ``__getattr__`` of a package.

    The stub beside `init`, its ``__init__.py``, says where each name is, as type
    checkers read it: ``from module import name as name``, a statement a name.
    """
    stub = Path(init).with_suffix(".pyi").read_text("utf-8")
    statements = (text.replace("(", "").split() for text in stub.split("\nfrom ")[1:])
    modules = {name: module for module, _, name, *_ in statements}

    def load(name: str) -> Any:
        if name in submodules:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(modules), load
