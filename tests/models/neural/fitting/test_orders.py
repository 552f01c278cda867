"""Order of the examples of an epoch whose windows are divided over processes."""

from types import SimpleNamespace

import numpy as np
import pytest

from nplm.models.neural.fitting.windows import OTHER_RANK, Order, Windows, order_of


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
