"""Errors: a missing package is named, by the name that pip knows."""

import ast
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from nplm.base.exceptions import missing_packages

ROOT = Path(__file__).parents[2]


def packages_of(call):
    """The packages that a call names, if it is one of these two."""
    return {
        "missing_packages": call.args[1:],
        "optional_module": call.args[2:] or call.args[:1],
    }.get(getattr(call.func, "id", ""), [])


def named():
    """The packages that errors name, but for variables."""
    for path in (ROOT / "nplm").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                packages = packages_of(node)
                yield from (p.value for p in packages if isinstance(p, ast.Constant))


@pytest.mark.slow
def test_missing_packages_are_those_of_the_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = chain(*project["optional-dependencies"].values())
    extras = {re.match(r"[\w.-]+", package)[0] for package in required}
    assert "matplotlib" in set(named()) <= extras


def test_error_says_what_to_do_without_the_packages():
    error = missing_packages("fit", "one", "two", otherwise="Or wait.")
    message = "fit requires one and two: python -m pip install one two. Or wait."
    assert str(error) == message
