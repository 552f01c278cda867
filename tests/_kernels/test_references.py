"""Every kernel has a twin in NumPy, or its docstring says why it has none."""

import importlib
import re
from inspect import signature
from pathlib import Path

import pytest

import nplm._kernels
from tests.reference import neural

ROOT = Path(nplm._kernels.__file__).parent


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
def test_a_twin_of_the_same_name_and_arguments(family, kernel):
    if "No twin: " in kernel.__doc__:
        return
    twins = importlib.import_module(f"tests.reference.{family}")
    twin = getattr(twins, kernel.__name__)
    assert list(signature(twin).parameters) == list(signature(kernel).parameters)


def parts():
    """What the network is made of, and the verbs that put it together."""
    for path in sorted((ROOT / "neural").rglob("*.pyx")):
        module = module_of(path)
        for name, kernel in vars(module).items():
            if getattr(kernel, "__module__", None) != module.__name__:
                continue
            if not name.startswith("_") and callable(kernel):
                yield pytest.param(kernel, id=f"{path.stem}.{name}")


@pytest.mark.parametrize("kernel", list(parts()))
def test_a_part_of_the_network_names_its_twin(kernel):
    # Objects here, functions of arrays there: the docstring says which.
    twin = re.search(r"``reference\.neural\.(\w+)``", kernel.__doc__)
    if twin is None:
        assert "No twin: " in kernel.__doc__
    else:
        assert callable(getattr(neural, twin[1]))
