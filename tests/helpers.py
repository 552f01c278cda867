"""What tests of several folders share."""

import os

import numpy as np
import pytest

from nplm import Vocabulary
from nplm.datasets import Corpus, fetch_brown, fetch_ptb


def corpus_of(ids, boundary):
    """A corpus of "a", "b" and "c" (ids from 2); the last three ids are the test."""
    vocabulary = Vocabulary().fit([["a", "b", "c"]])
    train, valid, test = np.split(np.asarray(ids, dtype=np.int32), [-6, -3])
    return Corpus("letters", train, valid, test, vocabulary, boundary)


def published_corpus(name):
    """Brown or Penn Treebank of the folder that NPLM_DATA names, or skip the test."""
    if not os.environ.get("NPLM_DATA"):
        pytest.skip("NPLM_DATA names no folder of corpora")
    fetch = {"brown": fetch_brown, "ptb": fetch_ptb}[name]
    return fetch(download_if_missing=False)
