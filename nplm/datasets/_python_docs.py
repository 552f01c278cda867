"""English text on every machine: documentation of Python and nplm's dependencies."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

# Dependencies of nplm, by module and project.
PACKAGES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
# Modules that are not on every machine: distributions package them separately, or only
# versions before 3.12 have them. pydoc_data is read as topics.
EXCLUDED = re.compile(
    r"(test|idlelib|lib2to3|distutils|tkinter|turtle|turtledemo|ensurepip|venv|"
    r"pydoc_data|site-packages|dist-packages|lib-dynload|config-.*|_sysconfigdata.*|"
    r"__pycache__|__phello__.*)(\.py)?"
)
# Tests, and copies of other projects.
INNER = {"test", "tests", "externals", "_vendored", "_lib"}
HAS_WORD = re.compile(r"\w")
BLANK_LINE = re.compile(r"\n\s*\n")
SENTENCE_END = re.compile(r"(?<=\S[.:;?!]) ")


def documented_versions() -> str:
    """Return the names and versions of the packages that `python_documents` reads."""
    versions = [f"Python {'.'.join(map(str, sys.version_info[:3]))}"]
    versions += [f"{project} {version(project)}" for project in PACKAGES.values()]
    return ", ".join(versions)


def python_documents() -> Iterator[list[str]]:
    """Yield the docstrings of one module after the other.

    These are the topics of ``help()``, each as a module, and the modules of the
    standard library and of `PACKAGES`. They are ordered by a hash of their names, as
    in alphabetical order the last ones would differ in kind from the first. Sentences
    that occurred before, in any module, are left out. Source files are read lazily,
    and parsed but never imported.
    """
    return _unique_sentences(_modules())


def _modules() -> Iterator[list[str]]:
    """Yield the docstrings of each module, with repeated sentences."""
    library = Path(sysconfig.get_path("stdlib"))
    topics = _topics(library)
    files = {path.relative_to(library).as_posix(): path for path in _stdlib(library)}
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.submodule_search_locations is not None
        folder = Path(spec.submodule_search_locations[0])
        for path in _files_below(folder):
            files[f"{package}/{path.relative_to(folder).as_posix()}"] = path
    for name in sorted({*topics, *files}, key=_hash):
        yield [topics[name]] if name in topics else list(_docstrings(files[name]))


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _unique_sentences(modules: Iterable[list[str]]) -> Iterator[list[str]]:
    """Drop sentences seen before, and texts and modules left empty."""
    seen: set[str] = set()
    for texts in modules:
        kept = []
        for text in texts:
            new = []
            for sentence in _sentences(text):
                if sentence not in seen:
                    seen.add(sentence)
                    new.append(sentence)
            if new:
                kept.append("\n".join(new))
        if kept:
            yield kept


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, without examples of code and rulers.

    A sentence ends with a punctuation mark or a paragraph. A paragraph is a run of
    lines with equal indentation, such as an item of a list of parameters: docstrings
    have these in common. Lines without a word, such as the dashes under a heading,
    are left out, as their tokens are trivial to predict.
    """
    for block in BLANK_LINE.split(text):
        if block.lstrip().startswith(">>>"):
            continue
        lines = [line for line in block.split("\n") if HAS_WORD.search(line)]
        for _, paragraph in groupby(lines, lambda line: len(line) - len(line.lstrip())):
            yield from SENTENCE_END.split(" ".join(" ".join(paragraph).split()))


def _topics(library: Path) -> dict[str, str]:
    """Return the language reference that ``help("booleans")`` reads, by topic."""
    path = library / "pydoc_data" / "topics.py"
    for node in _parse(path).body:
        if isinstance(node, ast.Assign):
            texts = ast.literal_eval(node.value)
            return {f"topic {name}": text for name, text in texts.items()}
    raise ValueError(f"{path} defines no topics: this Python is not supported.")


def _stdlib(library: Path) -> Iterator[Path]:
    for entry in sorted(library.iterdir()):
        if EXCLUDED.fullmatch(entry.name):
            continue
        if entry.is_dir():
            yield from _files_below(entry)
        elif entry.suffix == ".py":
            yield entry


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        if not INNER & set(path.relative_to(folder).parts):
            yield path


def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        # Warnings about invalid escapes in string literals are irrelevant here.
        warnings.simplefilter("ignore")
        return ast.parse(path.read_bytes(), filename=str(path))


def _docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of the module, its classes and functions, in text order."""
    pending: list[ast.AST] = [_parse(path)]
    while pending:
        node = pending.pop()
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring
        # Definitions are statements, which expressions do not contain.
        inside = [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)]
        pending.extend(reversed(inside))
