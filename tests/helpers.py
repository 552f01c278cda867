"""What tests of several folders share."""

import numpy as np

from nplm import Vocabulary
from nplm.datasets import Corpus


def corpus_of(ids, boundary):
    """A corpus of "a", "b" and "c" (ids from 2); the last three ids are the test."""
    vocabulary = Vocabulary().fit([["a", "b", "c"]])
    train, valid, test = np.split(np.asarray(ids, dtype=np.int32), [-6, -3])
    return Corpus("letters", train, valid, test, vocabulary, boundary)
