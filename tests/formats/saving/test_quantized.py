"""Quantized models in files of `nplm.save`."""

import json

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

import nplm
from nplm import MixtureLM, QuantizedLM, TextLM, Tokenizer
from nplm.base.files.tensors import read_tensors, write_tensors
from nplm.formats import load_binary, save_binary
from tests.helpers.saving import N_WORDS, SIZE, TRIGRAM, X, Y, quiet

WORDS = ["</s>", *(f"wörd{i}" for i in range(1, N_WORDS))]


@pytest.fixture
def quantized(tmp_path, fitted):
    save_binary(fitted["Kneser-Ney, cut"], tmp_path / "mapped", WORDS, bits=5)
    return load_binary(tmp_path / "mapped")[0]


@pytest.mark.parametrize("mmap", [True, False])
def test_the_same_bits_again(tmp_path, quantized, mmap):
    path = tmp_path / "model"
    nplm.save(quantized, path)
    again = nplm.load(path, mmap=mmap)
    assert type(again) is QuantizedLM
    assert vars(again).keys() - {"classes_"} == vars(quantized).keys()
    np.testing.assert_array_equal(again.classes_, quantized.classes_)
    assert again.boundary == quantized.boundary == 0
    assert again.trie_.levels[0].records.flags.writeable is not mmap
    np.testing.assert_array_equal(again.n_ngrams_, quantized.n_ngrams_)
    np.testing.assert_array_equal(again.log_prob(X, Y), quantized.log_prob(X, Y))
    nplm.save(again, tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == path.read_bytes()


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


NAMES = ["prob", "bow", "start"]
NAMES += [f"{name}_{k}" for k in (2, 3, 4) for name in ("records", "prob")]
NAMES += [f"{name}_{k}" for k in (2, 3) for name in ("high", "sample", "bow")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["shorter", "longer", "type", "lost"])
def test_an_array_of_another_size(tmp_path, quantized, name, change):
    path, own = tmp_path / "model", f"QuantizedLM.trie.{name}"
    nplm.save(quantized, path)
    arrays, metadata = read_tensors(path, mmap=False)
    array = arrays.pop(own)
    if change == "shorter":
        arrays[own] = array[:-1]
    elif change == "longer":
        arrays[own] = np.append(array, array[:1])
    elif change == "type":
        arrays[own] = array.astype("f8")
    write_tensors(path, arrays, {k: metadata[k] for k in ("format", "version")})
    with pytest.raises(ValueError, match=r"model cannot be loaded: .*Quanti"):
        nplm.load(path)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("prob", 3, -1),
        ("prob", 3, 2),
        ("bow", 3, np.nan),
        ("start", 3, 10**6),
        ("start", 3, -1),
        ("records_2", 0, 0xFF),
        ("records_3", 0, 0xFF),
        ("high_2", 0, 0),
        ("sample_2", 0, 10**6),
        ("prob_2", 0, 0.5),
        ("prob_3", 2, -1),
        ("bow_2", 2, np.inf),
    ],
)
def test_numbers_that_no_model_has(tmp_path, quantized, name, at, value):
    path = tmp_path / "model"
    nplm.save(quantized, path)
    arrays, metadata = read_tensors(path, mmap=False)
    arrays[f"QuantizedLM.trie.{name}"][at] = value
    write_tensors(path, arrays, {k: metadata[k] for k in ("format", "version")})
    with pytest.raises(ValueError, match=r"in its QuantizedLM, i.* .*grams"):
        nplm.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 2},
        {"bits": "5"},
        {"bits": 6},
        {"n_ngrams": [N_WORDS]},
        {"n_ngrams": [N_WORDS - 1, 9, 9]},
        {"n_ngrams": [[]]},
        {"n_nodes": [-1, 9]},
        {"low": [0, None]},
        {"low": 0},
        {"other": 0},
    ],
    ids=str,
)
def test_sizes_that_are_none(tmp_path, quantized, change):
    path = tmp_path / "model"
    nplm.save(quantized, path)
    arrays, metadata = read_tensors(path, mmap=False)
    objects = json.loads(arrays["objects.json"].tobytes())
    objects[-1]["fitted"]["dict"]["trie"]["dict"] |= change
    arrays["objects.json"] = np.frombuffer(json.dumps(objects).encode(), "u1")
    write_tensors(path, arrays, {k: metadata[k] for k in ("format", "version")})
    with pytest.raises(ValueError, match="model cannot be loaded: in its QuantizedLM"):
        nplm.load(path)
