"""Every kernel has a NumPy twin, or its docstring says why not."""

import importlib
import re
from inspect import signature
from pathlib import Path

import pytest

import nplm._kernels
from tests.reference import neural

ROOT = Path(nplm._kernels.__file__).parent

pytestmark = pytest.mark.skipif(
    not len.__doc__, reason="this Python was built without docstrings"
)


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(["nplm._kernels", *parts]))


def kernels():
    for family in ("classes", "files", "ngrams"):
        for path in sorted((ROOT / family).rglob("*.pyx")):
            module = module_of(path)
            for name, kernel in vars(module).items():
                compiled = type(kernel).__name__ == "cython_function_or_method"
                if compiled and not name.startswith("_"):
                    yield pytest.param(family, kernel, id=f"{path.stem}.{name}")


@pytest.mark.parametrize(("family", "kernel"), list(kernels()))
def test_kernel_has_a_twin_with_the_same_signature(family, kernel):
    if "No twin: " in kernel.__doc__:
        return
    twins = importlib.import_module(f"tests.reference.{family}")
    twin = getattr(twins, kernel.__name__)
    assert list(signature(twin).parameters) == list(signature(kernel).parameters)


def parts():
    """Yield the classes and functions of the network's kernels."""
    for path in sorted((ROOT / "neural").rglob("*.pyx")):
        module = module_of(path)
        for name, kernel in vars(module).items():
            if getattr(kernel, "__module__", None) != module.__name__:
                continue
            if not name.startswith("_") and callable(kernel):
                yield pytest.param(kernel, id=f"{path.stem}.{name}")


@pytest.mark.parametrize("kernel", list(parts()))
def test_network_kernel_names_its_twin(kernel):
    # Kernels are objects and twins functions of arrays: the docstring names the twin.
    twin = re.search(r"``reference\.neural\.(\w+)``", kernel.__doc__)
    if twin is None:
        assert "No twin: " in kernel.__doc__
    else:
        assert callable(getattr(neural, twin[1]))
