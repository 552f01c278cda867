"""Text models of lines with words of Zipf's law."""

import numpy as np

from nplm import KneserNeyLM, TextLM, Vocabulary

NAMES = [f"w{i}" for i in range(12)]


def lines(n, seed):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n)
    return [" ".join(NAMES[i] for i in random.zipf(1.3, k) % 12) for k in lengths]


def trained(order=3, *, unknown="<unk>", prune=0.0, seed=0, **params):
    vocabulary = Vocabulary(unknown=unknown)
    lm = TextLM(KneserNeyLM(order), order - 1, vocabulary=vocabulary, **params)
    lm.fit(lines(300, seed))
    lm.estimator_.prune(prune)
    return lm


def contexts_of(lm):
    n_words, width = lm.n_words_, lm.estimator_.order_ - 1
    return np.random.default_rng(1).integers(0, n_words, (200, width))
