"""Residual blocks of a network: their parameters, files and searches."""

import numpy as np
import pytest
from sklearn.base import clone

from nplm import EnergyLM, NeuralLM, windows
from tests.helpers import text

SMALL = dict(n_words=12, embedding_dim=3, max_iter=2, random_state=0)
X, Y = windows(text(400), 4)


def deep(**settings):
    return NeuralLM(**SMALL | dict(n_hidden=(5, 8, 4)) | settings)


@pytest.mark.parametrize("tied", [False, True])
def test_blocks_begin_as_the_identity(tied):
    settings = dict(learning_rate_init=1e-12, output__tied=tied)
    lm = deep().set_params(**settings).fit(X, Y)
    plain = deep(n_hidden=5).set_params(**settings).fit(X, Y)
    np.testing.assert_allclose(lm.predict_proba(X), plain.predict_proba(X), rtol=1e-5)
    assert all(np.abs(block.H).min() > 0 for block in lm.blocks_)


@pytest.mark.parametrize("n_hidden", [[5, 8], np.array([5, 8]), (np.int8(5), 8)])
def test_any_sequence_of_sizes(n_hidden):
    want = deep(n_hidden=(5, 8)).fit(X, Y)
    lm = clone(deep(n_hidden=n_hidden)).fit(X, Y)
    np.testing.assert_array_equal(lm.log_prob(X, Y), want.log_prob(X, Y))


def test_one_size_is_the_network_without_blocks():
    lm, plain = deep(n_hidden=(5,)).fit(X, Y), deep(n_hidden=5).fit(X, Y)
    assert lm.blocks_ == plain.blocks_ == ()
    np.testing.assert_array_equal(lm.log_prob(X, Y), plain.log_prob(X, Y))
    lm.set_params(n_hidden=5).partial_fit(X, Y)


@pytest.mark.parametrize(
    ("n_hidden", "message"),
    [
        ((), r"n_hidden=\(\) is neither a whole number nor a sequence"),
        ((5, 1.5), r"n_hidden=\(5, 1.5\) is neither"),
        ((5, True), "is neither"),
        ([[5, 8]], "is neither"),
        (np.array(5.5), "is neither"),
        ((5, 0), r"n_hidden=\(5, 0\) has 0; the hidden layer and the residual"),
        ((0, 5), "has 0"),
        ((-3,), "has -3"),
        ("400", "must be an int in the range"),
        (-1, "must be an int in the range"),
    ],
)
def test_invalid_sizes_are_refused(n_hidden, message):
    with pytest.raises(ValueError, match=message):
        deep(n_hidden=n_hidden).fit(X, Y)


def test_an_energy_has_one_layer():
    with pytest.raises(ValueError, match=r"'n_hidden' parameter of EnergyLM must be"):
        EnergyLM(**SMALL, n_hidden=(5, 8)).fit(X, Y)
