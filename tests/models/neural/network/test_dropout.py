"""Dropout: its masks, its kernels against plain NumPy, and its fits."""

import numpy as np
import pytest

from nplm import windows
from nplm.models.neural.network.dropout import Dropout
from tests.helpers import assert_same_weights, paper_lm, text
from tests.reference import neural as reference

# -- masks --------------------------------------------------------------------------


def test_the_generator_is_splitmix64():
    # The first numbers of Vigna's splitmix64.c from 1234567, 16 bits at a time.
    drawn = [6457827717110365317, 3203168211198807973]
    bits = [(z >> 16 * j) & 0xFFFF for z in drawn for j in range(4)]
    for rate in (0.25, 0.5, 0.9):
        kept = np.array(bits) >= round(rate * 65536)
        for found in (
            reference.mask(1234567, 0, 1, 8, rate)[0],
            reference.mask(1234567, 0, 2, 3, rate)[:, :3].ravel(),
        ):
            places = np.arange(8) if len(found) == 8 else [0, 1, 2, 4, 5, 6]
            np.testing.assert_array_equal(found > 0, kept[places])


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.999])
def test_kept_values_are_scaled_up(rate):
    factors = reference.mask(7, 1000, 500, 101, rate)
    n, kept = factors.size, (factors > 0).mean()
    assert len(np.unique(factors)) <= 2
    assert factors.max() * (1 - rate) == pytest.approx(1, rel=2 * 2**-16 / (1 - rate))
    assert abs(kept - (1 - rate)) <= 5 * np.sqrt(rate * (1 - rate) / n)
    # No two examples, and no two numbers, go together.
    if rate == 0.5:
        for rows in (factors, factors.T):
            together = np.corrcoef(rows)
            np.fill_diagonal(together, 0)
            assert np.abs(together).max() < 6 / np.sqrt(rows.shape[1])


def test_mask_of_an_example_does_not_depend_on_the_mini_batch():
    whole = reference.mask(7, 20, 9, 5, 0.4)
    np.testing.assert_array_equal(whole[4:], reference.mask(7, 24, 5, 5, 0.4))


def test_examples_of_a_run_have_one_mask():
    runs = reference.mask(7, 20, 9, 5, 0.4, 4)
    np.testing.assert_array_equal(runs[::4], reference.mask(7, 20, 9, 5, 0.4)[::4])
    for first in (0, 4):
        assert (runs[first : first + 4] == runs[first]).all()


def test_equal_contexts_of_a_mini_batch_have_one_mask():
    X = np.array([[3, 1], [2, 1], [3, 1], [1, 3]], np.int32)
    first, other = (reference.mask_of_contexts(7, t, X, 50, 0.4) for t in (20, 24))
    np.testing.assert_array_equal(first[0], first[2])
    distinct = np.concatenate([first[[0, 1, 3]], other[[0, 1, 3]]])
    assert len(np.unique(distinct, axis=0)) == 6


def test_each_team_has_its_own_seeds():
    seeds = Dropout(0.5).seeded(np.random.RandomState(0), 4, 2).seeds
    assert seeds.shape == (4, 5)  # also of two blocks
    assert len(np.unique(seeds)) == 20


# -- the estimator ---------------------------------------------------------------------

SETTINGS = dict(n_hidden=6, embedding_dim=4, n_words=12, max_iter=2, random_state=0)


@pytest.fixture(scope="module")
def data():
    return windows(text(303), 3)


def test_single_rate_applies_to_all_layers(data):
    lm = paper_lm(dropout=(0.25, 0.25, 0.25), tied=True, **SETTINGS).fit(*data)
    assert_same_weights(paper_lm(dropout=0.25, tied=True, **SETTINGS).fit(*data), lm)


def test_zero_dropout_is_a_fit_without_dropout(data):
    for none in (0, [0.0, 0, 0]):
        lm = paper_lm(dropout=none, **SETTINGS).fit(*data)
        assert_same_weights(lm, paper_lm(**SETTINGS).fit(*data))


def test_epochs_have_different_masks(data):
    # Of no step: what changes is the mask.
    X, y = data
    lm = paper_lm(
        dropout=0.5, learning_rate_init=1e-12, shuffle=False, **SETTINGS
    ).fit(X, y)  # fmt: skip
    lm.set_params(learning_rate_init=0.1).partial_fit(X, y)
    lm.set_params(learning_rate_init=1e-12, max_iter=3, warm_start=True).fit(X, y)
    assert len(set(lm.history_["loss"][-3:])) == 3


@pytest.mark.parametrize(
    ("dropout", "message"),
    [
        (1.0, "a rate of 1.0;"),
        (-0.1, "a rate of -0.1;"),
        (np.nan, "a rate of nan;"),
        ((0.1, 0.2), "give one rate, or three"),
        ([[0.1, 0.2, 0.3]], "give one rate, or three"),
        ((0.1, 2, 0.3), "a rate of 2.0;"),
    ],
)
def test_invalid_values_are_refused(data, dropout, message):
    with pytest.raises(ValueError, match=message):
        paper_lm(dropout=dropout, **SETTINGS).fit(*data)
