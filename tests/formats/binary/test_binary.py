"""Binary files: mapped, and refused when they are damaged."""

import os
import pickle
import tempfile
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import nplm
from nplm import KneserNeyLM, windows
from nplm.formats import load_binary, save_binary
from nplm.models.ngrams.trie import hashing
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from tests.helpers import text
from tests.helpers.binary import read_parts, write_parts

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 300
WORDS = [f"wörd{i}" for i in range(N_WORDS)]


@pytest.fixture(params=[1, 2, 5], scope="module")
def fitted(request):
    order = request.param
    ids = np.random.default_rng(0).zipf(1.4, size=20_000) % N_WORDS
    X, y = windows(ids, max(order - 1, 1))
    return KneserNeyLM(order, n_words=N_WORDS).fit(X, y), X, y


def test_mapped_file_restores_the_model(tmp_path, fitted):
    model, X, y = fitted
    save_binary(model, tmp_path / "model.nplm", WORDS)
    for verify in (False, True):
        loaded, words = load_binary(tmp_path / "model.nplm", verify=verify)
        assert words == WORDS
        assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
        assert_array_equal(loaded.log_prob(X[:1], y[:1]), model.log_prob(X[:1], y[:1]))
        assert_array_equal(loaded.predict_proba(X[:9]), model.predict_proba(X[:9]))
        assert_array_equal(loaded.n_ngrams_, model.n_ngrams_)
        for name in ("child_start", "context_word", "start", "words", "prob"):
            own = getattr(loaded.trie_.unpacked(), name)
            assert_array_equal(own, getattr(model.trie_, name))
        # The weight of the root is not used.
        assert_array_equal(loaded.trie_.unpacked().bow[1:], model.trie_.bow[1:])
    assert os.listdir(tmp_path) == ["model.nplm"]


def test_boundary_and_zero_probabilities_are_restored(tmp_path):
    X, y = windows([1, 2, 0, 2, 1, 0] * 9, 2, boundary=0)
    model = KneserNeyLM(boundary=0).fit(X, y)
    model.trie_.prob[2] = 0
    save_binary(model, tmp_path / "model.nplm", ["</s>", "a", "b"])
    loaded, _ = load_binary(tmp_path / "model.nplm")
    assert loaded.boundary == 0
    assert loaded.trie_.unpacked().prob[2] == 0


def test_damage(tmp_path):
    path, model = tmp_path / "model.nplm", model_of(3)
    nplm.save(model, path)
    saved = path.read_bytes()
    save_binary(model, path, WORDS[:50])
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-1000] ^= 1
    header = bytearray(data)
    header[data.index(b"n_words") + 12] ^= 1
    for bad, message, verify in [
        (b"", "model.nplm is empty", False),
        (b"\\data\\\n", "not a file of save_binary: .*read_arpa reads", False),
        (saved, r"not a file of save_binary: nplm\.load reads", False),
        (bytes(header), "is damaged: the checksum of its header", False),
        (data[:-200], "is truncated: it has .* bytes, but its header says", False),
        (bytes(flipped), "is damaged: the checksum of buckets", True),
    ]:
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=message):
            load_binary(path, verify=verify)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_binary(model, tmp_path / "absent" / "model.nplm", WORDS[:50])
    with pytest.raises(ValueError, match="words has 3 words"):
        save_binary(model, path, WORDS[:3])


def test_only_the_header_and_the_sizes_are_checked(tmp_path, fitted):
    path = tmp_path / "model.nplm"
    save_binary(fitted[0], path, WORDS)
    _, arrays = read_parts(path)
    damaged = bytearray(path.read_bytes())
    at = bytes(damaged).index(arrays["prob"].tobytes())
    damaged[at] ^= 1
    path.write_bytes(bytes(damaged))
    load_binary(path)
    with pytest.raises(ValueError, match="the checksum of prob is wrong"):
        load_binary(path, verify=True)
    at = bytes(damaged).index(arrays["vocabulary"].tobytes())
    damaged[at] = 0xFF
    path.write_bytes(bytes(damaged))
    with pytest.raises(ValueError, match="the checksum of vocabulary is wrong"):
        load_binary(path, verify=True)
    # Words are strings when they are asked for.
    with pytest.raises(ValueError, match="is damaged: its words are invalid"):
        load_binary(path)


@cache
def model_of(order):
    ids = np.random.default_rng(0).zipf(1.4, size=2000) % 50
    return KneserNeyLM(order, n_words=50).fit_stream(ids)


HASHED, UNHASHED, QUANTIZED = "hashed", "order 17", "8 bits"


@pytest.fixture(params=[HASHED, UNHASHED, QUANTIZED])
def saved(request, tmp_path):
    """Return the path of a valid file."""
    path = tmp_path / "model.nplm"
    model = model_of(17 if request.param == UNHASHED else 3)
    bits = 8 if request.param == QUANTIZED else None
    save_binary(model, path, WORDS[:50], bits=bits)
    return path


def test_valid_parts_make_a_valid_file(saved):
    whole = saved.read_bytes()
    write_parts(saved, *read_parts(saved))
    assert saved.read_bytes() == whole


DAMAGED = r"model\.nplm is damaged"
OTHER_VERSION = r"version '.*, but .* reads version '7'; save the model"
# Values of the header (... stands for none), or texts beside it.
HEADERS = [
    ({"n_words": 0}, {}, DAMAGED),
    ({"n_words": 50.0}, {}, DAMAGED),
    ({"n_words": 51}, {}, DAMAGED),
    ({"n_words": 10**30}, {}, DAMAGED),
    ({"boundary": 50}, {}, DAMAGED),
    ({"boundary": "a"}, {}, DAMAGED),
    ({"quantized": {}}, {}, DAMAGED),
    ({"other": 1}, {}, DAMAGED),
    ({"n_words": ...}, {}, "is damaged: in its header n_words is m"),
    ({"boundary": ...}, {}, "is damaged: in its header boundary is m"),
    ({"codes": {"prob": [0], "bow": [0]}}, {}, "with compact=True, which this"),
    *(
        ({}, {"model": model}, "is damaged: its header (is no|desc)")
        for model in ("", "[]", "3", "[" * 10**5, "{")
    ),
    *(({}, {"version": version}, OTHER_VERSION) for version in ("5", "", "99" * 999)),
]


@pytest.mark.parametrize(("changes", "texts", "message"), HEADERS)
def test_another_header_is_refused(saved, changes, texts, message):
    header, arrays = read_parts(saved)
    header = {k: v for k, v in (header | changes).items() if v is not ...}
    write_parts(saved, header, arrays, **texts)
    with pytest.raises(ValueError, match=message):
        load_binary(saved)


@pytest.mark.parametrize("saved", [QUANTIZED], indirect=True)
@pytest.mark.parametrize(
    "changes",
    [
        {"bits": 2}, {"bits": "8"}, {"bits": 9}, {"n_ngrams": [50]},
        {"n_ngrams": [49, 9, 9]}, {"n_ngrams": [[]]}, {"n_nodes": [9]},
        {"n_nodes": [-1, 9]}, {"n_nodes": [9, 9]}, {"low": [0, None]}, {"low": [57, 0]},
        {"low": 0}, {"other": 0}, None, [], "empty",
    ],
    ids=str,
)  # fmt: skip
def test_another_header_of_quantized_ngrams_is_refused(saved, changes):
    header, arrays = read_parts(saved)
    own = header["quantized"]
    header["quantized"] = own | changes if isinstance(changes, dict) else changes
    write_parts(saved, header, arrays)
    with pytest.raises(ValueError, match=DAMAGED):
        load_binary(saved)


NAMES = ["vocabulary", "word_start", "level_start", "words"]
QUANTIZED_NAMES = [
    "prob", "bow", "start", "records_2", "prob_2", "records_3", "prob_3", "high_2",
    "sample_2", "bow_2",
]  # fmt: skip


@pytest.mark.parametrize(
    ("saved", "name"),
    [
        *((kind, name) for kind in (HASHED, UNHASHED) for name in NAMES),
        *((QUANTIZED, name) for name in [*NAMES[:2], *QUANTIZED_NAMES]),
    ],
    indirect=["saved"],
)
def test_an_array_of_another_name_shape_or_size_is_refused(saved, name):
    header, arrays = read_parts(saved)
    own = arrays.pop(name)
    others = [
        ({}, f"is damaged: {name} is missing"),
        ({name: own.astype(np.float64)}, f"{name} is an array of float64 of"),
        ({name: own.reshape(1, -1)}, f"{name} is an array of .* of shape .1, "),
        ({name: own, "other": own}, "other is an unexpected item"),
    ]
    if name in QUANTIZED_NAMES:
        others += [
            ({name: other}, "arrays do not fit together")
            for other in (own[:-1], np.append(own, own[:1]))
        ]
    for other, message in others:
        write_parts(saved, header, arrays | other)
        with pytest.raises(ValueError, match=message):
            load_binary(saved)


VOCABULARIES = [
    ("vocabulary", 0, 0xFF),
    ("vocabulary", 0, ord("\n")),
    ("vocabulary", 0, ord("x")),
    ("word_start", 0, 1),
    ("word_start", 3, 1 << 62),
    ("word_start", -1, -1),
    ("word_slots", 0, 1),
    ("word_slots", slice(None), 1),
]
NUMBERS = {
    UNHASHED: [
        *VOCABULARIES,
        ("level_start", 0, 1), ("level_start", 2, 50), ("level_start", 2, -1),
        ("child_start", 0, 0), ("child_start", 3, 10**9), ("child_start", 3, -1),
        ("child_start", 50, 60), ("start", 0, 1), ("start", 1, 49),
        ("start", 3, 10**9), ("start", 3, -(10**9)), ("start", -1, 10**9),
        ("context_word", 0, 1), ("context_word", 1, 2), ("context_word", -1, 50),
        ("words", 1, 2), ("words", -1, 50), ("words", 51, 0),
    ],
    HASHED: [
        *VOCABULARIES,
        ("n_ngrams", 1, 60), ("level_start", 2, 52), ("buckets", 0, 0xFF),
        *[("prob", 7, value) for value in (2, -1, np.nan)],
        *[("bow", 7, value) for value in (-1, np.nan, np.inf)],
    ],
    QUANTIZED: [
        ("prob", 3, -1), ("prob", 3, 2), ("bow", 3, np.nan), ("start", 3, 10**6),
        ("start", 3, -1), ("records_2", 0, 0xFF), ("records_3", 0, 0xFF),  # word ids
        ("high_2", 0, 0), ("sample_2", 1, 10**6), ("prob_2", 0, 0.5), ("prob_3", 2, -1),
        ("bow_2", 2, np.inf),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("saved", "name", "position", "value"),
    [(kind, *own) for kind, numbers in NUMBERS.items() for own in numbers],
    indirect=["saved"],
)
def test_numbers_out_of_range_with_a_valid_checksum_are_refused(
    saved, name, position, value
):
    header, arrays = read_parts(saved)
    kind = arrays[name].dtype
    arrays[name][position] = np.array(value).astype(kind)
    write_parts(saved, header, arrays)
    with pytest.raises(ValueError, match=DAMAGED):
        load_binary(saved, verify=True)


@pytest.mark.parametrize("saved", [HASHED], indirect=True)
@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("n_ngrams", 0, 49),
        ("n_ngrams", 1, -1),
        ("n_ngrams", 2, 1 << 40),
        ("level_start", 1, 2),
        ("level_start", 3, 1 << 30),
        ("bucket_start", 1, 4),
        ("bucket_start", -1, 4),
        ("bucket_start", 2, -4),
        ("bucket_start", 2, 0),
        ("bucket_start", 2, 2**62),
    ],
)
def test_sizes_that_do_not_fit_are_refused_without_verify(saved, name, position, value):
    header, arrays = read_parts(saved)
    arrays[name][position] = value
    write_parts(saved, header, arrays)
    with pytest.raises(ValueError, match=r"is damaged: its arrays do not fit"):
        load_binary(saved)


@pytest.mark.parametrize("saved", [HASHED], indirect=True)
@pytest.mark.parametrize("name", ["child", "start"])
@pytest.mark.parametrize("array", ["high", "sample"])
def test_distribution_stays_inside_the_arrays_of_a_damaged_file(saved, name, array):
    header, arrays = read_parts(saved)
    rng = np.random.default_rng(0)
    X = np.stack(np.meshgrid(np.arange(50), np.arange(50)), axis=-1).reshape(-1, 2)
    whole = arrays[f"{name}_{array}"].copy()
    for values in (0, np.iinfo(whole.dtype).max, rng.permutation(whole)):
        arrays[f"{name}_{array}"][:] = values
        write_parts(saved, header, arrays)
        loaded, _ = load_binary(saved)
        proba = loaded.predict_proba(X)
        assert ((proba >= 0) & (proba < 10)).all()
        if array == "high":
            with pytest.raises(ValueError, match=r"model\.nplm is damaged"):
                loaded.prune(1e-3)


@pytest.mark.parametrize("saved", [HASHED], indirect=True)
def test_hash_table_is_loaded_from_the_file(saved, monkeypatch):
    model, _ = load_binary(saved)
    assert isinstance(model.index_.buckets, np.memmap)
    monkeypatch.setattr(hashing, "hash_table_of", None)  # must not be called
    X, y = windows(np.arange(50), 2)
    expected = np.log(model.trie_.unpacked().next_word_prob(X, y))
    assert_array_equal(load_binary(saved)[0].log_prob(X, y), expected)


@pytest.mark.parametrize("saved", [HASHED], indirect=True)
def test_mapped_model_is_pickled_as_a_model_in_memory(saved):
    model, _ = load_binary(saved)
    X, y = windows(np.arange(50), 2)
    loaded = pickle.loads(pickle.dumps(model))
    assert type(loaded.trie_) is BackoffTrie
    assert loaded.index_.closed == model.index_.closed
    assert_array_equal(loaded.index_.buckets, model.index_.buckets)
    assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))


# -- verification -------------------------------------------------------------------

N_FEW = 12
# Numbers in the buckets are the model's own: other ones make another model.
ARRAYS = ["context_word", "child_high", "child_sample", "start_high", "start_sample",
          "words", "closed"]  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
@settings(max_examples=4)
@given(
    order=st.integers(2, 5),
    boundary=st.sampled_from([None, 0]),
    prune=st.sampled_from([0.0, 0.003]),
    seed=st.integers(0, 3),
    at=st.floats(0, 1, exclude_max=True),
)
def test_file_is_verified_and_a_damaged_one_is_refused(
    order, boundary, prune, seed, name, at
):
    model = KneserNeyLM(order, n_words=N_FEW, boundary=boundary)
    model.fit_stream(text(600, seed=seed, n_words=N_FEW)).prune(prune)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        save_binary(model, path, WORDS[:N_FEW])
        loaded, _ = load_binary(path, verify=True)
        np.testing.assert_array_equal(loaded.trie_.n_ngrams, model.trie_.n_ngrams)
        header, arrays = read_parts(Path(path))
        own = arrays[name].view(np.uint8)
        own[int(at * len(own))] ^= 1
        write_parts(path, header, arrays)
        with pytest.raises(ValueError, match="is damaged: "):
            load_binary(path, verify=True)


def test_empty_buckets_of_a_model_without_bigrams_are_refused(tmp_path):
    """Sizes of tables grow also if no level has n-grams, so that their search ends."""
    model = KneserNeyLM(2, n_words=N_FEW, min_counts=(1, 1000))
    model.fit_stream(text(600, n_words=N_FEW))
    assert model.trie_.n_ngrams.tolist() == [N_FEW, 0]
    sizes = hashing.buckets_of_levels(model.trie_.n_ngrams, model.trie_.level_start)
    assert max(own[-1] - own[-2] for own in islice(sizes, 100)) > 1000
    save_binary(model, tmp_path / "model", WORDS[:N_FEW])
    load_binary(tmp_path / "model", verify=True)
    header, arrays = read_parts(tmp_path / "model")
    arrays["bucket_start"][-1] += 50
    arrays["buckets"] = np.zeros(int(arrays["bucket_start"][-1]) * 64, dtype=np.uint8)
    write_parts(tmp_path / "model", header, arrays)
    with pytest.raises(ValueError, match="bucket_start does not match"):
        load_binary(tmp_path / "model", verify=True)
