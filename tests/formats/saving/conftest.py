"""Fitted models of every kind."""

import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import KneserNeyLM, MixtureLM
from tests.helpers.saving import SIZE, TRIGRAM, WINDOWED, X_VAL, Y_VAL, X, Y, quiet


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
