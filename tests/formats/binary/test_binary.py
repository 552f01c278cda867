"""The binary file: mapped, compact, and refused when it is damaged."""

import json
import os
import pickle
import warnings
import zlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import KneserNeyLM, TextLM, windows
from nplm.formats import load_binary, save_binary
from nplm.formats.binary import binary_files
from nplm.formats.binary.arrays import MAGIC
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable
from tests.helpers_binary import read_parts, write_parts, write_raw

N_WORDS = 300
WORDS = [f"wörd{i}" for i in range(N_WORDS)]


@pytest.fixture(params=[1, 2, 5])
def fitted(request):
    order = request.param
    ids = np.random.default_rng(0).zipf(1.4, size=20_000) % N_WORDS
    X, y = windows(ids, max(order - 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return KneserNeyLM(order, n_words=N_WORDS).fit(X, y), X, y


def test_round_trip(tmp_path, fitted):
    model, X, y = fitted
    save_binary(model, tmp_path / "model.nplm", WORDS)
    for verify in (False, True):
        again, words = load_binary(tmp_path / "model.nplm", verify=verify)
        assert words == WORDS
        assert_array_equal(again.log_prob(X, y), model.log_prob(X, y))
        assert_array_equal(again.log_prob(X[:1], y[:1]), model.log_prob(X[:1], y[:1]))
        assert_array_equal(again.predict_proba(X[:9]), model.predict_proba(X[:9]))
        assert isinstance(again.trie_.words, np.memmap)
        assert_array_equal(again.n_ngrams_, model.n_ngrams_)
    assert os.listdir(tmp_path) == ["model.nplm"]


def test_compact(tmp_path, fitted):
    model, X, y = fitted
    save_binary(model, tmp_path / "full.nplm", WORDS)
    save_binary(model, tmp_path / "compact.nplm", WORDS, compact=True)
    sizes = [(tmp_path / f"{n}.nplm").stat().st_size for n in ("full", "compact")]
    if model.order_ > 1:
        assert sizes[1] < 0.62 * sizes[0]
    again, words = load_binary(tmp_path / "compact.nplm", verify=True)
    assert words == WORDS
    # A probability and order - 1 weights at most, a half step each.
    error = 0.0001 * model.order_
    found, expected = again.log_prob(X, y), model.log_prob(X, y)
    assert_allclose(found / np.log(10), expected / np.log(10), atol=error)
    assert_allclose(again.predict_proba(X[:9]).sum(axis=1), 1, atol=3e-4)


def test_boundary_and_zero_probabilities(tmp_path):
    X, y = windows([1, 2, 0, 2, 1, 0] * 9, 2, boundary=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(boundary=0).fit(X, y)
    model.trie_.prob[2] = 0
    for compact in (False, True):
        save_binary(model, tmp_path / "model.nplm", ["</s>", "a", "b"], compact=compact)
        again, _ = load_binary(tmp_path / "model.nplm")
        assert again.boundary == 0
        assert again.trie_.prob[2] == 0


def with_header(data, **changes):
    n = int.from_bytes(data[16:20], "little")
    header = json.loads(data[24 : 24 + n]) | changes
    encoded = json.dumps(header).encode()
    prefix = MAGIC + len(encoded).to_bytes(4, "little")
    return prefix + zlib.crc32(encoded).to_bytes(4, "little") + encoded


def test_damage(tmp_path):
    X, y = windows(np.random.default_rng(0).zipf(1.4, size=2000) % 50, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(n_words=50).fit(X, y)
    path = tmp_path / "model.nplm"
    save_binary(model, path, WORDS[:50])
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-1000] ^= 1
    header = bytearray(data)
    header[40] ^= 1
    for bad, message, verify in [
        (b"", "is no file of save_binary", False),
        (b"\\data\\\n", "is no file of save_binary", False),
        (data[:30], "checksum of its header", False),
        (bytes(header), "checksum of its header", False),
        (
            with_header(data, version=2),
            "is of version 2, but .* reads version 3; save the model again",
            False,
        ),
        (data[:-200], "is cut short: it has .* bytes, but slots ends at", False),
        (data[:-1], "is cut short: it has .* bytes, but closed ends at", False),
        (data + b"\0", "is damaged: it has .* bytes, but ends at", False),
        (bytes(flipped), "is damaged: the checksum of slots", True),
    ]:
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=message):
            load_binary(path, verify=verify)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_binary(model, tmp_path / "absent" / "model.nplm", WORDS[:50])
    with pytest.raises(ValueError, match="words has 3 entries"):
        save_binary(model, path, WORDS[:3])


@pytest.fixture(params=[False, True], ids=["full", "compact"])
def saved(request, tmp_path):
    """The path of a good file, whether compact, and what is in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(3, n_words=50).fit_stream(
            np.random.default_rng(0).zipf(1.4, size=2000) % 50
        )
    path = tmp_path / "model.nplm"
    save_binary(model, path, WORDS[:50], compact=request.param)
    return path, request.param


def test_parts_are_put_together_again(saved):
    path, _ = saved
    whole = path.read_bytes()
    write_parts(path, *read_parts(path))
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "changes",
    [
        {"version": None},
        {"n_words": 0},
        {"n_words": 50.0},
        {"n_words": 51},
        {"n_words": 10**30},
        {"boundary": 50},
        {"boundary": "a"},
        {"arrays": None},
        {"arrays": []},
        {"arrays": [None] * 8},
        {"arrays": [None] * 10},
        {"codes": None},
        {"codes": {"prob": [0.0, 1.0], "bow": [float("nan"), 0.0]}},
        {"codes": {"prob": [0.0, 1.0], "bow": [-1.0, 1e9]}},
    ],
    ids=str,
)
def test_a_header_with_something_else(saved, changes):
    path, _ = saved
    header, arrays = read_parts(path)
    write_raw(path, json.dumps(header | changes).encode(), arrays)
    with pytest.raises(ValueError, match=r"model\.nplm (is damaged|is of version)"):
        load_binary(path)


@pytest.mark.parametrize("key", ["version", "n_words", "boundary", "arrays"])
def test_a_header_that_lacks_something(saved, key):
    path, _ = saved
    header, arrays = read_parts(path)
    del header[key]
    write_raw(path, json.dumps(header).encode(), arrays)
    with pytest.raises(ValueError, match="is damaged: its header"):
        load_binary(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "O"},
        {"dtype": "<f8"},
        {"dtype": 3},
        {"size": -1},
        {"size": True},
        {"size": 2**70},
        {"name": "other"},
        {"name": None},
        {"crc32": "a"},
    ],
    ids=str,
)
@pytest.mark.parametrize("place", [0, 1, 6])
def test_a_header_with_another_array(saved, place, changes):
    path, _ = saved
    header, arrays = read_parts(path)
    header["arrays"][place] |= changes
    write_raw(path, json.dumps(header).encode(), arrays)
    with pytest.raises(ValueError, match="is damaged: its header has"):
        load_binary(path)


@pytest.mark.parametrize(
    "encoded", [b"", b"[]", b"{}", b"\xff", b"[" * 10**5, b'{"version": 3}'], ids=len
)
def test_a_header_that_is_none(saved, encoded):
    path, _ = saved
    write_raw(path, encoded, {})
    with pytest.raises(ValueError, match=r"model\.nplm is damaged: its header"):
        load_binary(path)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("vocabulary", 0, 0xFF),
        ("vocabulary", 0, ord("\n")),
        ("level_start", 0, 1),
        ("level_start", 2, 50),
        ("level_start", 2, -1),
        ("child_start", 0, 0),
        ("child_start", 3, 10**9),
        ("child_start", 3, -1),
        ("child_start", 50, 60),
        ("start", 0, 1),
        ("start", 1, 49),
        ("start", 3, 10**9),
        ("start", 3, -(10**9)),
        ("start", -1, 10**9),
        ("context_word", 0, 1),
        ("context_word", 1, 2),
        ("context_word", -1, 50),
        ("words", 1, 2),
        ("words", -1, 50),
        ("words", 51, 0),
    ],
)
def test_numbers_out_of_range_with_the_right_checksum(saved, name, at, value):
    path, compact = saved
    header, arrays = read_parts(path)
    kind = arrays[name].dtype
    arrays[name][at] = np.array(value).astype(kind)
    write_parts(path, header, arrays)
    with pytest.raises(ValueError, match=r"model\.nplm is damaged"):
        load_binary(path, verify=not compact)


@pytest.mark.parametrize("saved", [False], indirect=True)
@pytest.mark.parametrize(
    ("name", "at", "value", "verify"),
    [
        ("slot_start", 1, 4, False),
        ("slot_start", -1, 4, False),
        ("slot_start", 2, -4, False),
        ("slot_start", 2, 2**62, False),
        ("slot_start", 2, 6, False),
        ("slots", 0, 1, True),  # the filter or the key of some n-gram
        ("slots", 8, 1, True),  # its probability
        ("slots", 15, 1, True),  # and its weight
        ("closed", 0, 1, True),
    ],
)
def test_a_hash_table_of_other_ngrams(saved, name, at, value, verify):
    path, _ = saved
    header, arrays = read_parts(path)
    arrays[name][at] = value if name == "slot_start" else arrays[name][at] ^ value
    write_parts(path, header, arrays)
    with pytest.raises(ValueError, match=r"model\.nplm is damaged: (slots|its arrays)"):
        load_binary(path, verify=verify)


@pytest.mark.parametrize("saved", [False], indirect=True)
def test_the_hash_table_is_that_of_the_file(saved, monkeypatch):
    path, _ = saved
    model, _ = load_binary(path)
    assert isinstance(model.index_.slots, np.memmap)
    monkeypatch.setattr(HashTable, "of", None)  # none is made
    X, y = windows(np.arange(50), 2)
    expected = np.log(model.trie_.next_word_prob(X, y))
    assert_array_equal(load_binary(path)[0].log_prob(X, y), expected)


@pytest.mark.parametrize("saved", [False], indirect=True)
def test_mapped_model_scores_words_without_reading_all_of_it(saved, monkeypatch):
    path, _ = saved
    model, words = load_binary(path)
    monkeypatch.setattr(binary_files, "check_ranges", None)
    text = TextLM.from_model(model, words, boundary=0)
    assert np.isfinite(text.score_samples([" ".join(words[1:9])])).all()
    assert np.isfinite(text.scorer().score(" ".join(words[1:9])))


@pytest.mark.parametrize("saved", [False], indirect=True)
def test_mapped_model_pickles_as_one_in_memory(saved):
    path, _ = saved
    model, _ = load_binary(path)
    X, y = windows(np.arange(50), 2)
    again = pickle.loads(pickle.dumps(model))
    assert type(again.trie_) is BackoffTrie
    assert again.index_.closed == model.index_.closed
    assert_array_equal(again.index_.slots, model.index_.slots)
    assert_array_equal(again.log_prob(X, y), model.log_prob(X, y))


# Any code of a compact file is a probability.
@pytest.mark.parametrize("saved", [False], indirect=True)
@pytest.mark.parametrize("name", ["prob", "bow"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_numbers_that_are_no_probability(saved, name, value):
    path, _ = saved
    header, arrays = read_parts(path)
    arrays[name][7] = value
    write_parts(path, header, arrays)
    with pytest.raises(ValueError, match=f"is damaged: {name} has numbers"):
        load_binary(path, verify=True)


def test_a_damaged_compact_file_is_refused_without_asking(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = KneserNeyLM(3, n_words=50).fit_stream(
            np.random.default_rng(0).zipf(1.4, size=2000) % 50
        )
    path = tmp_path / "model.nplm"
    save_binary(model, path, WORDS[:50], compact=True)
    whole = path.read_bytes()
    X = np.arange(40).reshape(20, 2)
    expected = load_binary(path)[0].predict_proba(X)
    for at in range(len(whole) // 2, len(whole) - 64, 997):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            again, _ = load_binary(path)
        except ValueError as error:
            assert "is damaged" in str(error)
        else:  # what was damaged only fills up to the next array
            assert_array_equal(again.predict_proba(X), expected)
