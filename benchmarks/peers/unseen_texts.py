"""Three texts that the rules of `AutoLM` were not fitted to, nor looked at before.

Portuguese newspapers (Mac-Morpho) and short messages (webtext: a forum, overheard
dialogues, advertisements) are files of NLTK's data, mac_morpho.zip and webtext.zip in
``packages/corpora`` of https://github.com/nltk/nltk_data. Source code is the standard
library of the Python that runs.
"""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from nplm import Vocabulary
from nplm.datasets import Corpus

Line = list[str]
WORDS, WORDS_OF_CODE = re.compile(r"\w+|[^\w\s]"), re.compile(r"\w+|[^\w\s]+")
# Parts of the standard library that are tests, or tables more than code.
LEFT_OUT = {
    "test", "tests", "site-packages", "idlelib", "lib2to3", "encodings", "pydoc_data",
}  # fmt: skip
SHARES = 0.9, 0.95  # where the validation and the test part begin


def portuguese(folder: Path) -> Corpus:
    """A sentence a line; the last tenth of each file is held out."""
    return _corpus("portuguese", _split([list(_sentences(text)) for text in
                   _texts(folder / "mac_morpho.zip")]))  # fmt: skip


def messages(folder: Path) -> Corpus:
    """The last tenth of each file is held out."""
    files = [_lines(text, WORDS) for text in _texts(folder / "webtext.zip")]
    return _corpus("messages", _split(files))


def source(folder: Path) -> Corpus:
    """A tenth of the modules is held out."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = [p for p in sorted(library.rglob("*.py")) if not LEFT_OUT & {*p.parts}]
    random.Random(0).shuffle(paths)
    files = [_lines(p.read_text("utf-8", "replace"), WORDS_OF_CODE) for p in paths]
    first, second = (int(share * len(files)) for share in SHARES)
    parts = files[:first], files[first:second], files[second:]
    return _corpus("source", [[line for f in part for line in f] for part in parts])


def _texts(path: Path) -> list[str]:
    with ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        return [archive.read(name).decode("latin-1") for name in names]


def _lines(text: str, words: re.Pattern[str]) -> list[Line]:
    lines = (words.findall(line) for line in text.splitlines())
    return [line for line in lines if line]


def _sentences(text: str) -> Iterator[Line]:
    """Sentences of a file of "word_TAG" a line."""
    sentence: Line = []
    for token in text.split():
        word, _, tag = token.rpartition("_")
        sentence.append(word)
        if tag in {".", "?", "!"}:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _split(files: list[list[Line]]) -> list[list[Line]]:
    parts: list[list[Line]] = [[], [], []]
    for lines in files:
        first, second = (int(share * len(lines)) for share in SHARES)
        for part, piece in zip(
            parts, (lines[:first], lines[first:second], lines[second:])
        ):
            part += piece
    return parts


def _corpus(name: str, parts: list[list[Line]]) -> Corpus:
    """Words that the training part has once are ``<unk>``, as in the Penn Treebank."""
    vocabulary = Vocabulary(min_count=2).fit(parts[0])
    boundary = vocabulary.boundary_id_
    assert boundary is not None

    def stream(lines: list[Line]) -> NDArray[np.int32]:
        ids = vocabulary.transform(lines)
        return np.concatenate([np.append(line, boundary) for line in ids]).astype("i4")

    train, valid, test = (stream(part) for part in parts)
    return Corpus(name, train, valid, test, vocabulary, boundary)
