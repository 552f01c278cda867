"""RowCache: bounded, with the bits of the model."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from nplm import TextLM
from nplm.text.lm.window_scorer import RowCache
from tests.helpers import paper_lm


class Model:
    """A model whose rows are known, and which counts them."""

    n_words_ = 5

    def __init__(self):
        self.n_rows = 0

    def predict_log_proba(self, X):
        self.n_rows += len(X)
        return np.arange(5.0) + 10 * X[:, :1] + 100 * X[:, 1:]


@settings(max_examples=40)
@given(
    st.integers(0, 300),
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)),
            max_size=6,
        ),
        max_size=6,
    ),
)
def test_values_are_those_of_the_model_and_rows_are_bounded(max_bytes, calls):
    model = Model()
    cache = RowCache(model, max_bytes)
    for call in calls:
        found = cache.log_prob([own[:2] for own in call], [own[2] for own in call])
        assert found.tolist() == [i + 10 * a + 100 * b for a, b, i in call]
        assert len(cache._rows) <= cache.capacity == max(1, max_bytes // 40)
    distinct = {own[:2] for call in calls for own in call}
    if len(distinct) <= cache.capacity:
        assert model.n_rows == len(distinct)


def test_rows_used_least_recently_are_dropped():
    model = Model()
    cache = RowCache(model, 2 * 40)
    for context, n_rows in [((0, 0), 1), ((0, 1), 2), ((0, 0), 2), ((0, 2), 3)]:
        cache.row(context)
        assert model.n_rows == n_rows
    cache.row((0, 0))
    assert model.n_rows == 3
    cache.row((0, 1))
    assert model.n_rows == 4


def test_threads_share_a_cache_of_one_row():
    cache = RowCache(Model(), 40)

    def ask(seed):
        contexts = np.random.default_rng(seed).integers(0, 4, (300, 2)).tolist()
        return all(
            cache.log_prob([(a, b)], [3]).tolist() == [3 + 10 * a + 100 * b]
            for a, b in contexts
        )

    switches_after = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(ask, range(8)))
    finally:
        sys.setswitchinterval(switches_after)
    assert len(cache._rows) <= 1


def test_rows_do_not_pickle():
    cache = RowCache(Model())
    cache.row((0, 0))
    again = pickle.loads(pickle.dumps(cache))
    assert len(again._rows) == 0
    assert again.capacity == cache.capacity


def test_ids_that_are_no_words_are_refused():
    network = paper_lm(n_hidden=3, embedding_dim=2, max_iter=1, n_words=5)
    lm = TextLM(network, 2, boundary=0).fit([[1, 2, 3, 4]] * 20)
    scorer = lm.scorer()
    for word in (5, -1):
        with pytest.raises(ValueError, match=f"{word} is not a word id"):
            scorer.step(scorer.begin(), word)
    assert_array_equal(*[scorer.candidates(scorer.begin(), [1, 2]) for _ in range(2)])
