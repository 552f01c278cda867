"""Corpus: three parts as attributes and items, and their windows."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from tests.helpers import corpus_of

IDS = [2, 3, 4, 0] * 5  # 14 to train on, 3 and 3


def test_every_token_has_a_window_in_its_part():
    stream = corpus_of(IDS, None).windows(2)
    np.testing.assert_array_equal(stream.train[1], IDS[2:-6])
    np.testing.assert_array_equal(stream.valid[1], IDS[-6:-3])
    np.testing.assert_array_equal(stream.test[0], [[0, 2], [2, 3], [3, 4]])
    np.testing.assert_array_equal(stream.test[1], IDS[-3:])
    sentences = corpus_of(IDS, 0).windows(2)
    assert [len(y) for _, y in sentences] == [14, 3, 3]
    np.testing.assert_array_equal(sentences.valid[0][0], [0, 0])


def test_contexts_reach_across_a_short_part():
    test = corpus_of(IDS, None).windows(5).test
    np.testing.assert_array_equal(test[0][0], IDS[-8:-3])


@pytest.mark.parametrize("boundary", [None, 0])
def test_empty_part_has_no_windows(boundary):
    corpus = replace(corpus_of(IDS, boundary), valid=np.empty(0, np.int32))
    parts = corpus.windows(2)
    assert parts.valid[0].shape == (0, 2)
    assert [len(y) for _, y in parts[1:]] == [0, 3]
    assert corpus.oov_rates()["valid"] == 0


@pytest.mark.parametrize("n_context", [0, 1.5, None])
def test_error_names_an_invalid_context(n_context):
    with pytest.raises(ValueError, match="n_context must be a whole number"):
        corpus_of(IDS, None).windows(n_context)


def test_oov_rates_of_the_parts():
    corpus = corpus_of([2, 1, 3, 1, 2, 3, 4, 1, 2, 4], 0)
    assert corpus.oov_rates() == {"train": 0.5, "valid": 0.0, "test": 1 / 3}


def test_values_are_attributes_and_items_also_after_pickling():
    corpus = corpus_of(IDS, 0)
    assert corpus["n_words"] == corpus.n_words == len(corpus.words) == 5
    again = pickle.loads(pickle.dumps(corpus))
    assert list(again) == list(corpus)
    for key in ("train", "valid", "test", "words"):
        np.testing.assert_array_equal(corpus[key], again[key])
        np.testing.assert_array_equal(corpus[key], getattr(again, key))
    assert "windows" not in corpus
    with pytest.raises(KeyError, match="windows"):
        corpus["windows"]


def test_corpus_is_immutable_and_compared_by_identity():
    corpus = corpus_of(IDS, 0)
    with pytest.raises(FrozenInstanceError):
        corpus.boundary = None
    assert corpus == corpus
    assert corpus != replace(corpus)
    assert replace(corpus, boundary=None).windows(2).train[1].tolist() == IDS[2:-6]


def test_repr_names_the_text_and_its_sizes():
    sentences = corpus_of(IDS, 0)
    assert repr(sentences).splitlines() == [
        "<Corpus letters: documents that end with </s> of 5 types",
        " train 14, valid 3, test 3 tokens>",
    ]
    stream = replace(sentences, boundary=None, DESCR="Letters of mine.\n\nfigures")
    assert repr(stream).startswith("<Corpus letters: one stream of 5 types")
    assert repr(stream).endswith("\n Letters of mine.>")


def test_documents_are_split_at_boundaries():
    corpus = corpus_of(IDS, 0)
    found = corpus.documents("train")
    spelt = " ".join(corpus.words[corpus.train])
    assert [" ".join(words) for words in found] == [
        piece.strip() for piece in spelt.split(corpus.words[0]) if piece.strip()
    ]
    with pytest.raises(ValueError, match="'all'"):
        corpus.documents("all")
    with pytest.raises(ValueError, match="letters is one stream"):
        replace(corpus, boundary=None).documents("test")
