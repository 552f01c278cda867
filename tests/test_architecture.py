"""Imports go one way: applications -> models -> shared parts -> kernels."""

import ast
from pathlib import Path

import pytest

import nplm

ROOT = Path(nplm.__file__).parent

# Each layer may import itself and those after it.
LAYERS = [
    {"cli", "__main__", "compare", "datasets", "formats", "text", "text_lm", "mpi"}
    | {"mpi_agreement"},
    {"neural", "ngram", "mixture", "class_lm", "word_classes", "uniform"}
    | {"backoff_lm", "kneser_ney"},
    {"fitting", "network", "training", "checkpoint", "parallel", "windows", "_base"}
    | {"counts", "tree", "backoff", "hashed", "discounts", "frequencies"}
    | {"pruning", "exchange", "_em", "_warnings"},
    {"_kernels"},
]


def imported(path):
    """Modules of nplm that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        # `from nplm import X` is the public surface: of no module in particular.
        modules = (name.split(".")[1] for name in names if name.startswith("nplm."))
        yield from (
            name
            for name in modules
            if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()
        )


def module_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


SOURCES = [p for p in ROOT.rglob("*.py") if p.name != "__init__.py" or p.parent != ROOT]
KERNELS = sorted((ROOT / "_kernels").glob("*.pyx"))


def test_every_module_has_a_layer():
    known = set().union(*LAYERS)
    assert {module_of(path) for path in SOURCES} <= known


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    depth = next(i for i, layer in enumerate(LAYERS) if module_of(path) in layer)
    allowed = set().union(*LAYERS[depth:])
    assert set(imported(path)) <= allowed


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.name)
def test_kernels_import_libc_blas_and_each_other_only(path):
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["from"] and ("import" in words or "cimport" in words):
            package = words[1].split(".")[0]
            assert package in {"libc", "cython", "cpython", "nplm"}, line
            assert package != "nplm" or words[1].startswith("nplm._kernels"), line


def test_only_parallel_limits_threads():
    users = {p.name for p in SOURCES if "threadpoolctl" in p.read_text()}
    assert users == {"parallel.py"}


def test_only_mpi_imports_mpi4py():
    users = {p.name for p in SOURCES if "mpi4py import" in p.read_text()}
    assert users == {"mpi_agreement.py"}


def test_warnings_point_at_the_users_line():
    users = {p.name for p in SOURCES if "warnings.warn(" in p.read_text()}
    assert users == {"_warnings.py"}
