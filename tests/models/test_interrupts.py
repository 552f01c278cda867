"""Interrupted fits of models with a network inside keep what the network learned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from nplm import KneserNeyLM, MixtureLM, NeuralCacheLM, ShortlistLM, TextLM, windows
from nplm.models.neural.network.network import Network
from tests.helpers import paper_lm, small_text, text
from tests.helpers.networks import interrupted_after

N_WORDS = 12
X, Y = windows(text(400, n_words=N_WORDS), 4)
NETWORK = paper_lm(3, n_hidden=2, embedding_dim=2, max_iter=9, random_state=0)
INNER = MixtureLM([("network", NETWORK)])
PIPELINE = [("same", FunctionTransformer()), ("lm", TextLM(NETWORK, n_context=2))]
N_LISTED = int(np.sort(np.bincount(Y))[-5:].sum())  # windows of the short-list
# Each with the way to its network, and the examples of an epoch.
MODELS = {
    "mixture": (
        MixtureLM([("kn", KneserNeyLM()), ("inner", INNER)], "learned"),
        lambda model: model.estimators_[1].estimators_[0],
        len(Y),
    ),
    "neural cache": (NeuralCacheLM(NETWORK), lambda model: model.estimator_, len(Y)),
    "short-list": (
        ShortlistLM(NETWORK, KneserNeyLM(), n_shortlist=5),
        lambda model: model.network_,
        N_LISTED,
    ),
    "text": (PIPELINE[1][1], lambda model: model.estimator_, 55),
    "pipeline": (Pipeline(PIPELINE), lambda model: model[-1].estimator_, 55),
}


@small_text
@pytest.mark.parametrize("fitted_before", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_interrupt_keeps_what_the_network_has_learned(name, fitted_before, monkeypatch):
    model, network_of, n_examples = MODELS[name]
    model, of_windows = clone(model), name not in ("text", "pipeline")
    if of_windows:
        data = dict(X=X, y=Y, X_val=X[:50], y_val=Y[:50])
        before = dict(X=X[::2] % 5, y=Y[::2] % 5, X_val=X[:9] % 5, y_val=Y[:9] % 5)
    else:
        data, before = dict(X=["a b c a b", "c b a c"] * 5), dict(X=["x y z"])
    if fitted_before:
        model.fit(**before)
    monkeypatch.setattr(Network, "train", interrupted_after(n_examples))
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(RuntimeWarning, match="NeuralLM: interrupted"),
    ):
        model.fit(**data)
    network = network_of(model)
    assert (network.n_iter_, network.n_seen_) == (1, n_examples)
    if of_windows:
        assert network.C_.shape == (N_WORDS, 2)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    else:
        assert np.isfinite(model.score_samples(data["X"])).all()
