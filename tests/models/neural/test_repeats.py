"""Repeated windows are scored once, with the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm import windows
from nplm.models.neural.network import network_scorer
from nplm.models.neural.network.network import Network
from nplm.models.neural.network.network_scorer import distinct_windows
from tests.helpers import neural_lm, text

N_WORDS = 12
X, Y = windows(text(200, n_words=N_WORDS), 3)
SMALL = dict(n_words=N_WORDS, n_hidden=4, embedding_dim=3, max_iter=1, random_state=0)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=60))
def test_distinct_windows_are_those_of_a_set(rows):
    rows = rows * -(-network_scorer.MIN_WINDOWS // max(1, len(rows)))
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    found = distinct_windows(table[:, :2], table[:, 2])
    first, group = found
    assert sorted(map(tuple, table[first])) == sorted(set(rows))
    np.testing.assert_array_equal(table[first][group], table)


@pytest.mark.parametrize("output", ["softmax", "classes", "tree"])
def test_repeats_have_the_same_bits_and_are_scored_once(output, monkeypatch):
    lm = neural_lm(**SMALL).set_params(output=output).fit(X, Y)
    rows = np.random.default_rng(0).integers(len(Y), size=1000)
    alone = [lm.log_prob(X[i : i + 1], Y[i : i + 1])[0] for i in rows]
    scored, log_prob = [], Network.log_prob
    monkeypatch.setattr(
        Network,
        "log_prob",
        lambda self, X, y: scored.append(len(y)) or log_prob(self, X, y),
    )
    np.testing.assert_array_equal(lm.log_prob(X[rows], Y[rows]), alone)
    assert scored == [
        len({(*x, w) for x, w in zip(X[rows].tolist(), Y[rows].tolist())})
    ]


def test_windows_of_one_hash_are_all_scored(monkeypatch):
    monkeypatch.setattr(network_scorer, "MULTIPLIER", np.uint64(0))
    assert distinct_windows(X.repeat(3, axis=0), Y.repeat(3)) is None
