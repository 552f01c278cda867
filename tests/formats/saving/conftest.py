"""Fitted models of every kind."""

import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import (
    AutoLM,
    AutoRecipe,
    BackoffLM,
    KneserNeyLM,
    LMClassifier,
    LMDetector,
    MixtureLM,
    Rescorer,
    Subwords,
    TextLM,
    Tokenizer,
    Vocabulary,
    WordClasses,
)  # fmt: skip
from nplm.formats import load_binary, save_binary
from tests.helpers import paper_lm
from tests.helpers.saving import (
    IDS,
    LABELS,
    LISTS,
    N_WORDS,
    SIZE,
    SMALL,
    TEXTS,
    TRIGRAM,
    WINDOWED,
    X_VAL,
    Y_VAL,
    X,
    Y,
    quiet,
)  # fmt: skip


@pytest.fixture(scope="package")
def fitted():
    def fit(model):
        return quiet(lambda: model.fit(X, Y, X_val=X_VAL, y_val=Y_VAL))

    models = {name: fit(clone(model)) for name, model in WINDOWED.items()}
    models["pruned"] = fit(KneserNeyLM(**SIZE)).prune(0.001)
    own = models["energy, adam"]
    own.add_words([[1, 2, 3], [2, 1, 1]], [12, 13])
    frozen = [("kn", FrozenEstimator(models["Kneser-Ney"]))]
    models["frozen"] = fit(MixtureLM([*frozen, ("tri", TRIGRAM)], "learned", **SIZE))
    return models


@pytest.fixture(scope="package")
def others(fitted, tmp_path_factory):
    """Estimators that are not fitted on windows, and models of other files."""
    return quiet(lambda: fitted_others(fitted, tmp_path_factory.mktemp("others")))


def fitted_others(fitted, folder):
    kn, lm = fitted["Kneser-Ney, cut"], TextLM(KneserNeyLM(), 2).fit(TEXTS)
    save_binary(kn, folder / "mapped", [f"w{i}" for i in range(N_WORDS)], bits=5)
    quantized, _ = load_binary(folder / "mapped")
    words = ["</s>", "<unk>", "a", "rose", *(f"w{i}" for i in range(4, N_WORDS))]
    members = [("small", FrozenEstimator(quantized)), ("tri", TRIGRAM)]
    return {
        "memory": paper_lm(2, **SMALL, n_memory=3).fit(X, Y),
        "quantized": quantized,
        "back-off": BackoffLM.from_trie(kn.trie_.unpacked(), boundary=0),
        "classes of words": WordClasses(4, random_state=0, **SIZE).fit(IDS),
        "auto": AutoLM(recipe=AutoRecipe(3.0)).fit(TEXTS),
        "text": lm,
        "tokenizer": Tokenizer(number="<n>"),
        "vocabulary": Vocabulary(min_count=11).fit([text.split() for text in TEXTS]),
        "subwords": Subwords("bytes").fit(TEXTS),
        **{
            f"classifier of {kind}": LMClassifier(lm).fit(TEXTS[:8], labels)
            for kind, labels in LABELS.items()
        },
        "detector": LMDetector(lm).fit(TEXTS),
        "rescorer": Rescorer(lm).fit(LISTS, ["a rose", "is a rose"]),
        "text, quantized": TextLM.from_model(quantized, words),
        "mixture, quantized": MixtureLM(members, [0.5, 0.5], **SIZE).fit(X, Y),
    }
