"""The floors of the house: who may import whom, types included; tests likewise."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nplm

ROOT = Path(nplm.__file__).parent

# From top to bottom. A file imports its own folder and lower floors, never a sister
# on its own floor.
FLOORS = [
    {"__main__"},
    {"cli"},
    {"experiments"},
    {"inspection"},
    {"formats", "datasets", "mpi", "_versions"},
    {"mixtures"},
    {"classes", "ngrams", "neural"},
    {"training"},
    {"parallel", "text"},
    {"_base"},
    {"_generators", "_packed", "_tensors"},
    {
        "_atomic",
        "_blocks",
        "_checks",
        "_files",
        "_fitted",
        "_pages",
        "_trees",
        "_warnings",
        "exceptions",
    },
    {"_kernels"},
]
# Class-based models are n-gram models of classes.
SISTERS = {("classes", "ngrams")}

# Tests that break what they can find, whatever its room.
BREAKING = {"fuzz", "faults", "hours"}

SOURCES = [p for p in ROOT.rglob("*.py") if p.name != "__init__.py" or p.parent != ROOT]
KERNELS = sorted((ROOT / "_kernels").rglob("*.pyx"))


def imported(path):
    """Modules of nplm that a file imports, at any depth, if only for their types."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
        else:
            continue
        for name in names:
            parts = name.split(".")
            # `from nplm import X` is the public surface: of no module in particular.
            if parts[0] == "nplm" and len(parts) > 1 and file_of(parts[1:]):
                yield parts[1:]


def file_of(parts):
    """The file of a module, or None if that is no module."""
    path = ROOT.joinpath(*parts)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return file
    return None


def room_of(path):
    """The folder, or the file that has no folder."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def floor_of(room):
    return next(i for i, floor in enumerate(FLOORS) if room in floor)


def test_public_names_are_loaded_when_they_are_asked_for():
    code = """
import sys, nplm
assert not [name for name in sys.modules if name.startswith(("sklearn", "scipy"))]
assert nplm.formats.read_arpa and nplm.datasets.load_text
for name in nplm.__all__:
    assert getattr(nplm, name).__module__.startswith("nplm."), name
    assert name in dir(nplm)
from nplm import *
try:
    nplm.NoSuchLM
except AttributeError as error:
    assert "no attribute 'NoSuchLM'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_room_has_a_floor():
    assert {room_of(path) for path in SOURCES} == set().union(*FLOORS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    room = room_of(path)
    for parts in imported(path):
        other = parts[0]
        assert (
            other == room
            or floor_of(other) > floor_of(room)
            or (room, other) in SISTERS
        ), f"{path.relative_to(ROOT)} imports {'.'.join(parts)}"


def test_no_files_import_each_other_in_a_circle():
    arrows = {
        path: {file_of(parts) for parts in imported(path)} - {path} for path in SOURCES
    }
    while arrows:
        free = {path for path, needed in arrows.items() if not needed & arrows.keys()}
        assert free, f"in a circle: {sorted(map(str, arrows))}"
        arrows = {path: needed for path, needed in arrows.items() if path not in free}


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.name)
def test_kernels_import_libc_blas_and_each_other_only(path):
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["from"] and ("import" in words or "cimport" in words):
            package = words[1].split(".")[0]
            assert package in {"libc", "cython", "cpython", "scipy", "nplm"}, line
            assert package != "nplm" or words[1].startswith("nplm._kernels"), line
            assert package != "scipy" or words[1] == "scipy.linalg.cython_blas", line


def users_of(text):
    return {str(p.relative_to(ROOT)) for p in SOURCES if text in p.read_text()}


def test_only_threads_limits_threads():
    assert users_of("threadpoolctl") == {"parallel/threads.py"}


def test_only_agreement_imports_mpi4py():
    assert users_of("mpi4py import") == {"parallel/agreement.py"}


def test_only_warnings_warns():
    # Who warns otherwise points at a line of nplm, not at the user's.
    assert users_of("warnings.warn(") == {"_warnings.py"}


BENCHMARKS = sorted((ROOT.parent / "benchmarks").rglob("*.py"))
PUBLIC = r"nplm(\.(datasets|experiments|formats|inspection|mpi))?"


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.name)
def test_benchmarks_import_public_modules_only(path):
    found = re.findall(r"^\s*(?:from|import) (nplm[\w.]*)", path.read_text(), re.M)
    assert [name for name in found if not re.fullmatch(PUBLIC, name)] == []


def test_folders_of_tests_are_those_of_the_package():
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/*.py")}
    assert folders <= {room_of(path) for path in SOURCES} | BREAKING


def test_no_test_imports_another():
    tests = Path(__file__).parent
    found = set()
    for path in tests.rglob("*.py"):
        name = path.relative_to(tests)
        own = rf"|\.{name.parts[0]}\." if name.parts[0] in BREAKING else ""
        imports = rf"^\s*(from|import) tests\b(?!\.helpers| import helpers{own})"
        if re.search(imports, path.read_text(), re.MULTILINE):
            found.add(str(name))
    assert not found, "what two tests share lives in tests/helpers*.py"
