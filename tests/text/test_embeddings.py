"""Features of words before a network: vectors lined up, and counts around words."""

import numpy as np
import pytest

from nplm import Vocabulary

VOCABULARY = Vocabulary().fit([["a", "rose", "is", "red"]])


def test_vectors_go_to_the_ids_of_their_words():
    words, vectors = ["red", "other", "a", "is"], np.arange(8.0).reshape(4, 2)
    start = VOCABULARY.embeddings(words, vectors, random_state=0)
    assert start.shape == (VOCABULARY.n_words_, 2)
    assert start.dtype == np.float32
    for word in ("red", "a", "is"):
        np.testing.assert_array_equal(
            start[VOCABULARY.ids_[word]], vectors[words.index(word)]
        )


def test_words_without_a_vector_are_drawn_as_the_others_are():
    words = [f"w{i}" for i in range(4000)]
    vocabulary = Vocabulary().fit([words])
    vectors = np.random.default_rng(0).normal([5, 0], [1e-3, 2], (2000, 2))
    start = vocabulary.embeddings(words[:2000], vectors, random_state=0)
    own = {vocabulary.ids_[word] for word in words[:2000]}
    drawn = start[[i for i in range(vocabulary.n_words_) if i not in own]]
    assert len(drawn) == 2002
    np.testing.assert_allclose(drawn.mean(axis=0), [5, 0], atol=0.2)
    np.testing.assert_allclose(drawn.std(axis=0), [1e-3, 2], rtol=0.1)
    again = vocabulary.embeddings(words[:2000], vectors, random_state=0)
    np.testing.assert_array_equal(again, start)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], [[1.0], [2.0]], "a row for each of the 1 words, got shape"),
        (["a"], [1.0], r"got shape \(1,\)"),
        (["a", "b", "a"], [[1.0]] * 3, "words has 'a' twice"),
        (["A", "Rose"], [[1.0]] * 2, r"none of the words .*\['A', 'Rose'\] with"),
        (["a", "b"], [[1.0], [np.nan]], "vectors has nan at row 1, column 0 .of 'b'"),
    ],
)
def test_vectors_that_cannot_be_lined_up(words, vectors, message):
    with pytest.raises(ValueError, match=message):
        VOCABULARY.embeddings(words, vectors)
