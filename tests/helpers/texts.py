"""Texts of word ids, corpora, and the code in pages of the guide."""

import io
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from nplm import Vocabulary
from nplm.datasets import Corpus, fetch_brown, fetch_ptb

# Few sentences of few words, some of them rare.
SENTENCES = [
    "the cat sat on the mat .",
    "the dog sat on the cat .",
    "a dog saw the cat .",
    "the cat saw a mat .",
    "a cat sat .",
    "the dog saw a zebra .",
]


def text(n, seed=0, n_words=12):
    """Return word ids of which a few are frequent, as in text."""
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


def lines_of(n=3000, n_words=50, seed=0):
    """Return lines of words, of which a few are frequent, as in text."""
    ids = text(n, seed=seed, n_words=n_words)
    cuts = np.sort(np.random.default_rng(seed).integers(0, n, n // 7))
    return [[f"w{i}" for i in line] for line in np.split(ids, cuts) if len(line)]


def texts(n, n_words=12, longest=12, seed=0):
    """Return texts of a few words each, of which a few words are frequent."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{i}" for i in rng.zipf(1.5, rng.integers(longest)) % n_words)
        for _ in range(n)
    ]


def joined(lines):
    """Return lines of words as a file, open to be read."""
    return io.BytesIO("\n".join(map(" ".join, lines)).encode())


def markov_stream(n, n_words=20, seed=0):
    """Return text in which each word has three successors, which a bigram can learn."""
    rng = np.random.default_rng(seed)
    followers = np.random.default_rng(99).integers(0, n_words, (n_words, 3))
    ids = [0]
    for choice in rng.choice(3, size=n - 1, p=[0.7, 0.2, 0.1]):
        ids.append(followers[ids[-1], choice])
    return np.array(ids, dtype=np.int32)


def corpus_of(ids, boundary):
    """Return a corpus of "a", "b" and "c" (ids from 2); the test is the last three."""
    vocabulary = Vocabulary().fit([["a", "b", "c"]])
    train, valid, test = np.split(np.asarray(ids, dtype=np.int32), [-6, -3])
    return Corpus("letters", train, valid, test, vocabulary, boundary)


def published_corpus(name):
    """Return Brown or Penn Treebank from the folder NPLM_DATA, or skip the test."""
    if not os.environ.get("NPLM_DATA"):
        pytest.skip("NPLM_DATA names no folder of corpora")
    fetch = {"brown": fetch_brown, "ptb": fetch_ptb}[name]
    return fetch(download_if_missing=False)


def code_of(page, label):
    """Return the Python code after a label in a page of the guide."""
    guide = Path(__file__).parents[2] / "docs" / "guide" / page
    section = guide.read_text().split(f".. _{label}:")[1]
    [block] = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", section)[:1]
    return textwrap.dedent(block)
