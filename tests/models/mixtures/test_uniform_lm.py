"""UniformLM over all words, and over words unseen in training."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nplm import UniformLM, windows


def test_uniform():
    X, y = windows([0, 1, 2, 0, 1], 1)
    everything = UniformLM(n_words=5).fit(X, y)
    assert everything.perplexity(X, y) == pytest.approx(5)
    unseen = UniformLM("unseen", n_words=5).fit(X, y)
    assert_allclose(unseen.predict_proba(X[:1]), [[0, 0, 0, 0.5, 0.5]])
    assert unseen.log_prob([[0], [0]], [3, 0]).tolist() == [np.log(0.5), -np.inf]
    assert_allclose(UniformLM("unseen", n_words=3).fit(X, y).proba_, 1 / 3)
    with pytest.raises(ValueError, match="words"):
        UniformLM("some").fit(X, y)
