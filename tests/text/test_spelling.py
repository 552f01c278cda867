"""Spelling features, compared with features listed by hand."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import Vocabulary


def features_of(words, **options):
    vocabulary = Vocabulary().fit([words])
    features, names = vocabulary.spelling_features(**options)
    dense = features.toarray()
    return {
        word: {names[j]: dense[i, j] for j in np.flatnonzero(dense[i])}
        for i, word in enumerate(vocabulary.words_)
    }


def test_every_feature_of_a_word():
    own = features_of(["Ab1"], ngrams=(2, 3), min_words=1)["Ab1"]
    expected = {f"ngram:{n}" for n in ("<A", "Ab", "b1", "1>", "<Ab", "Ab1", "b1>")}
    assert own.keys() == expected | {"shape:capital", "shape:digit", "length:3"}
    assert list(own.values()) == pytest.approx([1 / np.sqrt(10)] * 10)


def test_a_feature_counts_once_in_a_word():
    assert features_of(["aaaa"], ngrams=(2, 2), min_words=1)["aaaa"].keys() == {
        "ngram:<a", "ngram:aa", "ngram:a>", "length:4",
    }  # fmt: skip


def test_rare_features_are_dropped():
    found = features_of(["rose", "roses", "prose", "X"], ngrams=(4, 4), min_words=2)
    kept = ("ngram:<ros", "ngram:rose", "ngram:ose>")
    assert found["rose"] == pytest.approx(dict.fromkeys(kept, 1 / np.sqrt(3)))
    assert found["X"] == {}


def test_symbols_have_no_spelling():
    found = features_of(["unk", "</s", "un", "<unk>"], min_words=1)
    assert found["<unk>"] == found["</s>"] == {}
    assert found["unk"]


def test_the_matrix_is_sparse_and_small():
    vocabulary = Vocabulary().fit([["rose", "roses", "prose"]])
    features, names = vocabulary.spelling_features(min_words=2)
    assert features.format == "csr"
    assert features.dtype == np.float32
    assert features.shape == (vocabulary.n_words_, len(names))
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngrams": (3, 2)}, r"ngrams=\(3, 2\) has its bounds reversed"),
        ({"ngrams": 3}, "ngrams must be a pair of .* letters, got 3"),
        ({"ngrams": (0, 2)}, r"ngrams\[0\].*must be an int in the range \[1, inf\)"),
        ({"ngrams": (2, 2.5)}, r"ngrams\[1\].*must be an int"),
        ({"min_words": 0}, "min_words.*must be an int"),
        ({"min_words": 10}, "no feature occurs in min_words=10 of the 4.*lower"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary().fit([["rose", "roses"]]).spelling_features(**options)


def test_a_vocabulary_without_words():
    with pytest.raises(NotFittedError):
        Vocabulary().spelling_features()
