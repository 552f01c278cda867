"""Networks that go past the paper's, and what each of their options is worth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nplm import NeuralLM
from nplm.datasets import Corpus
from nplm.text.word_rows import SPELLING

__all__ = ["ABLATIONS", "NETWORKS", "as_stream", "network"]

# Of most: features that are the output's weights too, with a linear path, trained on
# drawn words; Adam with a step that falls to 0; much dropout (less of it is better).
COMMON: dict[str, Any] = {
    "tied": True, "direct": True, "loss": "importance", "n_samples": 1024,
    "solver": "adam", "learning_rate": "linear", "learning_rate_init": 2e-3,
    "epsilon": 1e-5, "alpha": 0.1, "dropout": (0.2, 0.5, 0.35), "batch_size": 512,
    "max_iter": 3, "early_stopping": False, "random_state": 0,
}  # fmt: skip
UNTIED: dict[str, Any] = COMMON | {
    "tied": False, "direct": False, "word_features": SPELLING,
    "dropout": (0.1, 0.25, 0.0), "batch_size": 256, "max_iter": 10,
}  # fmt: skip

NETWORKS: dict[str, dict[str, Any]] = {
    # The paper's kind of network and of training, but for drawn words, dropout, and a
    # step that falls to 0.
    "untied": COMMON | {
        "order": 7, "n_hidden": 255, "embedding_dim": 64, "tied": False,
        "direct": False, "word_features": None, "n_samples": 512, "solver": "sgd",
        "learning_rate_init": 8e-3, "alpha": 1e-4, "dropout": (0.15, 0.2, 0.0),
        "batch_size": 64, "max_iter": 4,
    },
    # What ablations are compared with.
    "small": COMMON | {
        "order": 5, "n_hidden": 256, "embedding_dim": 96, "word_features": SPELLING,
    },
    "window": COMMON | {
        "order": 7, "n_hidden": 400, "embedding_dim": 128, "word_features": SPELLING,
    },
    "distant": COMMON | {
        "order": 6, "n_hidden": 400, "embedding_dim": 128, "word_features": SPELLING,
        "n_distant": 128,
    },
    # The output's weights its own, and little dropout: best on the Penn Treebank.
    "untied window": UNTIED | {"order": 7, "n_hidden": 512, "embedding_dim": 200},
    "untied distant": UNTIED | {
        "order": 6, "n_hidden": 400, "embedding_dim": 160, "n_distant": 200,
    },
}  # fmt: skip

# What is changed of "small", one thing at a time.
ABLATIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "less dropout": {"dropout": (0.1, 0.25, 0.15)},
    "without dropout": {"dropout": 0.0},
    "without spelling": {"word_features": None},
    "without the linear path": {"direct": False},
    "without tying": {"tied": False, "dropout": (0.2, 0.5, 0.0)},
    "less dropout, untied, no linear path": {
        "tied": False,
        "direct": False,
        "dropout": (0.1, 0.25, 0.0),
    },
    "a step that does not fall": {"learning_rate": "constant"},
    "without drawn words": {"loss": "exact"},
    "with averages of 128 words": {"n_distant": 128},
}


def network(corpus: Corpus, name: str, **changes: Any) -> NeuralLM:
    """Make one of `NETWORKS` for a corpus, with changes.

    Parameters
    ----------
    corpus : Corpus
        As the functions of `nplm.datasets` return it.
    name : str
        Which.
    **changes
        Parameters of `NeuralLM`; ``word_features="spelling"`` are those of the corpus's
        vocabulary.

    Returns
    -------
    lm : NeuralLM
        Not fitted.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    settings = NETWORKS[name] | changes
    if settings.get("word_features") == SPELLING:
        settings["word_features"], _ = corpus.vocabulary.spelling_features()
    return NeuralLM(n_words=corpus.n_words, **settings)


def as_stream(corpus: Corpus, n_context: int) -> Corpus:
    """Give the corpus as one stream: a network may look beyond a sentence's start.

    Its training part begins with `n_context` boundaries, so that all its words have a
    window of so many: the first words of the Penn Treebank's are nowhere else in it.
    """
    if corpus.boundary is None:
        return corpus
    before = np.full(n_context, corpus.boundary, dtype=np.int32)
    return replace(corpus, boundary=None, train=np.concatenate([before, corpus.train]))
