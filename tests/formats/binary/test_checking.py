"""Mapped files of models of every kind pass their verification, and no others."""

import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import KneserNeyLM
from nplm._kernels.ngrams import _hashing
from nplm.formats import load_binary, save_binary
from nplm.formats.binary import reading
from nplm.models.ngrams.trie.hashing import buckets_of_levels
from tests.helpers import text
from tests.helpers.binary import read_parts, write_parts

pytestmark = pytest.mark.filterwarnings("ignore:.*Kneser-Ney")
N_WORDS = 12
WORDS = [f"w{i}" for i in range(N_WORDS)]
# Numbers in the buckets are the model's own: other ones make another model.
ARRAYS = ["context_word", "child_high", "child_sample", "start_high", "start_sample",
          "words", "closed"]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25)
@given(
    order=st.integers(2, 5),
    boundary=st.sampled_from([None, 0]),
    prune=st.sampled_from([0.0, 0.003]),
    seed=st.integers(0, 3),
    name=st.sampled_from(ARRAYS),
    at=st.floats(0, 1, exclude_max=True),
)
def test_file_is_verified_and_a_damaged_one_is_refused(
    order, boundary, prune, seed, name, at
):
    model = KneserNeyLM(order, n_words=N_WORDS, boundary=boundary)
    model.fit_stream(text(600, seed=seed, n_words=N_WORDS)).prune(prune)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        save_binary(model, path, WORDS)
        loaded, _ = load_binary(path, verify=True)
        np.testing.assert_array_equal(loaded.trie_.n_ngrams, model.trie_.n_ngrams)
        header, arrays = read_parts(Path(path))
        own = arrays[name].view(np.uint8)
        own[int(at * len(own))] ^= 1
        write_parts(path, header, arrays)
        with pytest.raises(ValueError, match="is damaged: "):
            load_binary(path, verify=True)


def test_verification_reads_the_hash_table_in_windows(tmp_path, monkeypatch):
    model = KneserNeyLM(3, n_words=N_WORDS).fit_stream(text(600, n_words=N_WORDS))
    save_binary(model, tmp_path / "model", WORDS)
    n_bytes = len(read_parts(tmp_path / "model")[1]["buckets"])
    stored_values, windows = _hashing.stored_values, set()

    def noted(*args):
        windows.add(args[-4])
        stored_values(*args)

    monkeypatch.setattr(_hashing, "stored_values", noted)
    monkeypatch.setattr(reading, "CHECKING_BYTES", 1 << 10)
    load_binary(tmp_path / "model", verify=True)
    assert n_bytes / len(windows) <= 1 << 10


def test_empty_buckets_of_a_model_without_bigrams_are_refused(tmp_path):
    """Sizes of tables grow also if no level has n-grams, so that their search ends."""
    model = KneserNeyLM(2, n_words=N_WORDS, min_counts=(1, 1000))
    model.fit_stream(text(600, n_words=N_WORDS))
    assert model.trie_.n_ngrams.tolist() == [N_WORDS, 0]
    sizes = buckets_of_levels(model.trie_.n_ngrams, model.trie_.level_start)
    assert max(own[-1] - own[-2] for own in islice(sizes, 100)) > 1000
    save_binary(model, tmp_path / "model", WORDS)
    load_binary(tmp_path / "model", verify=True)
    header, arrays = read_parts(tmp_path / "model")
    arrays["bucket_start"][-1] += 50
    arrays["buckets"] = np.zeros(int(arrays["bucket_start"][-1]) * 64, dtype=np.uint8)
    write_parts(tmp_path / "model", header, arrays)
    with pytest.raises(ValueError, match="bucket_start does not match"):
        load_binary(tmp_path / "model", verify=True)
