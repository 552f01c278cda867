"""Networks that go past the paper's, and ablations of one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from nplm import SGD, Adam, Features, Importance, NeuralLM, Softmax
from nplm.datasets import Corpus
from nplm.experiments import grouped

# Most networks have tied features with direct connections, noise samples, Adam with a
# learning rate that falls to 0, and much dropout (less is better).
COMMON: dict[str, Any] = {
    "output": Softmax(tied=True, direct=True),
    "features": Features(word_features="spelling"),
    "loss": Importance(1024),
    "solver": Adam("linear", epsilon=1e-5),
    "learning_rate_init": 2e-3, "alpha": 0.1, "dropout": (0.2, 0.5, 0.35),
    "batch_size": 512, "max_iter": 3, "early_stopping": False, "random_state": 0,
}  # fmt: skip
UNTIED: dict[str, Any] = COMMON | {
    "output": "softmax", "dropout": (0.1, 0.25, 0.0), "batch_size": 256, "max_iter": 10,
}  # fmt: skip

NETWORKS: dict[str, dict[str, Any]] = {
    # The paper's kind of network and training, but with noise samples, dropout, and a
    # learning rate that falls to 0.
    "untied": COMMON | {
        "order": 7, "n_hidden": 255, "embedding_dim": 64, "output": "softmax",
        "features": "learned", "loss": Importance(512), "solver": SGD("linear"),
        "learning_rate_init": 8e-3, "alpha": 1e-4, "dropout": (0.15, 0.2, 0.0),
        "batch_size": 64, "max_iter": 4,
    },
    # The network that ablations are compared with.
    "small": COMMON | {"order": 5, "n_hidden": 256, "embedding_dim": 96},
    "window": COMMON | {"order": 7, "n_hidden": 400, "embedding_dim": 128},
    "distant": COMMON | {
        "order": 6, "n_hidden": 400, "embedding_dim": 128, "n_distant": 128,
    },
    # Output weights of their own, and little dropout: best on the Penn Treebank.
    "untied window": UNTIED | {"order": 7, "n_hidden": 512, "embedding_dim": 200},
    "untied distant": UNTIED | {
        "order": 6, "n_hidden": 400, "embedding_dim": 160, "n_distant": 200,
    },
}  # fmt: skip

# Changes of "small", one thing at a time.
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
    "a constant learning rate": {"learning_rate": "constant"},
    "the exact loss": {"loss": "exact"},
    "with averages of 128 words": {"n_distant": 128},
}


def network(corpus: Corpus, name: str, **changes: Any) -> NeuralLM:
    """Make one of `NETWORKS` for a corpus, with changes.

    The changes are parameters of `NeuralLM`, and those of its options by their own
    name. ``word_features="spelling"`` stands for those of the corpus's vocabulary.
    """
    lm: NeuralLM = clone(NeuralLM(n_words=corpus.n_words, **NETWORKS[name]))
    lm.set_params(**grouped(changes))
    if isinstance(lm.get_params().get("features__word_features"), str):
        matrix, _ = corpus.vocabulary.spelling_features()
        lm.set_params(features__word_features=matrix)
    return lm


def as_stream(corpus: Corpus, n_context: int) -> Corpus:
    """Return the corpus as one stream: a network may look beyond a sentence's start.

    The training part begins with `n_context` boundaries, so that each of its words has
    a window of this many: the first words of the Penn Treebank occur nowhere else.
    """
    if corpus.boundary is None:
        return corpus
    before = np.full(n_context, corpus.boundary, dtype=np.int32)
    return replace(corpus, boundary=None, train=np.concatenate([before, corpus.train]))
