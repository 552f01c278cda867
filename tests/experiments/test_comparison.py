"""The paper's comparison: its rows are the models' own figures."""

from dataclasses import replace

import numpy as np
import pytest

from nplm.experiments import compare
from tests.helpers import corpus_of, paper_lm

MODELS = ["InterpolatedTrigram", "KneserNeyLM", "NeuralLM", "MixtureLM"]


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")  # a tiny corpus
def test_rows_are_the_models_own_figures():
    corpus = corpus_of(np.tile([2, 3, 2, 4, 0], 40), 0)
    network = paper_lm(3, n_hidden=4, embedding_dim=2, max_iter=2, random_state=0)
    stages = []
    results = list(
        compare(
            corpus,
            network,
            ngram_order=4,
            progress=lambda stage, done, total, note: stages.append(stage),
        )
    )
    assert [row.model for row, _ in results] == MODELS
    assert [row.n for row, _ in results] == [3, 4, 3, 3]
    parts = corpus.windows(3)
    for row, model in results:
        for part, data in parts._asdict().items():
            assert getattr(row, part) == pytest.approx(model.perplexity(*data))
            assert f"{row.model}: scoring {part}" in stages
    assert results[2][1] is network
    assert results[3][0].seconds == results[0][0].seconds + results[2][0].seconds


def test_a_network_without_an_order_is_refused():
    with pytest.raises(ValueError, match="Set the order"):
        next(compare(corpus_of([2] * 20, 0), paper_lm()))


def test_an_empty_part_is_refused():
    corpus = replace(corpus_of([2] * 20, 0), test=np.empty(0, np.int32))
    with pytest.raises(ValueError, match="The test part of letters is empty"):
        next(compare(corpus, paper_lm(3)))
