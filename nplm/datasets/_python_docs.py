"""English on every machine: the documentation inside Python's standard library."""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

__all__ = ["python_documents"]

# Not there everywhere: distributions put these into packages of their own, and
# versions before 3.12 have them. pydoc_data is read as topics.
EXCLUDED = re.compile(
    r"(test|idlelib|lib2to3|distutils|tkinter|turtle|turtledemo|ensurepip|venv|"
    r"pydoc_data|site-packages|dist-packages|lib-dynload|config-.*|_sysconfigdata.*|"
    r"__pycache__|__phello__.*)(\.py)?"
)
HAS_WORD = re.compile(r"\w")


def python_documents() -> list[str]:
    """Topics of ``help()`` and docstrings of the standard library, each once.

    Source files are read and parsed, never imported. Files and topics come in
    the order of a hash of their names: in alphabetical order the test part
    would be of other topics than the training part.
    """
    library = Path(sysconfig.get_path("stdlib"))
    sources = {f"topic {name}": [text] for name, text in _topics(library).items()}
    for path in _source_files(library):
        sources[path.relative_to(library).as_posix()] = list(_docstrings(path))
    names = sorted(sources, key=lambda name: hashlib.sha256(name.encode()).digest())
    documents = [_without_rulers(text) for name in names for text in sources[name]]
    return list(dict.fromkeys(documents))


def _topics(library: Path) -> dict[str, str]:
    """Language reference that ``help("booleans")`` reads, by topic."""
    path = library / "pydoc_data" / "topics.py"
    for node in _parse(path).body:
        if isinstance(node, ast.Assign):
            return ast.literal_eval(node.value)
    raise ValueError(f"{path} defines no topics: this Python is not supported.")


def _source_files(library: Path) -> Iterator[Path]:
    for entry in sorted(library.iterdir()):
        if EXCLUDED.fullmatch(entry.name):
            continue
        files = sorted(entry.rglob("*.py")) if entry.is_dir() else [entry]
        for path in files:
            inner = path.relative_to(entry).parts
            if path.suffix == ".py" and not {"test", "tests"} & set(inner):
                yield path


def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        # Invalid escapes in string literals are none of our reader's business.
        warnings.simplefilter("ignore")
        return ast.parse(path.read_bytes(), filename=str(path))


def _docstrings(path: Path) -> Iterator[str]:
    """Docstrings of the module, its classes and functions, in text order."""
    pending: list[ast.AST] = [_parse(path)]
    while pending:
        node = pending.pop()
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring
        # Definitions are statements: there are none inside an expression.
        inside = [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.expr)]
        pending.extend(reversed(inside))


def _without_rulers(text: str) -> str:
    """Drop lines without a word, such as the asterisks under a heading.

    Each mark would be a token, and the next one in a row is no riddle.
    """
    return "\n".join(line for line in text.split("\n") if HAS_WORD.search(line))
