"""What every kind of network promises: it learns, alone and in threads, to the bit."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from nplm import (
    NCE,
    SGD,
    EnergyLM,
    Features,
    Importance,
    NeuralLM,
    Softmax,
    Tree,
    windows,
)
from tests.helpers import assert_same_weights, markov_stream
from tests.helpers.checkpoint import fit_and_interrupt

IDS, HELD_OUT = markov_stream(1500), markov_stream(500, seed=1)
X, Y = windows(IDS, 5)
VAL = dict(zip(("X_val", "y_val"), windows(HELD_OUT, 5)))
RNG = np.random.default_rng(0)
START = RNG.normal(size=(20, 4))
PARTS = csr_array(RNG.random((20, 7)) < 0.3, dtype=float)
SAMPLES = Importance(n_noise=10)
NETWORKS = {
    "default": dict(),
    "sgd": dict(solver=SGD("invscaling"), learning_rate_init=0.02),
    "importance": dict(loss=SAMPLES),
    "importance, more samples": dict(loss=Importance(4, min_effective_samples=9)),
    "nce": dict(loss=NCE(n_noise=10)),
    "direct": dict(output__direct=True),
    "no hidden units": dict(n_hidden=0, output__direct=True),
    "blocks": dict(n_hidden=(6, 9, 5)),
    "distant": dict(n_distant=5),
    "senses": dict(features__n_senses=2),
    "tied": dict(output=Softmax(tied=True), learning_rate_init=0.01),
    "tied, direct, sampled": dict(output=Softmax(tied=True, direct=True), loss=SAMPLES),
    "given features": dict(features=Features(START)),
    "fixed features": dict(features=Features(START, trained=False)),
    "composed": dict(features=Features(word_features=PARTS)),
    "tied, composed, sampled": dict(
        output=Softmax(tied=True), features=Features(word_features=PARTS), loss=SAMPLES
    ),
    "classes": dict(output="classes"),
    "tree": dict(output="tree", learning_rate_init=5e-3),
    "binary tree": dict(output=Tree("huffman", n_branches=2)),
    "cells": dict(n_memory=5),
    "cells, blocks, sampled": dict(n_memory=5, n_hidden=(6, 9), loss=SAMPLES),
    "energy": dict(target_weights=False),
    "energy, weights of words": dict(target_weights=True),
    "energy, sampled": dict(target_weights=False, loss=SAMPLES),
}
each_network = pytest.mark.parametrize("name", NETWORKS)


def network(name, **settings):
    own = dict(
        order=3, n_words=20, n_hidden=6, embedding_dim=4, batch_size=64, max_iter=2,
        learning_rate_init=0.02, random_state=0, early_stopping=False,
    )  # fmt: skip
    kind = EnergyLM if name.startswith("energy") else NeuralLM
    return kind().set_params(**own | NETWORKS[name] | settings)


def equal(one, other):
    assert_same_weights(one, other)
    assert one.history_["loss"] == other.history_["loss"]
    found, scores = (lm.log_prob_stream(HELD_OUT) for lm in (one, other))
    np.testing.assert_array_equal(found, scores)


@each_network
def test_it_learns_and_keeps_its_best_epoch(name):
    lm = network(name, max_iter=12, early_stopping=True, alpha=0).fit(X, Y, **VAL)
    # Of the unigrams 2.9, of the source 0.8.
    assert lm.history_["val_loss"][0] > lm.val_loss_ < 2
    if "cells" in name:  # they read held-out text as a stream, in columns
        assert -lm.score_stream(HELD_OUT) == pytest.approx(lm.val_loss_, rel=1e-2)
    else:
        assert -lm.score(*VAL.values()) == pytest.approx(lm.val_loss_, rel=1e-6)
    assert lm.val_loss_ == min(lm.history_["val_loss"])
    if name == "sgd":  # its best epoch is not the last
        assert lm.val_loss_ < lm.history_["val_loss"][-1]
    proba = lm.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    found = np.log(proba[np.arange(len(Y)), Y])
    np.testing.assert_allclose(lm.log_prob(X, Y), found, atol=2e-5)


@pytest.mark.parametrize("name", [n for n in NETWORKS if "tied" not in n])
def test_training_starts_at_the_unigrams(name):
    # Those of the tied are at the features, which are not 0.
    lm = network(name, learning_rate_init=1e-12, max_iter=1).fit(X, Y)
    shares = np.bincount(Y, minlength=20) + 1
    proba = lm.predict_proba(X[:3])
    np.testing.assert_allclose(proba, [shares / shares.sum()] * 3, rtol=1e-4)


@each_network
def test_fits_have_the_same_bits(name, tmp_path):
    lm = network(name).fit(X, Y, **VAL)
    equal(clone(lm).fit(X, Y, **VAL), lm)
    first = 0 if name == "distant" else 3  # whose windows have all columns of X
    equal(clone(lm).fit_stream(IDS[first:], HELD_OUT[first:]), lm)

    fit_and_interrupt(clone(lm), VAL, 2000, X=X, y=Y, checkpoint=tmp_path)
    equal(clone(lm).fit(X, Y, **VAL, checkpoint=tmp_path), lm)
    again = pickle.loads(pickle.dumps(lm))
    equal(again.partial_fit(X, Y), lm.partial_fit(X, Y))


@each_network
def test_threads_train_the_network_of_one(name):
    one, *more = (
        network(name, precision="float64", n_jobs=n).fit(X[:500], Y[:500])
        for n in (1, 2, 3, 3)
    )
    for other in more:
        np.testing.assert_allclose(other.log_prob(X, Y), one.log_prob(X, Y), rtol=1e-9)
    equal(*more[1:])


@pytest.mark.parametrize("parallel", ["async", "locked"])
@each_network
def test_asynchronous_threads(name, parallel):
    one, alone, two = (
        network(name, max_iter=4, parallel=way, n_jobs=n)
        for way, n in [("sync", 1), (parallel, 1), (parallel, 2)]
    )
    if name == "tied":
        with pytest.raises(ValueError, match="an exact update changes all features"):
            two.set_params(loss="exact").fit(X, Y)
        return
    equal(alone.fit(X, Y), one.fit(X, Y))
    assert two.fit(X, Y).n_seen_ == one.n_seen_
    assert two.score(X, Y) == pytest.approx(one.score(X, Y), abs=0.6)  # of 2.9, and 0.8
