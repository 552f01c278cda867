"""Held-out parts of texts, and texts for networks."""

import numpy as np
import pytest

from nplm.models.auto.choosing import ngram_order
from nplm.models.auto.rules import (
    ROWS,
    batch_size_for,
    dropout_for,
    gain_of_twice,
    most_epochs,
    nearest_row,
)
from nplm.models.auto.texts import AutoText, split
from nplm.models.neural.presets import PRESETS
from nplm.text.documents import Documents


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


def test_rules_grow_with_the_time_and_shrink_with_the_text():
    sizes = [nearest_row(1e6, minutes).embedding_dim for minutes in (0.1, 1, 3, 60)]
    assert sizes == sorted(sizes)
    assert nearest_row(14e6, 0.6).n_hidden < nearest_row(0.9e6, 0.6).n_hidden
    assert most_epochs(1e5) < most_epochs(1e6) < most_epochs(1e7)
    rates = [dropout_for(1e6, epochs)[0] for epochs in (0.1, 2, 3, 9, 99)]
    assert rates == sorted(rates)
    assert 0 <= rates[0] < rates[-1] < 1
    assert [batch_size_for(n, 1024) for n in (1e3, 1e5, 1e7)] == [64, 128, 1024]
    assert 0 < gain_of_twice(1e6, 1) < 0.3
    assert gain_of_twice(1e6, 1e4) == 0


@pytest.mark.parametrize(
    ("n_tokens", "memory", "order"),
    [(10**6, 2 * 10**9, 5), (16 * 10**6, 2 * 10**9, 4), (16 * 10**6, 10**8, 2),
     (10**9, None, 5)],
)  # fmt: skip
def test_orders_of_n_grams_fit_in_the_memory(n_tokens, memory, order):
    ids = np.broadcast_to(np.int32(1), n_tokens - 1)  # of no memory
    documents = Documents(ids, np.array([n_tokens - 1]))
    assert ngram_order(AutoText(documents, None, 9, 0, False), memory) == order


def test_the_preset_memory_is_a_row_of_the_rules():
    [row] = [row for row in ROWS if (row.words, row.minutes) == (0.93, 3.2)]
    preset = row.network | {"dropout": PRESETS["memory"]["dropout"]}
    assert PRESETS["memory"].items() <= preset.items()
