"""Quantized binary files: scored directly, and refused when they are damaged."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import KneserNeyLM, QuantizedLM, TextLM, windows
from nplm.formats import load_binary, save_binary
from tests.helpers import small_text, text
from tests.helpers.binary import read_parts, write_parts

pytestmark = small_text
N_WORDS = 50
WORDS = ["</s>", *(f"wörd{i}" for i in range(1, N_WORDS))]


@pytest.fixture(scope="module")
def model():
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        ids = text(3000, n_words=N_WORDS)
        return KneserNeyLM(3, n_words=N_WORDS, boundary=0).fit_stream(ids)


@pytest.fixture
def saved(model, tmp_path):
    """Return a model and the path of its quantized file."""
    path = tmp_path / "model.nplm"
    save_binary(model, path, WORDS, bits=8)
    return model, path


@pytest.mark.parametrize("verify", [False, True])
def test_quantized_file_restores_the_model(saved, verify):
    model, path = saved
    loaded, words = load_binary(path, verify=verify)
    assert isinstance(loaded, QuantizedLM) and words == WORDS and loaded.boundary == 0
    assert isinstance(loaded.trie_.levels[0].records, np.memmap)
    assert_array_equal(loaded.n_ngrams_, model.n_ngrams_)
    X, y = windows(text(500, seed=1, n_words=N_WORDS), 2, boundary=0)
    assert loaded.perplexity(X, y) == pytest.approx(model.perplexity(X, y), rel=5e-3)
    documents = TextLM.from_model(loaded, words)
    assert documents.score_samples(["wörd1 wörd2"]) < 0


def test_file_of_each_number_of_bits(saved, tmp_path):
    model, _ = saved
    X, y = windows(text(500, seed=1, n_words=N_WORDS), 2, boundary=0)
    expected = model.log_prob(X, y)
    errors = []
    for bits in (3, 6, 9, 12):
        save_binary(model, tmp_path / "bits.nplm", WORDS, bits=bits)
        loaded, _ = load_binary(tmp_path / "bits.nplm", verify=True)
        errors.append(np.abs(loaded.log_prob(X, y) - expected).mean())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_invalid_parameters_are_refused(saved, tmp_path):
    model, path = saved
    for options, message in [
        ({"bits": 2}, "bits must be None or 3 to 12, got 2"),
        ({"bits": 8.0}, "bits must be None or 3 to 12, got 8.0"),
    ]:
        with pytest.raises(ValueError, match=message):
            save_binary(model, path, WORDS, **options)
    unigrams = KneserNeyLM(1, n_words=N_WORDS).fit_stream(text(900, n_words=N_WORDS))
    with pytest.raises(
        ValueError, match="quantizes orders 2 to 16, but the model's order is 1"
    ):
        save_binary(unigrams, path, WORDS, bits=8)
    quantized, words = load_binary(path)
    with pytest.raises(TypeError, match="QuantizedLM has no n-grams"):
        save_binary(quantized, tmp_path / "again.nplm", words)


@pytest.mark.parametrize("end", [-(2**63), 2**63 - 1])
def test_trusted_file_with_a_range_too_long_is_scored(saved, end):
    # The difference of the two offsets does not fit into 64 bits, or its sum with one.
    _, path = saved
    header, arrays = read_parts(path)
    arrays["start"][3:-1:2], arrays["start"][4:-1:2] = 5, end
    write_parts(path, header, arrays)
    scorer = TextLM.from_model(*load_binary(path)).scorer()
    for word in WORDS[1:]:
        assert scorer.step(scorer.begin(), word)[0] < 0
        assert scorer.score([word, *WORDS[1:4], word]) < 0
