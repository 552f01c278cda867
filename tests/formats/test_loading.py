"""`nplm.load` of files of every kind, recognised by their contents."""

import bz2
import gzip
import lzma

import numpy as np
import pytest

import nplm
from nplm import KneserNeyLM, TextLM
from nplm.formats import (
    load_binary,
    read_arpa,
    save_binary,
    write_arpa,
    write_classes,
    write_counts,
    write_vectors,
)
from nplm.formats.open_model import Kind, open_model
from tests.helpers import small_text, text

pytestmark = small_text
N_WORDS = 30
WORDS = ["</s>", "<unk>", *(f"wörd{i}" for i in range(2, N_WORDS))]
LINES = ["wörd2 wörd3 wörd2", "wörd5 new"]


@pytest.fixture(scope="module")
def model():
    # Also when the test of another file asks for warnings.
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        stream = text(2000, n_words=N_WORDS)
        return KneserNeyLM(3, n_words=N_WORDS, boundary=0).fit_stream(stream)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_arpa_files_are_text_models(tmp_path, model, pack):
    path = tmp_path / "model.nplm"  # the name says nothing
    write_arpa(model, path, WORDS)
    path.write_bytes(pack(path.read_bytes()))
    with open_model(path) as file:
        assert file.kind is Kind.ARPA
    lm = nplm.load(path)
    wanted = TextLM.from_model(*read_arpa(path))
    assert isinstance(lm, TextLM)
    np.testing.assert_array_equal(lm.score_samples(LINES), wanted.score_samples(LINES))


@pytest.mark.parametrize("options", [{}, {"bits": 8}], ids=str)
@pytest.mark.parametrize("mmap", [True, False])
def test_binary_files_are_text_models(tmp_path, model, options, mmap):
    path = tmp_path / "model.arpa"
    save_binary(model, path, WORDS, **options)
    lm = nplm.load(path, mmap=mmap)
    wanted = TextLM.from_model(*load_binary(path))
    assert type(lm.estimator_) is type(wanted.estimator_)
    np.testing.assert_array_equal(lm.score_samples(LINES), wanted.score_samples(LINES))
    trie = lm.estimator_.trie_
    if "bits" in options:
        array = trie.levels[0].records
    else:
        array = trie.start if options else lm.estimator_.index_.buckets
    assert isinstance(array, np.memmap) is mmap
    assert array.flags.writeable is not mmap


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ngrams_without_a_boundary_are_scored_without_marks(tmp_path, order):
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        stream = KneserNeyLM(order, n_words=9).fit_stream(text(500, n_words=9))
    words = [f"w{i}" for i in range(9)]
    write_arpa(stream, tmp_path / "arpa", words)
    save_binary(stream, tmp_path / "binary", words)
    sentences = ["w1 w2", "w3", "w3 w1 w2 w8 w0", ""]
    expected = []
    for sentence in sentences:
        ids = np.array([[int(word[1:]) for word in sentence.split()]], np.int32)
        probs = [
            stream.trie_.next_word_prob(ids[:, max(0, i - order + 1) : i], ids[:, i])[0]
            for i in range(ids.size)
        ]
        expected.append(np.log(probs).sum())
    names = ["arpa", "binary"]
    if order > 1:
        save_binary(stream, tmp_path / "8bits", words, bits=8)
        names.append("8bits")
    for name in names:
        rtol = 0.02 if name == "8bits" else 1e-5
        lm = nplm.load(tmp_path / name)
        np.testing.assert_allclose(lm.score_samples(sentences), expected, rtol=rtol)
        with open_model(tmp_path / name) as file:
            scores = list(map(file.scorer().score, sentences))
        np.testing.assert_allclose(scores, lm.score_samples(sentences), rtol=1e-6)
        shares = lm.estimator_.predict_proba([[3] * max(order - 1, 1)])
        assert shares.sum() == pytest.approx(1, abs=0.02)


def test_files_that_are_no_models_name_their_reader(tmp_path, model):
    path = tmp_path / "model"
    rows = np.arange(N_WORDS * 2).reshape(-1, 2) / 7
    for write, message in [
        (lambda: write_vectors(path, WORDS, rows), r"read_vectors\(path\)"),
        (
            lambda: write_vectors(path, WORDS, rows, binary=True),
            r"read_vectors\(path, binary=True\)",
        ),
        (lambda: write_classes(path, WORDS, range(N_WORDS)), "read_classes"),
        (lambda: write_counts(model, path, WORDS), "read_counts"),
    ]:
        write()
        for pack in (bytes, gzip.compress):
            path.write_bytes(pack(path.read_bytes()))
            with pytest.raises(
                ValueError, match=rf"model has .*not a model: .*{message}"
            ):
                nplm.load(path)
