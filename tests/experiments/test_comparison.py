"""The comparison: its rows are the models' own figures."""

from dataclasses import replace

import numpy as np
import pytest

from nplm import AutoLM, InterpolatedTrigram, KneserNeyLM
from nplm.experiments import Row, compare, comparison, conclusion
from nplm.models.auto import fitting
from tests.helpers import corpus_of

IDS = np.insert(np.random.default_rng(0).integers(2, 5, 3000), range(0, 3000, 4), 0)[1:]
IDS = np.append(IDS, [0, 2, 3, 0, 3, 2, 0])


def auto(*members, minutes=0.06):
    settings = {"members": members, "epochs": 1}
    return AutoLM(minutes, settings=settings, random_state=0)


@pytest.mark.parametrize("boundary", [0, None])
def test_rows_are_the_models_own_figures(monkeypatch, boundary):
    monkeypatch.setattr(comparison, "TRAIN_SCORED", 700)
    monkeypatch.setattr(fitting, "LEAST_WEIGHT", 0.0)
    corpus = corpus_of(IDS, boundary)
    lm = auto("ngrams", "network")
    results = list(compare(corpus, lm, ngram_order=4))
    names = ["trigram", "Kneser-Ney", "network", "AutoLM"]
    assert [row.model for row, _ in results] == names
    assert [row.n for row, _ in results] == [3, 4, None, None]
    assert results[-1][1] is lm and lm.running_text is (boundary is None)
    network = results[2][1].estimator_
    assert [row.h for row, _ in results] == [None, None, *[network.n_hidden] * 2]
    for row, model in results:
        documents = [corpus.words[corpus.test].tolist()]
        if boundary is not None:
            documents = corpus.documents("test")
        assert row.test == pytest.approx(model.perplexity(documents), rel=1e-4)
        assert row.parameters == model.estimator_.n_parameters_
        assert model.vocabulary_.words_[: corpus.n_words].tolist() == list(corpus.words)
    if boundary is not None:  # the same as of windows, which have each token once
        (X, y), (X_val, y_val), test = corpus.windows(3)
        trigram = InterpolatedTrigram().fit(X, y, X_val=X_val, y_val=y_val)
        assert results[0][0].test == pytest.approx(trigram.perplexity(*test))


def test_the_training_part_is_scored_evenly():
    short = [["a"] * 10 for _ in range(10_000)]
    assert comparison._sample(short) == short[::2]
    [part, *_] = parts = comparison._sample([[str(i) for i in range(200_000)]])
    assert len(part) == 1000 and len(parts) == 50
    assert [part[0] for part in parts[:3]] == ["0", "4000", "8000"]


@pytest.mark.filterwarnings("ignore:NeuralLM. interrupted")
def test_an_interrupted_network_has_its_row(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting.AutoFit, "_progress", interrupt)
    rows = []
    with pytest.raises(KeyboardInterrupt):
        rows.extend(row for row, _ in compare(corpus_of(IDS, 0), auto("network")))
    assert [row.model for row in rows] == ["trigram", "Kneser-Ney", "AutoLM"]
    assert [row.interrupted for row in rows] == [False, False, True]


def row(model, valid, test):
    return Row(model, 5, 1, 1, None, 1.0, valid, test)


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
    assert conclusion([*rows, row("AutoLM", 90, 77)]) == (
        f"{start} That of AutoLM, which mixes models, is 12.5% below that of the "
        "network, the best model alone."
    )
    rows = [row("classes", 100, 100), row("network", 110, 112)]
    assert conclusion([*rows, row("AutoLM", 99, 101)]) == (
        "On the test part the network alone is behind classes: its perplexity is 12.0% "
        "above that of classes, the best of the n-gram models. That of AutoLM, which "
        "mixes models, is 1.0% above that of classes, the best model alone."
    )
    rows = [row("trigram", 9, 9), row("Kneser-Ney", 5, 5), row("network", 6, 6)]
    assert "is ahead of the trigram and behind Kneser-Ney: its" in conclusion(rows)


def test_classes_have_a_row(monkeypatch):
    monkeypatch.setattr(fitting, "LEAST_WEIGHT", 0.0)
    results = compare(corpus_of(IDS, None), auto("ngrams", "classes"))
    models = {row.model: model.estimator_ for row, model in results}
    assert list(models) == ["trigram", "Kneser-Ney", "classes", "AutoLM"]
    assert isinstance(models["Kneser-Ney"], KneserNeyLM)
    assert models["classes"] is dict(models["AutoLM"].estimators)["classes"].estimator


def test_another_model_is_refused():
    with pytest.raises(TypeError, match="lm must be an AutoLM to be trained, got Kne"):
        next(compare(corpus_of(IDS, 0), KneserNeyLM()))


def test_an_empty_part_is_refused():
    corpus = replace(corpus_of([2] * 20, 0), test=np.empty(0, np.int32))
    with pytest.raises(ValueError, match="The test part of letters is empty"):
        next(compare(corpus, auto("ngrams")))
