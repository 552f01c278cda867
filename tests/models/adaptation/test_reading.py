"""adapted_log_prob: a network that trains on what it has read."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from nplm import DivergenceError, KneserNeyLM, NeuralLM, adapted_log_prob, windows
from nplm.models.neural.options.solvers import SGD
from tests.helpers import energy_lm, paper_lm, text

IDS = text(500, n_words=12)
X, Y = windows(IDS[:400], 2)
X_NEW, Y_NEW = windows((IDS * 5) % 12, 2)  # other words follow
SMALL = dict(n_words=12, n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
NETWORKS = {
    "softmax": paper_lm(**SMALL),
    "default": NeuralLM(**SMALL),
    "tied": NeuralLM(**SMALL, output="softmax").set_params(output__tied=True),
    "importance": paper_lm(**SMALL, loss="importance", n_noise=5),
    "energy": energy_lm(**SMALL),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns_what_it_reads_and_leaves_the_network(name):
    lm = clone(NETWORKS[name]).fit(X, Y)
    before = pickle.dumps(lm)
    adapted = adapted_log_prob(lm, X_NEW, Y_NEW, learning_rate=0.02, block_size=10)
    assert adapted[-200:].mean() > lm.log_prob(X_NEW, Y_NEW)[-200:].mean() + 0.02
    assert_allclose(adapted[:10], lm.log_prob(X_NEW[:10], Y_NEW[:10]), rtol=1e-6)
    assert pickle.dumps(lm) == before
    again = adapted_log_prob(lm, X_NEW, Y_NEW, learning_rate=0.02, block_size=10)
    assert_array_equal(again, adapted)


def test_it_is_partial_fit_after_each_block():
    lm = paper_lm(**SMALL, alpha=0).fit(X, Y)
    want, reader = [], pickle.loads(pickle.dumps(lm))
    reader.set_params(solver=SGD(learning_rate="constant"), learning_rate_init=0.01)
    reader.set_params(batch_size=32, shuffle=False)
    for start in range(0, len(Y_NEW), 32):
        rows = slice(start, start + 32)
        want.append(reader.log_prob(X_NEW[rows], Y_NEW[rows]))
        reader.partial_fit(X_NEW[rows], Y_NEW[rows])
    got = adapted_log_prob(lm, X_NEW, Y_NEW, learning_rate=0.01)
    assert_allclose(got, np.concatenate(want), rtol=1e-5)


def test_no_step_is_no_adaptation():
    lm = clone(NETWORKS["softmax"]).fit(X, Y)
    got = adapted_log_prob(lm, X_NEW, Y_NEW, learning_rate=0)
    assert_array_equal(got, lm.log_prob(X_NEW, Y_NEW))


def test_what_is_refused():
    lm = clone(NETWORKS["softmax"]).fit(X, Y)
    with pytest.raises(TypeError, match="got a KneserNeyLM"):
        adapted_log_prob(KneserNeyLM(), X, Y)
    with pytest.raises(NotFittedError):
        adapted_log_prob(clone(lm), X, Y)
    for rate in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="learning_rate must be a finite number"):
            adapted_log_prob(lm, X, Y, learning_rate=rate)
    for size in (0, 2.5, True):
        with pytest.raises(ValueError, match="block_size must be a whole number"):
            adapted_log_prob(lm, X, Y, block_size=size)
    with pytest.raises(ValueError, match="X has 12"):
        adapted_log_prob(lm, X + 1, Y)
    with pytest.raises(DivergenceError, match="learning_rate=1e\\+300"):
        adapted_log_prob(lm, X, Y, learning_rate=1e300)
