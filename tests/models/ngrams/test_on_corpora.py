"""n-gram models on real corpora, against the figures of other toolkits."""

from dataclasses import replace

import pytest
from numpy.testing import assert_allclose

from nplm import InterpolatedTrigram, KneserNeyLM
from tests.helpers import published_corpus


@pytest.fixture(scope="module")
def brown():
    return published_corpus("brown")


@pytest.fixture(scope="module")
def ptb():
    return published_corpus("ptb")


# Validation and test perplexity of SRILM 1.7.3; KenLM agrees within 0.05.
KNESER_NEY = [
    ("brown", 3, True, None, 332.35, 310.03),
    ("brown", 5, True, None, 329.46, 307.29),
    ("brown", 5, True, (1, 1, 2), 329.63, 307.64),
    ("brown", 3, False, (1, 1, 2), 346.02, 325.00),
    ("brown", 5, False, (1, 1, 2), 347.62, 326.02),
    ("brown", 5, False, None, 380.49, 359.05),
    ("ptb", 3, True, None, 157.8, 148.3),
    ("ptb", 5, True, None, 148.0, 141.19),
    ("ptb", 5, True, (1, 1, 2), 155.1, 147.9),
    ("ptb", 3, False, (1, 1, 2), 169.6, 161.1),
    ("ptb", 5, False, (1, 1, 2), 164.8, 158.6),
    ("ptb", 5, False, None, 177.0, 171.5),
]


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "order", "interpolate", "min_counts", "valid", "test"), KNESER_NEY
)
def test_kneser_ney_perplexities_agree_with_srilm(
    request, name, order, interpolate, min_counts, valid, test
):
    data = request.getfixturevalue(name)
    fit_on, *scored = data.windows(order - 1)
    model = KneserNeyLM(
        n_words=data.n_words,
        interpolate=interpolate,
        min_counts=min_counts,
        boundary=data.boundary,
    ).fit(*fit_on)
    found = [model.perplexity(*part) for part in scored]
    assert found == pytest.approx([valid, test], rel=1e-3)
    proba = model.predict_proba(scored[0][0][:200])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "figures"),
    [("brown", [31.93, 355.80, 329.81]), ("ptb", [20.07, 177.28, 168.07])],
)
def test_trigram_perplexities(request, name, figures):
    """PTB is read as one stream, too. The figures come from 20 steps of plain EM."""
    data = request.getfixturevalue(name)
    train, valid, test = replace(data, boundary=None).windows(2)
    model = InterpolatedTrigram(n_words=data.n_words)
    model.fit(*train, X_val=valid[0], y_val=valid[1])
    of_train, *held_out = (model.perplexity(*part) for part in (train, valid, test))
    assert held_out == pytest.approx(figures[1:], rel=1e-3)
    assert held_out[0] <= figures[1] * (1 + 1e-4)
    assert of_train == pytest.approx(figures[0], rel=5e-3)  # which EM does not see
    assert model.bins_.tolist() == list(range(5, 15))
    proba = model.predict_proba(valid[0][:200])
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
