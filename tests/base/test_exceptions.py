"""Errors: a missing package is named as pip knows it; parameters, with values."""

import ast
import pickle
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import nplm
from nplm.base.exceptions import ParameterMessage, missing_packages

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


def test_messages_carry_parameters_and_values():
    message = ParameterMessage(
        "{n_hidden} of {0}: lower {n_hidden:the hidden units}, or {alpha}",
        "{x}", advice=" Now.", n_hidden=(8, 9),
    )  # fmt: skip
    assert message == "n_hidden=(8, 9) of {x}: lower the hidden units, or alpha Now."
    again = pickle.loads(pickle.dumps(ValueError(message))).args[0]
    assert (again, again.parameters) == (message, {"n_hidden": (8, 9)})
    said = again.in_words(lambda name, words, *value: f"<{name}{words}{value}>")
    assert said == (
        "<n_hidden((8, 9),)> of {x}: lower <n_hiddenthe hidden units()>, or <alpha()>"
    )


@pytest.mark.parametrize("estimator", [nplm.NCE(0), nplm.WordClasses(0)])
def test_errors_of_constraints_carry_the_parameter(estimator):
    with pytest.raises(ValueError, match="The 'n_") as error:
        estimator._validate_params()
    [(name, value)] = error.value.args[0].parameters.items()
    assert (getattr(estimator, name), value) == (0, 0)
