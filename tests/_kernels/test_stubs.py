"""The stubs of the kernels have the names and parameters of the compiled modules."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import nplm

ROOT = Path(nplm.__file__).parent
SOURCES = sorted((ROOT / "_kernels").rglob("*.pyx"))


def parameters(text):
    """Split parameters of Cython or Python into names, with their stars."""
    text = re.sub(r"#.*|\[[^]]*\]| not None", "", text)
    return [part.split("=")[0].split()[-1] for part in text.split(",") if part.strip()]


def in_stub(body):
    """Return the parameters of each function of a stub; None of another name."""
    names = {}
    for node in body:
        if re.match("__(?!init__)", getattr(node, "name", "")):
            continue
        if isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
        elif isinstance(node, ast.FunctionDef):
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            is_property = bool(node.decorator_list)
            names[node.name] = (
                None if is_property else parameters(ast.unparse(node.args))
            )
    return names


def in_module(members, source):
    """Return the same of the members of a module or class, which has this source."""
    names = {}
    for name, value in members.items():
        if name.startswith("_") or isinstance(value, type):
            continue
        names[name] = None
        if inspect.isroutine(value) and not inspect.isgetsetdescriptor(value):
            try:
                text = str(inspect.signature(value))[1:-1]
            except ValueError:  # without binding
                text = re.search(rf"def {name}\((.*?)\):", source, re.DOTALL)[1]
            names[name] = parameters(text)
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_stub_has_the_names_and_parameters_of_its_module(path):
    module = import_module(
        ".".join(["nplm", *path.relative_to(ROOT).with_suffix("").parts])
    )
    stub = ast.parse(path.with_suffix(".pyi").read_text()).body
    top, *classes = re.split(r"^(?:cdef )?class ", path.read_text(), flags=re.MULTILINE)
    members = {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", module.__name__) == module.__name__
        and not inspect.ismodule(value)
    }
    described, compiled = in_stub(stub), in_module(members, top)
    constants = {name for name, names in described.items() if names is None}
    assert constants <= members.keys()
    functions = {k: v for k, v in compiled.items() if v is not None}
    assert {k: v for k, v in described.items() if k not in constants} == functions
    stubs = {node.name: in_stub(node.body) for node in stub if hasattr(node, "bases")}
    compiled = {}  # by class
    for source in classes:
        name = re.match(r"\w+", source)[0]
        compiled[name] = in_module(vars(members[name]), source)
        head = re.search(r"^    def __c?init__\((.*?)\):", source, re.DOTALL | re.M)
        if head:
            compiled[name]["__init__"] = parameters(head[1])
    assert stubs == compiled
