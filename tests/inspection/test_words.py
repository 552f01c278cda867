"""Nearest words and suggestions."""

import numpy as np
import pytest

from nplm import UniformLM
from nplm.inspection import nearest_words, suggestions
from tests.helpers import corpus_of, paper_lm

WORDS = ["</s>", "king", "queen", "apple", "pear"]
C = np.array([[0, 0], [1, 0.1], [5, 0], [0, 1], [0.1, 3]], dtype=np.float32)


def test_suggestions_are_the_most_probable_words():
    corpus = corpus_of(np.tile([2, 3, 4], 20), None)
    X, y = corpus.windows(2).train
    network = paper_lm(
        n_words=5, n_hidden=4, embedding_dim=2, learning_rate_init=0.1, random_state=0
    ).fit(X, y)
    shown = suggestions(network, corpus, n_contexts=2, k=1)
    assert [example["context"] for example in shown] == [["b", "c"], ["a", "b"]]
    for example in shown:
        [(word, probability)] = example["suggestions"]
        assert word == example["next"]
        assert 0.5 < probability <= 1


def test_unknown_words_are_not_suggested():
    corpus = corpus_of(np.tile([2, 3, 4], 20), None)
    lm = UniformLM(n_words=5).fit(*corpus.windows(2).train)
    [shown] = suggestions(lm, corpus, n_contexts=1)
    assert dict(shown["suggestions"]) == dict.fromkeys(["</s>", "a", "b", "c"], 0.25)


def test_nearest_words_by_the_cosine():
    assert nearest_words(C, WORDS, k=1) == {
        "king": ["queen"],
        "queen": ["king"],
        "apple": ["pear"],
        "pear": ["apple"],
    }


def test_nearest_words_of_given_words():
    assert nearest_words(C, np.array(WORDS, dtype=object), of=["pear"], k=2) == {
        "pear": ["apple", "king"]
    }
    assert len(nearest_words(C, WORDS, of=["pear"], k=9)["pear"]) == 4


def test_nearest_words_refuses_invalid_words():
    with pytest.raises(ValueError, match="'plum', which is not among"):
        nearest_words(C, WORDS, of=["king", "plum"])
    with pytest.raises(ValueError, match=r"words has 4 words, but len\(C\)=5"):
        nearest_words(C, WORDS[:4])
