"""Order of the examples of an epoch: divided over processes, and with weights."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from nplm import Adam, NeuralLM
from nplm.models.neural.fitting.training_windows import (
    OTHER_RANK,
    Order,
    Windows,
    order_of,
)
from nplm.models.training.parallel.processes import ALONE
from tests.helpers import text
from tests.helpers.checkpoint import Killed


def order(rank, sizes, *, shuffle=True):
    y = np.zeros(sizes[rank], np.int32)
    windows = Windows(y[:, None], y, min_windows=min(sizes))
    processes = SimpleNamespace(rank=rank, size=len(sizes))
    return order_of(windows, processes, shuffle=shuffle)


def epoch(made, rng, step):
    """Return all examples of an epoch, asked for `step` at a time."""
    made.begin(rng)
    starts = range(0, made.n_examples, step)
    parts = [made.examples(i, min(i + step, made.n_examples)) for i in starts]
    return np.concatenate(parts)


@pytest.mark.parametrize("sizes", [(5,), (5, 5), (6, 5, 9), (1, 4, 1, 2)])
@pytest.mark.parametrize("step", [1, 3, 4, 100])
def test_each_example_is_of_one_process(sizes, step):
    for shuffle in (False, True):
        everyones = [
            epoch(order(rank, sizes, shuffle=shuffle), np.random.RandomState(0), step)
            for rank in range(len(sizes))
        ]
        assert {len(found) for found in everyones} == {len(sizes) * min(sizes)}
        here = np.array(everyones) != OTHER_RANK
        assert (here.sum(axis=0) == 1).all()
        for found, size in zip(everyones, sizes, strict=True):
            own = found[found != OTHER_RANK]
            assert len(set(own)) == len(own) == min(sizes)
            assert own.max() < size
            assert shuffle or own.tolist() == list(range(min(sizes)))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("batch_size", [1, 4, 5])
def test_mini_batches_have_as_many_examples_of_each_process(size, batch_size):
    sizes = [20] * size
    found = np.array(
        [
            epoch(order(rank, sizes), np.random.RandomState(0), batch_size)
            for rank in range(size)
        ]
    )
    for start in range(0, found.shape[1], batch_size):
        own = (found[:, start : start + batch_size] != OTHER_RANK).sum(axis=1)
        assert own.max() - own.min() <= 1


def test_processes_keep_the_same_generator_and_shuffle_differently():
    rngs = [np.random.RandomState(0) for _ in "12"]
    found = [epoch(order(i, (50, 70)), rngs[i], 10) for i in (0, 1)]
    assert rngs[0].randint(2**31) == rngs[1].randint(2**31)
    assert found[0][::2].tolist() != found[1][1::2].tolist()
    # Another epoch leaves out other windows.
    again = epoch(order(1, (50, 70)), rngs[1], 10)
    assert set(again) != set(found[1])


def test_same_windows_in_all_processes_have_one_order():
    y = np.zeros(9, np.int32)
    made = order_of(
        Windows(y[:, None], y), SimpleNamespace(rank=1, size=2), shuffle=True
    )
    assert type(made) is Order
    found = epoch(made, np.random.RandomState(0), 4)
    assert sorted(found) == list(range(9))


# -- weights -------------------------------------------------------------------------

LENGTHS = np.array([7, 1, 3, 30, 12, 1, 5])
OF_DOCUMENTS = np.array([0.3, 0.5, 1, 0.25, 0.9, 0.01, 1])
WEIGHTS = np.repeat(OF_DOCUMENTS, LENGTHS)
FIRST = np.cumsum(LENGTHS) - LENGTHS


def weighted(runs_of=None, *, shuffle=True):
    # Three rows between documents are no windows.
    rows = np.arange(len(WEIGHTS)) + 3 * np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    y = np.zeros(rows[-1] + 1, np.int32)
    windows = Windows(y[:, None], y, rows=rows, weights=WEIGHTS)
    return order_of(windows, ALONE, shuffle=shuffle, runs_of=runs_of)


@pytest.mark.parametrize("runs_of", [None, 16])
def test_windows_are_visited_by_their_weights_on_average(runs_of):
    made, rng, n_epochs = weighted(runs_of), np.random.RandomState(0), 1200
    visits = np.array([
        np.bincount(epoch(made, rng, 100), minlength=len(WEIGHTS))
        for _ in range(n_epochs)
    ])  # fmt: skip
    n = round(WEIGHTS.sum())
    assert set(visits.sum(axis=1)) == {n}
    assert (visits[:, WEIGHTS == 1] == 1).all()
    is_part = WEIGHTS < 1
    rounded = (n - (~is_part).sum()) / WEIGHTS[is_part].sum()
    expected = rounded * WEIGHTS[is_part]
    error = np.sqrt(expected * (1 - expected) / n_epochs)
    np.testing.assert_array_less(
        abs(visits[:, is_part].mean(axis=0) - expected), 4 * error
    )
    # Of each document, each epoch has its share to within one window.
    shares = np.add.reduceat(visits, FIRST, axis=1)
    assert (abs(shares - OF_DOCUMENTS * LENGTHS) < 1.1).all()


def test_units_with_a_state_read_parts_of_documents_in_order():
    found = epoch(weighted(1, shuffle=False), np.random.RandomState(1), 100)
    document = np.repeat(np.arange(len(LENGTHS)), LENGTHS)[found]
    assert (np.diff(document) >= 0).all()
    for i, length in enumerate(LENGTHS):
        steps = np.diff(found[document == i])
        assert set(steps) <= {1, 1 - length}
        assert (steps != 1).sum() <= 1


@pytest.mark.parametrize("memory", [0, 4])
def test_a_network_learns_weighted_frequencies(memory):
    documents, weights = [[2, 0], [2, 1], [3, 0], [3, 1]], [0.2, 0.6, 1.5, 0.5]
    lm = NeuralLM(
        2, n_words=4, n_hidden=8, embedding_dim=4, n_memory=memory, max_iter=100,
        learning_rate_init=0.01, batch_size=16, dropout=0, early_stopping=False,
        random_state=0, solver=Adam("linear"), alpha=0,
    )  # fmt: skip
    lm.fit_stream(documents * 40, sample_weight=weights * 40)
    proba = np.exp(lm.log_prob_stream([[2, 0], [3, 0]]))
    np.testing.assert_allclose(proba, [0.25, 0.75], atol=0.03)


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_memory": 5}, {"n_jobs": 2}, {"early_stopping": True}],
    ids=["windows", "memory", "threads", "held-out"],
)
@pytest.mark.filterwarnings("ignore:NeuralLM. the held-out loss was still falling")
def test_weighted_fits_repeat_and_resume(settings, tmp_path):
    documents = np.split(text(600), np.arange(20, 600, 20))
    weights = np.random.default_rng(0).random(len(documents)) * 2.5
    settings = {"early_stopping": False, "max_iter": 3, "batch_size": 16} | settings
    lm = NeuralLM(
        3, n_words=12, n_hidden=5, embedding_dim=3, random_state=0, **settings
    )
    data = dict(ids=documents, sample_weight=weights)
    whole, again = (clone(lm).fit_stream(**data) for _ in "12")

    def kill(done, total, loss):
        if done > 900:
            raise Killed

    with pytest.raises(Killed):
        clone(lm).fit_stream(**data, checkpoint=tmp_path, progress=kill)
    resumed = clone(lm).fit_stream(**data, checkpoint=tmp_path)
    for other in (again, resumed):
        np.testing.assert_array_equal(other.U_, whole.U_)
        np.testing.assert_array_equal(
            other.history_["val_loss"], whole.history_["val_loss"]
        )
    data["sample_weight"] = np.ceil(weights) - 0.5
    with pytest.raises(ValueError, match="is of another fit: its"):
        clone(lm).fit_stream(**data, checkpoint=tmp_path)


def test_held_out_losses_are_weighted():
    documents = np.split(text(2000), np.arange(10, 2000, 10))
    weights = np.random.default_rng(0).random(len(documents))
    lm = NeuralLM(
        3, n_words=12, n_hidden=5, embedding_dim=3, random_state=0, max_iter=1,
        early_stopping=True,
    )  # fmt: skip
    lm.fit_stream(documents, sample_weight=weights)
    # The last tenth, by weights; no context spans documents.
    of_tokens = np.repeat(weights, 8)
    n = round(of_tokens.sum())
    n_trained = n - round(0.1 * n)
    held_out = np.cumsum(of_tokens) - of_tokens >= n_trained - 0.5
    scores = lm.log_prob_stream(documents)
    expected = -np.average(scores[held_out], weights=of_tokens[held_out])
    assert lm.val_loss_ == pytest.approx(expected, rel=1e-6)
    assert lm.n_seen_ == n_trained
