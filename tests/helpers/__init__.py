"""Helpers of several test files; no test imports another test file."""

import os
import re
import textwrap
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nplm import (
    CacheLM,
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
from nplm.experiments import grouped
from nplm.models.neural.tiers import kernel_tier

# Small texts have no valid discounts; the fall-back has tests of its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


# Settings of tests of other losses and solvers, unless the tests override them.
USUAL = dict(n_noise=512, epsilon=1e-8)


def changed(lm, **settings):
    """Return the model with other parameters; those of options by their own name.

    An option has the values of `USUAL`, unless the settings say otherwise.
    """
    kinds = {"importance": ["n_noise"], "nce": ["n_noise"], "adam": ["epsilon"]}
    for option in (settings.get("loss"), settings.get("solver")):
        if isinstance(option, str):
            settings = {n: USUAL[n] for n in kinds.get(option, [])} | settings
    return lm.set_params(**grouped(settings))


def paper_lm(order=None, **settings):
    """Return the paper's MLP9 with its training, but in mini-batches, for few epochs.

    Tests use it instead of the defaults, which may change.
    """
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False, order=order)
    if isinstance(settings.get("solver"), str):  # it would have the default schedule
        recipe |= dict(learning_rate="constant")
    return changed(NeuralLM.from_paper("MLP9"), **(recipe | settings))


def neural_lm(order=None, **settings):
    """Return the default network; parameters of options by their own name."""
    return changed(NeuralLM(order), **settings)


def energy_lm(order=None, **settings):
    """Return an energy model trained as in the paper, but in mini-batches."""
    recipe = dict(
        loss="exact", solver="sgd", learning_rate="invscaling", learning_rate_init=1e-2,
        alpha=1e-4, batch_size=32, max_iter=12, n_iter_no_change=3, tol=1e-4,
    )  # fmt: skip
    return changed(EnergyLM(order), **(recipe | settings))


def check_shared(lm, n_words=20):
    """Raise unless processes can share the output units of this network."""
    recipe = lm._recipe(n_words, order=3)
    recipe.architecture.check_shared(recipe.loss, recipe.name)


def small_models(n_words):
    """Return a small instance of each model of windows."""
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
        "neural, blocks": paper_lm(**neural | {"n_hidden": (4, 7, 5)}, **size),
        "neural, classes": paper_lm(**neural, output="classes", **size),
        "neural, tree": paper_lm(**neural, output="tree", direct=True, **size),
        "neural, importance": paper_lm(**neural, loss="importance", n_noise=5, **size),
        "neural, nce": paper_lm(**neural, loss="nce", direct=True, **size),
        "neural, energy": energy_lm(**neural, **size),
        "neural, energy, target weights": energy_lm(
            **neural, target_weights=True, batch_size=1, **size
        ),
        "trigram": trigram,
        "Kneser-Ney": KneserNeyLM(**size),
        "Kneser-Ney, back-off": KneserNeyLM(interpolate=False, **size),
        "classes": ClassLM(n_classes=4, random_state=0, **size),
        "cache": CacheLM(**size, half_life=2),
        "mixture": MixtureLM([("nn", paper_lm(**neural)), ("tri", trigram)], **size),
        "short-list": ShortlistLM(
            paper_lm(**neural), KneserNeyLM(), n_shortlist=5, **size
        ),
    }


def on_every_tier(*precisions):
    """Return the precisions, each with a tier that this processor can run."""
    return [f"{name}, {tier}" for name in precisions for tier in available_tiers(name)]


FULL_PRECISIONS = on_every_tier("float32", "float64")
PRECISIONS = on_every_tier("float32", "float64", "bfloat16")


def bfloat16_is_here():
    """Return whether the tier in use multiplies bfloat16; most processors cannot."""
    try:
        kernel_tier("bfloat16")
    except ValueError:
        return False
    return True


def pairwise(factors, where=lambda **arguments: True):
    """Return few test cases in which any two values of two arguments occur together.

    They find the faults of one value or of two together (a covering array of strength
    2, chosen greedily). `factors` has the values of each argument; those of "a, b" are
    pairs, which occur with any third value. `where` returns whether arguments are a
    valid case.
    """

    def arguments(row):
        named = {}
        for names, value in row.items():
            several = ", " in names
            named |= zip(names.split(", "), value if several else [value])
        return named

    def pairs(row):
        return combinations(row.items(), 2)

    left = {}  # an ordered set
    for (one, values), (other, others) in combinations(factors.items(), 2):
        for a in values:
            for b in others:
                if where(**arguments({one: a, other: b})):
                    left[(one, a), (other, b)] = True
    rows = []
    used = Counter()  # breaks ties between values
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
    """Return word ids of which a few are frequent, as in text."""
    return np.random.default_rng(seed).zipf(1.4, size=n) % n_words


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


def code_of(page, label):
    """Return the Python code after a label in a page of the guide."""
    guide = Path(__file__).parents[2] / "docs" / "guide" / page
    section = guide.read_text().split(f".. _{label}:")[1]
    [block] = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", section)[:1]
    return textwrap.dedent(block)


def published_corpus(name):
    """Return Brown or Penn Treebank from the folder NPLM_DATA, or skip the test."""
    if not os.environ.get("NPLM_DATA"):
        pytest.skip("NPLM_DATA names no folder of corpora")
    fetch = {"brown": fetch_brown, "ptb": fetch_ptb}[name]
    return fetch(download_if_missing=False)
