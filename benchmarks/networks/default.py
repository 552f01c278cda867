"""Is the default of NeuralLM good without tuning?

Trains it on seven texts that differ in kind and size, and beside it networks with one
of its parameters changed: a small search. What counts is how far the default is behind
the best of them by the validation part. Each fit is a file in --folder, so that the
table can be made in several runs:

    python benchmarks/networks/default.py --texts events little --folder runs
    python benchmarks/networks/default.py --folder runs

The texts: Brown, the Penn Treebank, the documentation inside Python, "code", the tokens
of Python's standard library, the first million tokens of Wiki, "events", the parts of
speech of Brown's words (200 types, a stream of 100,000 to train on), and "little", the
first 20,000 tokens of Brown. docs/measured/default.rst has the figures.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tokenize
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.process import cpu_seconds
from common.table import Rows, file_name, kept, parser, report
from nplm import NeuralLM, windows
from nplm.datasets import Corpus, fetch_brown, fetch_ptb, load_python_docs, load_wiki
from nplm.experiments import grouped

N_CONTEXT = 5
N_EVENTS = 200
# Packages of Python's standard library that "code" has, beside the top modules.
PACKAGES = (
    "asyncio", "collections", "concurrent", "ctypes", "curses", "dbm", "distutils",
    "email", "encodings", "html", "http", "importlib", "json", "lib2to3", "logging",
    "multiprocessing", "sqlite3", "tkinter", "unittest", "urllib", "wsgiref", "xml",
    "xmlrpc", "zoneinfo",
)  # fmt: skip
LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
MAX_TOKEN = 24  # characters; longer tokens, such as docstrings, share one
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]
# Changes of the default, one thing at a time.
SEARCH: dict[str, dict[str, Any]] = {
    "default": {},
    "half the step": {"learning_rate_init": 2e-3},
    "twice the step": {"learning_rate_init": 8e-3},
    "a linear path": {"direct": True},
    "more dropout": {"dropout": (0.1, 0.25, 0.15)},
    "no dropout": {"dropout": 0.0},
    "smaller": {"n_hidden": 256, "embedding_dim": 128},
    "much smaller": {"n_hidden": 128, "embedding_dim": 64},
    "larger": {"n_hidden": 512, "embedding_dim": 192},
    "tied": {"tied": True},
    "tied, a linear path": {"tied": True, "direct": True},
    "little decay": {"alpha": 0.03},
    "more decay": {"alpha": 0.3},
    "more noise samples": {"loss": "importance", "n_noise": 1024},
    "smaller batches": {"batch_size": 128},
    "larger batches": {"batch_size": 512},
}


@dataclass(frozen=True)
class Text:
    """Windows of a text."""

    n_words: int
    train: Windows
    valid: Windows
    test: Windows

    @classmethod
    def of(cls, corpus: Corpus) -> Text:
        return cls(corpus.n_words, *corpus.windows(N_CONTEXT))

    @classmethod
    def of_stream(cls, ids: NDArray[np.int32], *lengths: int) -> Text:
        """Parts of so many tokens, of words numbered by those that they have."""
        n_words, starts = int(ids.max()) + 1, np.cumsum([0, *lengths])
        parts = [
            windows(ids[i:j], N_CONTEXT, history=ids[:i] if i else None)
            for i, j in pairwise(starts)
        ]
        return cls(n_words, *parts)


def brown_stream() -> Iterator[str]:
    """All tokens with their tags, as Brown has them."""
    folders = os.environ.get("NPLM_DATA", "").split(os.pathsep)
    paths = [Path(folder) / "brown.zip" for folder in folders if folder]
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        raise SystemExit("Set NPLM_DATA to the folder that holds brown.zip.")
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if re.fullmatch(r"brown/c[a-r]\d\d", name):
                yield from archive.read(name).decode("ascii").split()


def numbered(tokens: list[str], most: int | None, min_count: int = 1) -> NDArray[Any]:
    """Ids by falling frequency; the rarest share the last."""
    counts = Counter(tokens)
    names = [name for name, n in counts.most_common(most) if n >= min_count]
    ids = {name: i for i, name in enumerate(names)}
    last = len(names) - (len(names) == most)
    return np.array([ids.get(token, last) for token in tokens], np.int32)


def events() -> Text:
    tags = [token.rpartition("/")[2] for token in brown_stream()][:140_000]
    return Text.of_stream(numbered(tags, N_EVENTS), 100_000, 20_000, 20_000)


def little() -> Text:
    """20,000 tokens, and as many to be held out as tell one network from another."""
    stream = brown_stream()
    words = [next(stream).rpartition("/")[0] for _ in range(40_000)]
    return Text.of_stream(numbered(words, None, 2), 20_000, 10_000, 10_000)


def code() -> Text:
    """Every tenth file to be held out, and every tenth to test."""
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(library.glob("*.py"))
    files += sorted(p for name in PACKAGES for p in (library / name).rglob("*.py"))
    parts: list[list[str]] = [[], [], []]
    for i, path in enumerate(files):
        parts[{4: 1, 9: 2}.get(i % 10, 0)] += code_tokens(path)
    counts = Counter(parts[0])
    # Numbered from the most frequent on; 0 is all others.
    names = [token for token, n in counts.most_common() if n >= 3]
    ids = {token: i for i, token in enumerate(names, start=1)}
    streams = [np.array([ids.get(t, 0) for t in part], np.int32) for part in parts]
    return Text(len(ids) + 1, *(windows(stream, N_CONTEXT) for stream in streams))


def code_tokens(path: Path) -> Iterator[str]:
    """The tokens of a file of Python, without comments."""
    try:
        with path.open("rb") as file:
            found = list(tokenize.tokenize(file.readline))
    except (SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return  # such as the files that tests of the parser read
    for token in found:
        if token.type in LAYOUT:
            yield tokenize.tok_name[token.type]
        elif token.type not in (tokenize.COMMENT, tokenize.ENCODING):
            yield token.string if len(token.string) <= MAX_TOKEN else "<long>"


def of_wiki(folder: Path) -> Text:
    """A million tokens; kept, for all 16 million are read to find its words."""
    path = folder / "wiki.npy"
    if not path.exists():
        corpus = load_wiki()
        parts = corpus.train[:1_000_000], corpus.valid[:50_000], corpus.test[:50_000]
        np.save(path, np.concatenate(parts))
    return Text.of_stream(np.load(path), 1_000_000, 50_000, 50_000)


TEXTS: dict[str, Callable[[Path], Text]] = {
    "events": lambda folder: events(),
    "little": lambda folder: little(),
    "python-docs": lambda folder: Text.of(load_python_docs()),
    "code": lambda folder: code(),
    "ptb": lambda folder: Text.of(fetch_ptb()),
    "brown": lambda folder: Text.of(fetch_brown()),
    "wiki": of_wiki,
}


def measured(text: Text, changes: dict[str, Any]) -> dict[str, Any]:
    """Train a network, and score it."""
    lm = NeuralLM(n_words=text.n_words, random_state=0, verbose=1)
    lm.set_params(**grouped(changes))
    X_val, y_val = text.valid
    seconds = cpu_seconds(partial(lm.fit, X_val=X_val, y_val=y_val), *text.train)
    return {
        "words": text.n_words, "tokens": len(text.train[1]), "epochs": lm.n_iter_,
        "ended": lm.n_iter_ < lm.max_iter, "CPU s": seconds,
        "valid": lm.perplexity(*text.valid), "test": lm.perplexity(*text.test),
    }  # fmt: skip


def kept_rows(folder: Path, text: str) -> Rows:
    """The rows of a text that are kept, the default first."""
    return [
        {"change": name} | kept(folder, f"{text}-{name}", dict)
        for name in SEARCH
        if (folder / f"{file_name(f'{text}-{name}')}.json").exists()
    ]


def summary(folder: Path) -> Rows:
    """The default beside the best network by the validation part, for each text."""
    rows = []
    for text in TEXTS:
        found = kept_rows(folder, text)
        if not found or found[0]["change"] != "default":
            continue
        default, best = found[0], min(found, key=lambda row: row["valid"])
        rows.append({
            "text": text, "|V|": default["words"], "tokens": default["tokens"],
            "epochs": default["epochs"], "CPU s": default["CPU s"],
            "valid": default["valid"], "test": default["test"],
            "tried": len(found) - 1, "best": best["change"], "its valid": best["valid"],
            "its test": best["test"], "behind": default["test"] / best["test"] - 1,
        })  # fmt: skip
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", nargs="*", choices=list(TEXTS), default=[])
    options.add_argument("--changes", nargs="*", choices=list(SEARCH), metavar="NAME",
                         default=list(SEARCH), help="; ".join(SEARCH))  # fmt: skip
    options.add_argument("--folder", type=Path, required=True, help="of the rows")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.texts:
        text = TEXTS[name](args.folder)
        for change in args.changes:
            fit = partial(measured, text, SEARCH[change])
            print(name, change, kept(args.folder, f"{name}-{change}", fit)["valid"])
    rows = summary(args.folder)
    if rows:
        report("The default", rows, args.json)


if __name__ == "__main__":
    main()
