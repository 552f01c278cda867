"""Every kernel has a twin in NumPy, or its docstring says why it has none."""

import importlib
from inspect import signature
from pathlib import Path

import pytest

import nplm._kernels

ROOT = Path(nplm._kernels.__file__).parent


def kernels():
    for family in ("classes", "files", "ngrams"):
        for path in sorted((ROOT / family).glob("*.pyx")):
            module = importlib.import_module(f"nplm._kernels.{family}.{path.stem}")
            for name, kernel in vars(module).items():
                compiled = type(kernel).__name__ == "cython_function_or_method"
                if compiled and not name.startswith("_"):
                    yield pytest.param(family, kernel, id=f"{path.stem}.{name}")


@pytest.mark.parametrize(("family", "kernel"), list(kernels()))
def test_a_twin_of_the_same_name_and_arguments(family, kernel):
    if "No twin: " in kernel.__doc__:
        return
    twins = importlib.import_module(f"nplm._kernels.reference.{family}")
    twin = getattr(twins, kernel.__name__)
    assert list(signature(twin).parameters) == list(signature(kernel).parameters)
