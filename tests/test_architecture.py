"""The floors of the house: who may import whom, types included; tests likewise."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import nplm

ROOT = Path(nplm.__file__).parent

# What stands in a folder, from top to bottom: folders, files, and as "." all files that
# are not named. A file imports its own folder and lower floors, never a sister on its
# own floor. Folders that are not here have one floor.
FLOORS = {
    "": [
        {"__main__"},
        {"cli"},
        {"experiments"},
        {"inspection", "kenlm"},
        {"formats", "datasets", "mpi"},
        {"models"},
        {"text"},
        {"base"},
        {"_kernels"},
    ],
    "cli": [{"__init__"}, {"commands", "serve"}, {"training"}, {"."}],
    "cli/training": [{"minutes"}, {"in_memory", "on_disk"}, {"."}],
    "cli/serve": [{"command"}, {"app"}, {"."}],
    "formats": [
        {"__init__"},
        {"counts", "loading"},
        {"open_model", "ngrams_file"},
        {"arpa", "binary", "saving"},
        {"."},
    ],
    "models": [
        {"versions"},
        {"auto"},
        {"adaptation", "mixtures"},
        {"classes", "ngrams", "neural"},
        {"training"},
    ],
    "models/neural": [
        {"."},
        {"fitting"},
        {"recipe"},
        {"architecture"},
        {"options"},
        {"network"},
        {"tiers"},
    ],
    "models/neural/network": [
        {"network"},
        {"network_scorer"},
        {"parts"},
        {"outputs"},
        {"."},
    ],
    "models/neural/options": [{"."}, {"base"}],
    "models/ngrams": [{"."}, {"stages"}, {"trie"}],
    "models/training": [{"."}, {"parallel"}],
    "text": [
        {"decoding", "tasks"},
        {"lm"},
        {"subwords"},
        {"."},
        {"words"},
        {"documents"},
        {"samples", "windows"},
    ],
    "base": [
        {"estimators"},
        {"generators"},
        {
            "atomic",
            "blocks",
            "checks",
            "encoded_words",
            "files",
            "fitted",
            "progress",
            "warnings",
            "word_trees",
        },
        {"array_types", "exceptions", "system"},
    ],
    "base/files": [
        {"compressed", "tensors"},
        {"atomic_files", "lines"},
    ],
}
# Class-based models are n-gram models of classes.
SISTERS = {("models", "classes", "ngrams")}

MOST_ENTRIES = 10  # directly in nplm/, beside the kernels and __main__.py
MOST_MODULES = 12  # in a folder

# Tests that break what they can find, whatever its room.
BREAKING = {"fuzz", "faults", "hours"}
# What tests share.
SHARED = {"helpers", "reference"}

SOURCES = [p for p in ROOT.rglob("*.py") if p.name != "__init__.py" or p.parent != ROOT]
KERNELS = sorted((ROOT / "_kernels").rglob("*.pyx"))
BENCHMARKS = sorted((ROOT.parent / "benchmarks").rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))


@cache
def imported(path):
    """Modules of nplm that a file imports, at any depth, if only for their types."""
    return list(imports_in(path))


def imports_in(path):
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


def parts_of(path):
    """The folders of a file, and its name."""
    return path.relative_to(ROOT).with_suffix("").parts


def floor_of(folder, entry):
    """The floor on which a folder or a file stands, counted from the top, and its room.

    None where the folder has one floor. An ``__init__`` that is not named is below all.
    """
    floors = FLOORS.get(folder)
    if floors is None:
        return None
    room = entry if any(entry in rooms for rooms in floors) else "."
    return next(
        (i for i, rooms in enumerate(floors) if room in rooms), len(floors)
    ), room


@pytest.mark.slow
def test_public_names_are_loaded_when_they_are_asked_for():
    code = """
import sys, nplm
assert not [name for name in sys.modules if name.startswith(("sklearn", "scipy"))]
assert nplm.formats.read_arpa and nplm.datasets.load_text
for name in nplm.__all__:
    assert getattr(nplm, name).__module__.startswith("nplm."), name
doors = {"datasets", "experiments", "formats", "inspection", "kenlm", "mpi"}
assert set(dir(nplm)) == {*nplm.__all__, *doors, "__version__"}
assert dir(nplm.formats) == nplm.formats.__all__
from nplm import *
try:
    nplm.NoSuchLM
except AttributeError as error:
    assert "no attribute 'NoSuchLM'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", [nplm, nplm.formats], ids=lambda p: p.__name__)
def test_every_name_of_the_stub_is_public_and_in_its_module(package):
    stub = {
        alias.name: node.module
        for node in ast.parse(Path(package.__file__ + "i").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(stub) == package.__all__
    for name, module in stub.items():
        assert getattr(package, name) is getattr(import_module(module), name)


def test_command_imports_what_it_needs():
    """Scoring needs no networks, experiments, bars, or estimation."""
    code = """
import sys
from nplm.cli import main
main(["score", "--help"], standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    found = set(ran.stderr.decode().split())
    others = ["nplm.models.neural", "nplm.experiments", "nplm.datasets", "rich"]
    others += [
        "nplm.formats.counts",
        "nplm.models.classes",
        "nplm.models.training.loop",
    ]
    assert found & set(others) == set()


def test_every_room_has_a_floor():
    for folder, floors in FLOORS.items():
        depth = len(Path(folder).parts)
        inside = [p for p in map(parts_of, SOURCES) if p[:depth] == Path(folder).parts]
        files = {p[depth] for p in inside if len(p) == depth + 1}
        folders = {p[depth] for p in inside if len(p) > depth + 1}
        named = set().union(*floors) - {"."}
        assert folders <= named <= folders | files, folder
        if not any("." in rooms for rooms in floors):
            assert files - {"__init__"} <= named, folder


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    own = parts_of(path)
    for parts in imported(path):
        other = parts_of(file_of(parts))
        depth = next(
            (i for i, (one, two) in enumerate(zip(own, other)) if one != two), None
        )
        if depth is None:  # itself
            continue
        folder = "/".join(own[:depth])
        here, there = (floor_of(folder, p[depth]) for p in (own, other))
        assert (
            here is None
            or here == there
            or here[0] < there[0]
            or (folder, own[depth], other[depth]) in SISTERS
        ), f"{path.relative_to(ROOT)} imports {'.'.join(parts)}"


def test_few_entries_stand_in_the_package_itself():
    entries = {parts_of(path)[0] for path in SOURCES} - {"__main__", "_kernels"}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_folders_are_small():
    files = [*SOURCES, *KERNELS, *BENCHMARKS, *TESTS]
    found = Counter(path.parent for path in files if path.name != "__init__.py")
    assert {f: n for f, n in found.items() if n > MOST_MODULES} == {}


def test_each_module_has_a_name_of_its_own():
    # A subcommand is named as users call it.
    modules = [p.stem for p in SOURCES if "commands" not in p.parts]
    names = Counter(name for name in modules if name not in {"__init__", "base"})
    assert [name for name, n in names.items() if n > 1] == []


def test_the_package_does_without_its_tests():
    tests = re.compile(r"\b(from|import) tests\b")
    assert [p for p in [*SOURCES, *KERNELS] if tests.search(p.read_text())] == []


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


def test_only_one_module_limits_threads():
    assert users_of("threadpoolctl") == {"models/training/parallel/blas.py"}


def test_only_agreement_imports_mpi4py():
    assert users_of("mpi4py import") == {"models/training/parallel/agreement.py"}


def test_only_warnings_warns():
    # Who warns otherwise points at a line of nplm, not at the user's.
    assert users_of("warnings.warn(") == set()
    assert users_of("warnings.warn_explicit(") == {"base/warnings.py"}


PUBLIC = r"nplm(\.(datasets|experiments|formats|inspection|kenlm|mpi))?"


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.name)
def test_benchmarks_import_public_modules_only(path):
    found = re.findall(r"^\s*(?:from|import) (nplm[\w.]*)", path.read_text(), re.M)
    assert [name for name in found if not re.fullmatch(PUBLIC, name)] == []


def test_folders_of_tests_are_those_of_the_package():
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests) for path in TESTS}
    for folder in folders - {Path()}:
        # What processes of the tests beside it run is in "cases".
        if folder.parts[0] not in {*BREAKING, *SHARED} and folder.name != "cases":
            # Of a large module a folder, too.
            assert file_of(folder.parts) or (ROOT / folder).is_dir(), folder


def test_no_test_imports_another():
    tests = Path(__file__).parent
    found = set()
    for path in TESTS:
        name = path.relative_to(tests)
        own = rf"|\.{name.parts[0]}\." if name.parts[0] in BREAKING else ""
        shared = rf"\.helpers\b|\.reference\b| import helpers{own}"
        imports = rf"^\s*(from|import) tests\b(?!{shared})"
        if re.search(imports, path.read_text(), re.MULTILINE):
            found.add(str(name))
    assert not found, "what two tests share lives in tests/helpers/"
