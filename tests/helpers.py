"""What tests of several files share; no test imports another test's file."""

import os
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    Vocabulary,
    available_tiers,
)
from nplm.datasets import Corpus, fetch_brown, fetch_ptb
from nplm.models.neural.tiers import kernel_tier

# Text of a few words cannot give discounts: its fall-back is tested on its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


def paper_lm(order=None, **settings):
    """The paper's MLP9 and its training, but in mini-batches, for few epochs.

    What is tested of a network is its own only as far as it says so: the default may
    change.
    """
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False)
    recipe |= dict(n_samples=512, epsilon=1e-8)  # of other losses, and solvers
    return NeuralLM.from_paper("MLP9", **(recipe | settings | dict(order=order)))


def small_models(n_words):
    """One small instance of each model of windows."""
    size = dict(n_words=n_words)
    neural = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
    trigram = InterpolatedTrigram(**size)
    return {
        "neural": paper_lm(**neural, **size),
        "neural, direct": paper_lm(**neural, direct=True, **size),
        "neural, no hidden units": paper_lm(
            **{**neural, "n_hidden": 0}, direct=True, batch_size=1, **size
        ),
        "neural, tied, of parts": paper_lm(
            **neural, **size, tied=True, word_features=np.eye(n_words)[:, :5]
        ),
        "neural, senses": paper_lm(**neural, n_senses=2, **size),
        "neural, classes": paper_lm(**neural, output="classes", **size),
        "neural, tree": paper_lm(**neural, output="tree", direct=True, **size),
        "neural, importance": paper_lm(
            **neural, loss="importance", n_samples=5, **size
        ),
        "neural, nce": paper_lm(**neural, loss="nce", direct=True, **size),
        "neural, energy": EnergyLM(**neural, **size),
        "neural, energy, target weights": EnergyLM(
            **neural, target_weights=True, batch_size=1, **size
        ),
        "trigram": trigram,
        "Kneser-Ney": KneserNeyLM(**size),
        "Kneser-Ney, back-off": KneserNeyLM(interpolate=False, **size),
        "classes": ClassLM(n_classes=4, random_state=0, **size),
        "mixture": MixtureLM([("nn", paper_lm(**neural)), ("tri", trigram)], **size),
        "short-list": ShortlistLM(
            paper_lm(**neural), KneserNeyLM(), n_shortlist=5, **size
        ),
    }


def on_every_tier(*precisions):
    """Precisions, each with a tier that this processor can run it on."""
    return [f"{name}, {tier}" for name in precisions for tier in available_tiers(name)]


FULL_PRECISIONS = on_every_tier("float32", "float64")
PRECISIONS = on_every_tier("float32", "float64", "bfloat16")


def bfloat16_is_here():
    """Whether the tier in use multiplies bfloat16, as most processors' do not."""
    try:
        kernel_tier("bfloat16")
    except ValueError:
        return False
    return True


def pairwise(factors, where=lambda **arguments: True):
    """Cases of a test: few, in which any two values of its arguments meet.

    A fault of one value, or of two together, is then met as it is in the cases of all
    values with all (a covering array of strength 2, chosen greedily). `factors` has the
    values of each argument; those of "a, b" are pairs, which meet any third value.
    `where` says of some arguments whether there is such a case.
    """

    def arguments(row):
        named = {}
        for names, value in row.items():
            several = ", " in names
            named |= zip(names.split(", "), value if several else [value])
        return named

    def pairs(row):
        return combinations(row.items(), 2)

    left = {}  # a set, in the order of the factors
    for (one, values), (other, others) in combinations(factors.items(), 2):
        for a in values:
            for b in others:
                if where(**arguments({one: a, other: b})):
                    left[(one, a), (other, b)] = True
    rows = []
    used = Counter()  # where two values serve as well, that which met these less
    while left:
        chosen = dict(next(iter(left)))
        for name, values in factors.items():
            if name in chosen:
                continue
            fitting = [v for v in values if where(**arguments(chosen | {name: v}))]
            chosen[name] = max(
                fitting,
                key=lambda v: (
                    sum(
                        ((k, a), (name, v)) in left or ((name, v), (k, a)) in left
                        for k, a in chosen.items()
                    ),
                    -sum(used[k, a, name, v] for k, a in chosen.items()),
                ),
            )
        row = {name: chosen[name] for name in factors}
        for (one, a), (other, b) in pairs(row):
            left.pop(((one, a), (other, b)), None)
            used[one, a, other, b] += 1
            used[other, b, one, a] += 1
        rows.append(arguments(row))
    return pytest.mark.parametrize(
        list(rows[0]),
        [tuple(row.values()) for row in rows],
        ids=["-".join(map(str, row.values())) for row in rows],
        indirect=[name for name in rows[0] if name in ("precision", "tier")],
    )


def text(n, seed=0, n_words=12):
    """Word ids of which a few are frequent, as in a text."""
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


def markov_stream(n, n_words=20, seed=0):
    """Each word is followed by one of three: a bigram is all there is to learn."""
    rng = np.random.default_rng(seed)
    followers = np.random.default_rng(99).integers(0, n_words, (n_words, 3))
    ids = [0]
    for choice in rng.choice(3, size=n - 1, p=[0.7, 0.2, 0.1]):
        ids.append(followers[ids[-1], choice])
    return np.array(ids, dtype=np.int32)


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
