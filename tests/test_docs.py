"""Every public name has a page; the paths that pages name are there.

The examples in the pages run as doctests, and links are checked when Sphinx builds
them.
"""

import ast
import inspect
import re
import runpy
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import FunctionType

import pytest

import nplm

ROOT = Path(__file__).parents[1]
API = runpy.run_path(str(ROOT / "docs" / "_api.py"))  # what conf.py makes pages of
# The command is described by its own --help.
NO_PAGE = {"nplm.cli"}
FOLDERS = ("start", "guide", "paper", "measured", "api", "built")
PAGES = [
    *ROOT.glob("*.md"),
    *(page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.rst")),
]


def test_every_public_module_has_a_page():
    found = {
        f"nplm.{module.name}"
        for module in iter_modules(nplm.__path__)
        if not module.name.startswith("_")
        and getattr(import_module(f"nplm.{module.name}"), "__all__", None)
    }
    assert found - NO_PAGE <= set(API["modules"]()), "add a line to docs/api/index.rst"


@pytest.mark.parametrize("module", API["modules"]())
def test_every_public_name_has_a_page(module):
    listed = [name for _, names in API["groups"](module) for name in names]
    public = import_module(module).__all__
    if module != "nplm":
        public = [name for name in public if name not in nplm.__all__]
    assert listed, f"{module} has no public names: leave it out"
    assert sorted(listed) == sorted(public)
    for name in listed:
        assert getattr(import_module(module), name).__doc__, name


def exported_classes():
    """The classes of every module that can be imported here, for other modules."""
    for module in walk_packages(nplm.__path__, "nplm."):
        if ".__" not in module.name:
            with suppress(ImportError):  # an optional package is missing
                for name, kind in vars(import_module(module.name)).items():
                    is_here = getattr(kind, "__module__", "") == module.name
                    if inspect.isclass(kind) and is_here and name[0] != "_":
                        yield kind


def test_every_method_is_described_or_inherits_a_description():
    methods = {
        f"{kind.__module__}.{kind.__qualname__}.{name}": member
        for kind in exported_classes()
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and isinstance(member, (FunctionType, property, cached_property))
    }
    assert len(methods) > 800
    bare = [name for name, member in methods.items() if not inspect.getdoc(member)]
    assert bare == []


def documented(thing):
    """Names of the entries in the section Parameters of a docstring."""
    text = inspect.getdoc(thing) or ""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=\n\n\w[\w ]*\n-+\n|\Z)", text, re.S | re.M
    )
    entries = re.findall(
        r"^([\w*][\w*, ]*?) ?(?::|$)", section[1] if section else "", re.M
    )
    return {name.strip(" *") for entry in entries for name in entry.split(",")}


def public_callables():
    """Public functions and classes, and the public methods of these, by name."""
    for module in API["modules"]():
        for name in import_module(module).__all__:
            thing = getattr(import_module(module), name)
            if not callable(thing):
                continue
            yield f"{module}.{name}", thing
            for method, own in vars(thing).items() if inspect.isclass(thing) else ():
                if inspect.isfunction(own) and not method.startswith("_"):
                    yield f"{module}.{name}.{method}", own


# Methods whose docstring is one sentence, and says all.
SHORT = {
    "AutoLM.from_model", "AutoLM.partial_fit", "AutoRecipe.as_dict", "AutoRecipe.of",
    "AutoRecipe.plan", "EnergyLM.check_settings", "KenlmLM.from_trie",
    "NeuralLM.check_settings", "QuantizedLM.from_trie", "Scorer.begin_text",
}  # fmt: skip


def test_pages_list_no_internal_methods():
    conf = (ROOT / "docs" / "conf.py").read_text()
    listed = re.search(r"^INTERNAL = (\{.*?\})", conf, re.MULTILINE | re.DOTALL)
    internal = ast.literal_eval(listed[1])
    short, hidden = set(), set()
    for module in API["modules"]():
        for name in import_module(module).__all__:
            thing = getattr(import_module(module), name)
            kinds = thing.__mro__ if inspect.isclass(thing) else ()
            ours = [vars(kind) for kind in kinds if kind.__module__[:5] == "nplm."]
            for member in {member for of in ours for member in of if member[0] != "_"}:
                value = getattr(thing, member)
                text = inspect.getdoc(value) or ""
                if member in internal:
                    hidden.add(member)
                elif callable(value) and "\n---" not in text:
                    short.add(f"{name}.{member}")
    # Other short ones are for the classes of nplm: add them to INTERNAL.
    assert short == SHORT
    assert hidden == internal


@pytest.mark.parametrize(
    "thing", [pytest.param(thing, id=name) for name, thing in public_callables()]
)
def test_every_parameter_has_an_entry_of_its_own(thing):
    described = documented(thing)
    if not described:
        return  # a short docstring without sections
    given = set(inspect.signature(thing).parameters) - {"self", "cls"}
    assert given <= described, given - described


def test_every_public_name_is_listed_once_by_task():
    listed = [
        f"{module}.{name}" for _, module, names in API["by_task"]() for name in names
    ]
    public = {
        (name if name in nplm.__all__ else f"{module}.{name}").removeprefix("nplm.")
        for module in API["modules"]()
        for name in import_module(module).__all__
        if callable(getattr(import_module(module), name))
    }
    assert sorted(listed) == sorted(f"nplm.{name}" for name in public)


@pytest.mark.parametrize("model", [nplm.NeuralLM, nplm.EnergyLM])
def test_every_parameter_of_a_network_is_in_a_group(model):
    groups = re.findall(
        r"^- \*\*(?:\w| )+\*\*:((?:\s+`\w+`[,.])+)", inspect.getdoc(model), re.MULTILINE
    )
    grouped = [name for group in groups for name in re.findall(r"`(\w+)`", group)]
    assert len(groups) == 5
    assert sorted(grouped) == sorted(inspect.signature(model).parameters)


def test_every_public_name_is_in_a_guide():
    guide = " ".join(
        page.read_text() for page in (ROOT / "docs" / "guide").glob("*.rst")
    )
    absent = [
        f"{module}.{name}"
        for module in API["modules"]()
        for name in import_module(module).__all__
        if not re.search(rf"\b{name}\b", guide)
    ]
    assert absent == [], "say in a page of docs/guide what it is for"


MEASURED = [p for p in ROOT.glob("docs/measured/*.rst") if p.stem != "index"]


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_measured_pages_show_first_and_then_say_how(page):
    heading = re.compile(r"^(?:=+|(.+)\n-+)\n", re.MULTILINE)
    _, _, first, *sections = heading.split(page.read_text())
    blocks = first.strip().split("\n\n")
    shown = [block.startswith((".. ", "   ")) for block in blocks]
    assert shown == sorted(shown, reverse=True)
    assert shown.count(False) == 1, "one paragraph after the figure and the table"
    assert "table::" in first or "include::" in first
    assert sections[0] == "How it is measured"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_install_no_nplm_of_an_index(page):
    # That is another project's, until a release has a name of its own.
    assert not re.search(r"pip install .*nplm\[", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_are_there(page):
    named = re.findall(r"`((?:nplm|tests|benchmarks|docs)/[\w./*]+)`", page.read_text())
    for path in named:
        if not path.startswith("docs/_build"):
            assert any(ROOT.glob(path.rstrip("/"))), path
