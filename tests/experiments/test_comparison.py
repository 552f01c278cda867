"""The paper's comparison: its rows are the models' own figures."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from nplm import MixtureLM, Vocabulary
from nplm.datasets import Corpus
from nplm.experiments import (
    Row,
    compare,
    comparison,
    conclusion,
    expected_seconds,
    spelling_of,
)
from tests.helpers import corpus_of, paper_lm

SINGLE = ["trigram", "Kneser-Ney", "classes", "network"]
MIXED = ["network + trigram", "network + Kneser-Ney", "all four"]
TINY = {"n_hidden": 4, "embedding_dim": 2, "max_iter": 2, "random_state": 0}


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")  # a tiny corpus
def test_rows_are_the_models_own_figures(monkeypatch):
    monkeypatch.setattr(comparison, "TRAIN_SCORED", 70)
    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    network = paper_lm(3, **TINY)
    stages = []
    results = list(
        compare(
            corpus,
            network,
            ngram_order=4,
            progress=lambda stage, done, total, note: stages.append(stage),
        )
    )
    assert [row.model for row, _ in results] == SINGLE + MIXED
    assert [row.n for row, _ in results] == [3, 4, 4, 3, 3, 3, 3]
    parts = corpus.windows(3)
    X, y = parts.train
    assert len(y) > 140
    step = -(-len(y) // 70)
    parts = parts._replace(train=(X[::step], y[::step]))
    for row, model in results:
        for part, data in parts._asdict().items():
            assert getattr(row, part) == pytest.approx(model.perplexity(*data))
            assert (f"{row.model}: scoring {part}" in stages) == (row.model in SINGLE)
    by_name = {row.model: row for row, _ in results}
    assert results[3][1] is network
    assert by_name["network + trigram"].seconds == (
        by_name["trigram"].seconds + by_name["network"].seconds
    )
    weights = {row.model: getattr(model, "weights_", None) for row, model in results}
    assert weights["network + trigram"].tolist() == [0.5, 0.5]
    best = MixtureLM(
        [(name, FrozenEstimator(model)) for name, (_, model) in zip("abcd", results)],
        "learned",
    ).fit(*parts.train, X_val=parts.valid[0], y_val=parts.valid[1])
    assert by_name["all four"].valid == pytest.approx(
        best.perplexity(*parts.valid), rel=1e-3
    )


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")
@pytest.mark.filterwarnings("ignore:NeuralLM. interrupted")
def test_an_interrupted_network_has_its_row():
    def interrupt(stage, done, total, note):
        if stage == "network: training" and 0 < done < total:
            raise KeyboardInterrupt

    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    results = compare(corpus, paper_lm(3, **TINY), progress=interrupt)
    rows = []
    with pytest.raises(KeyboardInterrupt):
        rows.extend(row for row, _ in results)
    assert [row.model for row in rows] == SINGLE
    assert [row.interrupted for row in rows] == [False, False, False, True]


def row(model, valid, test):
    return Row(model, 5, 1, 1, False, 1.0, valid, test, 1, 1.0)


def test_the_conclusion_is_made_from_the_figures():
    rows = [
        row("trigram", 120, 119),
        row("Kneser-Ney", 100, 110),
        row("classes", 105, 99),
    ]
    assert conclusion(rows) == ""
    rows.append(row("network", 99, 88))
    start = (
        "On the test part the network alone is ahead of the trigram, Kneser-Ney and "
        "classes: its perplexity is 20.0% below that of Kneser-Ney, the best of the "
        "n-gram models."
    )
    assert conclusion(rows) == start
    rows += [row("network + trigram", 98, 60), row("all four", 90, 77)]
    assert conclusion(rows) == (
        f"{start} That of all four mixed is 12.5% below that of the network, the best "
        "model alone: where one is wrong another is right."
    )
    rows = [row("classes", 100, 100), row("network", 110, 112)]
    assert conclusion([*rows, row("all four", 99, 101)]) == (
        "On the test part the network alone is behind classes: its perplexity is 12.0% "
        "above that of classes, the best of the n-gram models. That of all four mixed "
        "is 1.0% above that of classes, the best model alone: here nothing is gained "
        "by mixing."
    )
    rows = [row("trigram", 9, 9), row("Kneser-Ney", 5, 5), row("network", 6, 6)]
    assert "is ahead of the trigram and behind Kneser-Ney: its" in conclusion(rows)


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")
def test_distant_words_are_those_of_the_network_only():
    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    network = paper_lm(3, n_distant=9, **TINY)
    results = list(compare(corpus, network, ngram_order=4))
    assert [row.distant for row, _ in results] == [0, 0, 0, 9, 9, 9, 9]
    assert [model.n_features_in_ for _, model in results] == [3, 3, 3, 9, 9, 9, 9]
    wide, near = corpus.windows(9), corpus.windows(3)
    for row, model in results:
        parts = near if model.n_features_in_ == 3 else wide
        assert row.test == pytest.approx(model.perplexity(*parts.test))


@pytest.mark.parametrize("parameters", [{}, {"n_distant": 9, "batch_size": 1}])
def test_the_expected_time_is_that_of_all_epochs(monkeypatch, parameters):
    monkeypatch.setattr(comparison, "MEASURED_SECONDS", 0.01)
    monkeypatch.setattr(comparison, "OTHER_SECONDS_A_TOKEN", 0)
    monkeypatch.setattr(comparison, "_seconds_each", lambda work, n, n_rows: 1e-3)
    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    network = paper_lm(3, **TINY, **parameters)
    n_train, n_valid, n_test = (len(corpus[p]) for p in ("train", "valid", "test"))
    n_scored = n_train + n_valid + n_test + 2 * n_valid  # the table; each epoch
    assert expected_seconds(corpus, network) == pytest.approx(
        1e-3 * (2 * n_train + n_scored)
    )
    assert not hasattr(network, "C_")


def test_a_measured_time_is_that_of_one_row(monkeypatch):
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(comparison.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(comparison, "MEASURED_SECONDS", 7)
    rows = []
    assert comparison._seconds_each(rows.append, 10, 6) == 8 / 20
    assert rows == [slice(0, 6), *[slice(0, 6), slice(6, 10)] * 2]


def test_an_expected_time_is_measured():
    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    network = paper_lm(3, **TINY, learning_rate_init=1e9)  # which would diverge
    assert 0 < expected_seconds(corpus, network) < 60


def test_spelling_is_that_of_the_words():
    words = ["nearest", "nearer", "near", "rearrange", "unclear", "linear"]
    vocabulary = Vocabulary.from_words(words, unknown=None, boundary=None)
    ids = np.zeros(4, np.int32)
    features = spelling_of(Corpus("words", ids, ids, ids, vocabulary, None))
    assert features.shape[0] == len(words)
    assert features[[2], :].nnz > 0
    assert spelling_of(corpus_of([2] * 20, 0)) is None  # letters share nothing


def test_a_network_without_an_order_is_refused():
    with pytest.raises(ValueError, match="Set the order"):
        next(compare(corpus_of([2] * 20, 0), paper_lm()))


def test_an_empty_part_is_refused():
    corpus = replace(corpus_of([2] * 20, 0), test=np.empty(0, np.int32))
    with pytest.raises(ValueError, match="The test part of letters is empty"):
        next(compare(corpus, paper_lm(3)))
