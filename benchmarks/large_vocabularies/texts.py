"""The texts that outputs.py learns: windows, kept in a folder between calls."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.networks import Windows
from nplm import WordClasses, windows
from nplm.datasets import fetch_brown, load_wiki

N_CONTEXT = 4


@dataclass(frozen=True)
class Text:
    """The training windows, and validation windows that are scored during training."""

    name: str
    n_words: int
    tokens: NDArray[np.int32]
    train: Windows
    watched: Windows


def brown() -> Text:
    """All of section 4's, watched by every fifth validation window."""
    corpus = fetch_brown()
    train, valid, _ = corpus.windows(N_CONTEXT)
    return Text("brown", corpus.n_words, corpus.train, train, every(5, valid))


def of_wiki(n_words: int, n_windows: int, folder: Path) -> Text:
    """The first windows of `load_wiki`, with its most frequent words."""
    path = folder / f"wiki-{n_words}.npz"
    if not path.exists():
        wiki = load_wiki(n_words=n_words)
        np.savez(path, train=wiki.train[: n_windows + N_CONTEXT], valid=wiki.valid)
    kept = np.load(path)
    tokens = kept["train"][: n_windows + N_CONTEXT]
    if len(tokens) < n_windows + N_CONTEXT:
        raise SystemExit(f"{path} is of fewer windows: remove it, to make it again.")
    train, valid = (windows(part, N_CONTEXT) for part in (tokens, kept["valid"]))
    return Text("wiki", n_words, tokens, train, every(96, valid))


def every(n: int, data: Windows) -> Windows:
    X, y = data
    return X[::n], y[::n]


def classes_of(text: Text, folder: Path) -> tuple[NDArray[np.int32], float]:
    """The square root of |V| classes, and the CPU time in which they were found."""
    path = folder / f"classes-{text.name}.npz"
    if not path.exists():
        n = round(text.n_words**0.5)
        started = time.process_time()
        found = WordClasses(n, n_words=text.n_words, random_state=0).fit(text.tokens)
        seconds = time.process_time() - started
        np.savez(path, labels=found.labels_, seconds=seconds)
    kept = np.load(path)
    return kept["labels"], float(kept["seconds"])
