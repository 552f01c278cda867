"""Quantized models in files of `nplm.save`."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

import nplm
from nplm import MixtureLM, QuantizedLM, TextLM, Tokenizer
from nplm.formats import load_binary, save_binary
from tests.helpers.saving import N_WORDS, SIZE, TRIGRAM, X, Y, quiet

WORDS = ["</s>", *(f"wörd{i}" for i in range(1, N_WORDS))]


@pytest.fixture
def quantized(tmp_path, fitted):
    save_binary(fitted["Kneser-Ney, cut"], tmp_path / "mapped", WORDS, bits=5)
    return load_binary(tmp_path / "mapped")[0]


def test_inside_of_other_models(tmp_path, quantized):
    path = tmp_path / "model"
    lm = TextLM.from_model(quantized, WORDS)
    nplm.save(lm, path)
    lines = ["wörd1 wörd2", "wörd3"]
    again = nplm.load(path)
    assert again.estimator_ is again.estimator.estimator
    np.testing.assert_array_equal(again.score_samples(lines), lm.score_samples(lines))
    members = [("small", FrozenEstimator(quantized)), ("tri", TRIGRAM)]
    mixed = quiet(lambda: MixtureLM(members, [0.5, 0.5], **SIZE).fit(X, Y))
    nplm.save(mixed, path)
    np.testing.assert_array_equal(nplm.load(path).log_prob(X, Y), mixed.log_prob(X, Y))
    nplm.save(Pipeline([("tokens", Tokenizer(r"\S+").fit(lines)), ("lm", lm)]), path)
    assert isinstance(nplm.load(path)["lm"].estimator_, QuantizedLM)
