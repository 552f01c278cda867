"""Held-out parts of texts, and texts for networks."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nplm import windows
from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.auto.memory import buffer_bytes, fit_bytes, ngrams_are_on_disk
from nplm.models.auto.rules import (
    batch_size_for,
    gain_of_twice,
    most_epochs,
    nearest_row,
)
from nplm.models.auto.texts import AutoText, runs_of, split
from nplm.models.neural.presets import ROWS, dropout_for
from nplm.text.documents import Documents

MEASURED = Path(__file__).parents[3] / "docs" / "measured" / "minutes.json"


def documents_of(lengths):
    lengths = np.array(lengths)
    return Documents(np.arange(1, lengths.sum() + 1, dtype=np.int32), lengths)


@pytest.mark.parametrize(
    "lengths",
    [
        np.full(5000, 7), np.random.default_rng(0).integers(0, 30, 4000), [20_000],
        [9] * 99,
    ],
    ids=["even", "uneven", "one", "few"],
)  # fmt: skip
def test_split_holds_out_about_as_much_and_loses_nothing(lengths):
    documents = documents_of(lengths)
    train, held_out = split(documents, 800)
    assert len(held_out.ids) == pytest.approx(800, rel=0.25)
    for part in (train, held_out):
        assert part.lengths.sum() == len(part.ids)
    ids = np.sort(np.concatenate([train.ids, held_out.ids]))
    np.testing.assert_array_equal(ids, documents.ids)


def test_held_out_pieces_are_from_all_over_the_text():
    _, held_out = split(documents_of(np.full(5000, 7)), 800)
    tenths = np.bincount(held_out.ids * 10 // 35_001, minlength=10)
    assert (tenths > 40).all()


def test_every_token_of_documents_and_of_running_text_is_predicted():
    documents = Documents(np.array([1, 2, 3], np.int32), np.array([2, 0, 1]))
    apart = AutoText(documents, None, 4, 0, False).texts(documents, 2)
    assert apart.windows()[1].tolist() == [1, 2, 0, 0, 3, 0]
    assert apart.windows()[0].tolist() == [
        [0, 0],
        [0, 1],
        [1, 2],
        [0, 0],
        [0, 0],
        [0, 3],
    ]
    running = AutoText(documents, None, 4, 0, True).texts(documents, 2)
    assert running.windows()[1].tolist() == [1, 2, 0, 0, 3, 0]
    assert running.windows()[0].tolist()[3:] == [[2, 0], [0, 0], [0, 3]]


def test_networks_grow_with_the_time_and_batches_with_the_text():
    sizes = [nearest_row(1e6, minutes).embedding_dim for minutes in (0.1, 1, 3, 60)]
    assert sizes == sorted(sizes)
    assert most_epochs(1e5) < most_epochs(1e6) < most_epochs(1e7)
    rates = [dropout_for(1e6, epochs)[0] for epochs in (0.1, 2, 3, 9, 99)]
    assert rates == sorted(rates)
    assert 0 <= rates[0] < rates[-1] < 1
    assert [batch_size_for(n, 1024) for n in (1e3, 1e5, 1e7)] == [64, 128, 1024]


def test_gain_of_twice_is_that_of_the_rows_and_else_unknown():
    row = next(row for row in ROWS if (row.words, row.minutes) == (0.93, 1.06))
    seen = 1e6 * row.words * row.epochs
    # 92.7 after 1.06 minutes and 82.9 after 3.2.
    gain = 1 - (82.9 / 92.7) ** (np.log(2) / np.log(3.2 / 1.06))
    # The speed is that of a row with the same network, within 1%.
    by_rows = gain_of_twice(0.93e6, 10_000, seen, row.network)
    assert by_rows == pytest.approx(gain, abs=5e-4)
    gains = [gain_of_twice(n, 10_000, seen, row.network) for n in (0.93e6, 2e6, 14e6)]
    assert gains == sorted(gains)
    for words, n_types, tokens, network in (
        (0.3e6, 5_000, seen, row.network), (0.93e6, 20_000, seen, row.network),
        (40e6, 10_000, seen, row.network), (0.93e6, 10_000, 50 * seen, row.network),
        (0.93e6, 10_000, seen / 20, row.network),
        (0.93e6, 10_000, seen, row.network | {"n_hidden": 7}),
    ):  # fmt: skip
        assert gain_of_twice(words, n_types, tokens, network) is None


@pytest.mark.parametrize(
    ("text", "words", "n_types"),
    [("ptb", 0.93e6, 10_001), ("wiki-2M", 2e6, 16_000), ("wiki-14M", 14e6, 16_000)],
)
def test_gain_of_twice_is_within_a_third_of_the_measured_one(text, words, n_types):
    measured = {
        row["minutes"]: row["valid"] for row in json.loads(MEASURED.read_text())
        if (row["text"], row["model"]) == (text, "door")
    }  # fmt: skip
    for (minutes, before), (later, after) in pairwise(sorted(measured.items())):
        row = nearest_row(words, minutes)
        told = gain_of_twice(words, n_types, 60 * minutes * row.speed, row.network)
        gain = 1 - (after / before) ** (np.log(2) / np.log(later / minutes))
        # The weight of the network in the mixtures is about 0.7.
        assert 0.7 * told == pytest.approx(gain, rel=1 / 3)


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_runs_have_the_windows_again(is_shuffled):
    ids = np.random.default_rng(0).integers(1, 9, 300).astype(np.int32)
    X, y = windows(ids, 3)
    order = np.arange(len(y))
    if is_shuffled:
        order = np.random.default_rng(0).permutation(order)
    X, y = X[order], y[order]
    runs = runs_of(X, y)
    assert len(runs.lengths) == (1 if not is_shuffled else len(y))
    for n_context in (1, 3, 7):
        text = AutoText(runs, None, 9, None, n_columns=3)
        assert text.n_tokens == len(y)
        contexts, targets = text.texts(runs, n_context).windows()
        np.testing.assert_array_equal(contexts[:, -3:], X)
        np.testing.assert_array_equal(targets, y)


@pytest.mark.parametrize(
    ("n_tokens", "memory", "on_disk"),
    [(10**6, 2 * 10**9, False), (16 * 10**6, 2 * 10**9, True),
     (16 * 10**6, 16 * 10**9, False), (10**9, None, False)],
)  # fmt: skip
def test_n_grams_that_do_not_fit_are_on_disk(n_tokens, memory, on_disk):
    ids = np.broadcast_to(np.int32(1), n_tokens - 1)  # of no memory
    documents = Documents(ids, np.array([n_tokens - 1]))
    text = AutoText(documents, None, 100_000, 0, False)
    recipe = AutoRecipe(
        10.0, members=("ngrams", "classes", "network"),
        network={"embedding_dim": 256}
    )  # fmt: skip
    assert ngrams_are_on_disk(text, recipe, 100_000, memory) is on_disk
    if on_disk:
        assert fit_bytes(text, recipe, 100_000, on_disk=True) <= memory
        assert buffer_bytes(text, memory) <= memory // 4
