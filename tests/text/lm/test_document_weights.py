"""TextLM: weights of documents, in fits and scores."""

import numpy as np
import pytest

from nplm import (
    KneserNeyLM,
    LMClassifier,
    LMDetector,
    NeuralLM,
    TextLM,
    UniformLM,
    Vocabulary,
)
from tests.helpers import energy_lm, paper_lm
from tests.helpers.texts import SENTENCES as TEXTS


@pytest.mark.parametrize(
    "estimator",
    [KneserNeyLM(3, discount_fallback=0.5), paper_lm(3, max_iter=1, random_state=0)],
    ids=["n-grams", "network"],
)
def test_weights_of_documents_repeat_them(estimator):
    weights = np.arange(len(TEXTS)) % 3
    vocabulary = Vocabulary(min_count=2)
    lm = TextLM(estimator, 2, vocabulary=vocabulary).fit(TEXTS, sample_weight=weights)
    often = [text for text, n in zip(TEXTS, weights) for _ in range(n)]
    other = TextLM(estimator, 2, vocabulary=vocabulary).fit(often)
    assert lm.vocabulary_.words_.tolist() == other.vocabulary_.words_.tolist()
    np.testing.assert_array_equal(lm.score_samples(TEXTS), other.score_samples(TEXTS))
    weighted = lm.score(TEXTS, sample_weight=weights)
    assert weighted == pytest.approx(lm.score(often), rel=1e-12)
    for wrong in (-1, np.nan, np.inf, *[0.5] * isinstance(estimator, KneserNeyLM)):
        with pytest.raises(ValueError, match=rf"sample_weight\[1\]={wrong}.*0 or more"):
            lm.fit(TEXTS, sample_weight=[1, wrong, *weights[2:]])
    with pytest.raises(ValueError, match="sample_weight is 0 for every document"):
        lm.fit(TEXTS, sample_weight=np.zeros(len(TEXTS)))
    with pytest.raises(ValueError, match=rf"shape \(2,\), but X has {len(TEXTS)} doc"):
        lm.fit(TEXTS, sample_weight=[1, 2])
    with pytest.raises(TypeError):
        lm.fit((text for text in TEXTS), sample_weight=weights)


@pytest.mark.parametrize(
    "estimator",
    [
        paper_lm(max_iter=2, random_state=0),
        NeuralLM(
            3, n_memory=5, n_hidden=4, embedding_dim=3, random_state=0, max_iter=2
        ),
        energy_lm(max_iter=2, random_state=0),
    ],
    ids=["windows", "memory", "energy"],
)
def test_networks_take_fractions(estimator):
    weights = np.linspace(2.4, 0, len(TEXTS))
    lm = TextLM(estimator, 2).fit(TEXTS, sample_weight=weights)
    lengths = [len(text.split()) + 1 for text in TEXTS]
    assert lm.estimator_.n_seen_ == 2 * round(weights @ lengths)
    words = lm.vocabulary_.words_
    assert "sat" in words and "zebra" not in words  # of the text of weight 0


def test_scores_are_weighted():
    lm = TextLM(KneserNeyLM(2, discount_fallback=0.5)).fit(TEXTS)
    weights = np.linspace(0, 2.4, len(TEXTS))
    lengths = np.array([len(text.split()) + 1 for text in TEXTS])
    expected = weights @ lm.score_samples(TEXTS) / (weights @ lengths)
    assert lm.score(TEXTS, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"sample_weight\[0\]=-1.0: a document counts"):
        lm.score(TEXTS, sample_weight=-np.ones(len(TEXTS)))


@pytest.mark.parametrize("model", [KneserNeyLM(2), paper_lm(max_iter=1)])
@pytest.mark.parametrize("weight", [1e9, 1e300])
def test_too_many_repetitions_are_refused(model, weight):
    weights = [1, weight, *[1] * (len(TEXTS) - 2)]
    message = r"sample_weight\[1\]=1e\+.*divide the weights"
    with pytest.raises(ValueError, match=message):
        TextLM(model).fit(TEXTS, sample_weight=weights)


def test_weights_of_documents_are_refused():
    for model in (LMClassifier(UniformLM()), LMDetector(UniformLM())):
        with pytest.raises(
            TypeError, match=r"no weights of documents.* repeat it in X"
        ):
            model.fit(TEXTS, TEXTS, sample_weight=np.ones(len(TEXTS)))
    network = TextLM(paper_lm(max_iter=1))
    with pytest.raises(TypeError, match="no weights of documents"):
        network.partial_fit(TEXTS, sample_weight=np.ones(len(TEXTS)))
