"""Models of every kind that `nplm.save` supports, with their data."""

import re
import warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.pipeline import Pipeline

from nplm import (
    CacheLM,
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralCacheLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    windows,
)
from tests.helpers import bfloat16_is_here, energy_lm, paper_lm, text

N_WORDS = 12
IDS = text(700, n_words=N_WORDS)
X, Y = windows(IDS[:500], 3, boundary=0)
X_VAL, Y_VAL = windows(IDS[500:], 3, boundary=0)
SIZE = dict(n_words=N_WORDS)
SMALL = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0, **SIZE)
TREE = np.array([[i, N_WORDS + 1 + i] for i in range(N_WORDS - 2)] + [[10, 11]])

NETWORKS = {
    "softmax": paper_lm(**SMALL),
    "direct, double": paper_lm(**SMALL, direct=True, precision="float64"),
    "no hidden units": paper_lm(**SMALL | dict(n_hidden=0), direct=True),
    "adam, distant": paper_lm(3, **SMALL, solver="adam", n_distant=3),
    "senses, adam": paper_lm(**SMALL, n_senses=2, solver="adam"),
    "blocks": paper_lm(**SMALL | dict(n_hidden=(4, 7, 5))),
    "tied, blocks, adam": paper_lm(
        **SMALL | dict(n_hidden=[4, 7]), tied=True, solver="adam", dropout=0.2
    ),
    "tied": paper_lm(**SMALL, tied=True, dropout=(0.2, 0.5, 0.3)),
    "tied, direct, adam": paper_lm(**SMALL, tied=True, direct=True, solver="adam"),
    "of parts": paper_lm(**SMALL, word_features=np.eye(N_WORDS)[:, :5], solver="adam"),
    "tied, of parts": paper_lm(
        **SMALL, tied=True, word_features=csr_array(np.eye(N_WORDS)[:, :5]),
        solver="adam",
    ),
    "fixed": paper_lm(
        **SMALL, embeddings=np.arange(36).reshape(12, 3) / 36, trained=False
    ),
    "classes": paper_lm(**SMALL, output="classes"),
    "classes given": paper_lm(
        **SMALL, output="classes", classes=[i % 3 for i in range(N_WORDS)]
    ),
    "tree": paper_lm(**SMALL, output="tree", direct=True, solver="adam"),
    "tree given": paper_lm(**SMALL, output="tree", tree=TREE),
    "importance": paper_lm(**SMALL, loss="importance", n_noise=5),
    "tied, nce": paper_lm(**SMALL, tied=True, direct=True, loss="nce", n_noise=5),
    "nce": paper_lm(**SMALL, loss="nce", proposal=list(range(1, 13))),
    "seed of its own": paper_lm(
        **SMALL | dict(random_state=np.random.RandomState(3)), early_stopping=True
    ),
    "energy": energy_lm(**SMALL),
    "energy, adam": energy_lm(**SMALL, target_weights=True, solver="adam"),
    "energy, nce": energy_lm(**SMALL, loss="nce", n_noise=5),
}  # fmt: skip
if bfloat16_is_here():
    NETWORKS["rounded"] = paper_lm(**SMALL, precision="bfloat16")
TRIGRAM = InterpolatedTrigram(**SIZE)
MIXED = [("nn", paper_lm(**SMALL)), ("tri", TRIGRAM)]
WINDOWED = NETWORKS | {
    "Kneser-Ney": KneserNeyLM(**SIZE),
    "Kneser-Ney, cut": KneserNeyLM(
        interpolate=False, min_counts=(1, 1, 2), boundary=0, discounts="plain", **SIZE
    ),
    "unigrams": KneserNeyLM(1, interpolate_unigrams=False, **SIZE),
    "trigram": TRIGRAM,
    "class model": ClassLM(n_classes=4, random_state=0, **SIZE),
    "class model of given": ClassLM(2, classes=np.arange(12) % 4, **SIZE),
    "uniform": UniformLM("unseen", **SIZE),
    "cache": CacheLM(2, half_life=None, boundary=0, **SIZE),
    "neural cache": NeuralCacheLM(
        NeuralLM(2, n_hidden=4, embedding_dim=3, max_iter=1, random_state=0), **SIZE
    ),
    "mixture": MixtureLM(MIXED, **SIZE),
    "mixture by context": MixtureLM(MIXED, "context", include_uniform=True, **SIZE),
    "mixture of mixtures": MixtureLM(
        [("inner", MixtureLM(MIXED, "learned")), ("kn", KneserNeyLM())],
        [0.25, 0.75], **SIZE,
    ),
    "short-list": ShortlistLM(
        paper_lm(**SMALL), KneserNeyLM(), n_shortlist=5, **SIZE
    ),
    "short-list, mixture": ShortlistLM(
        paper_lm(**SMALL), MixtureLM(MIXED), n_shortlist=5, **SIZE
    ),
}  # fmt: skip
TEXTS = ["a rose is a rose", "is a rose a rose", "", "a \\ r\n\\n"] * 10
LISTS = [[("a rose", -1.0), ("rose a", -1.5)], [("is a rose", -2.0), ("a is", -2.2)]]
LABELS = {
    "text": ["a", "b"] * 4,
    "objects": np.array(["a", "b"] * 4, dtype=object),
    "numbers": [0, 1] * 4,
    "booleans": [True, False] * 4,
    "floats": np.array([0.0, 1.0] * 4, dtype=np.float32),
}
OTHERS = [
    "memory", "quantized", "back-off", "classes of words", "auto", "text", "tokenizer",
    "vocabulary", "subwords", *(f"classifier of {kind}" for kind in LABELS),
    "detector", "rescorer", "text, quantized", "mixture, quantized",
]  # fmt: skip


def pipeline(lm, **options):
    steps = [("tokens", Tokenizer(re.compile(r"\S+"), lowercase=True)),
             ("ids", Vocabulary()), ("lm", TextLM(lm, 2, **options))]  # fmt: skip
    return Pipeline(steps)


def entry(kind, fitted=None, **params):
    """Return an estimator as a file of `nplm.save` has it."""
    return {"kind": kind, "params": {"dict": params}, "fitted": fitted}


def mixture_of(*members, fitted=None):
    """Return a mixture of the estimators of these numbers."""
    pairs = [{"tuple": [f"m{i}", {"object": n}]} for i, n in enumerate(members)]
    return entry("MixtureLM", fitted, estimators=pairs)


def quiet(fit):
    """Fit without the warning on discounts of small texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fit()


MODELS = [*WINDOWED, "pruned", "frozen"]
