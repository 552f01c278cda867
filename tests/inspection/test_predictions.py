"""Predictions taken apart: they are the model's, and their parts add up."""

import math
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    UniformLM,
    Vocabulary,
)
from nplm.inspection import expected_words, surprisals
from tests.helpers import paper_lm

CELLS = NeuralLM(
    2, n_memory=2, n_hidden=8, embedding_dim=4, max_iter=5, random_state=0
)  # fmt: skip
NGRAMS = KneserNeyLM(order=3, discount_fallback=(0.5, 1, 1.5))
TEXTS = ["a cat saw the dog", "the dog saw a cat", "the cat sat", "a dog sat"] * 9
VALID = ["the cat saw a dog", "a cat sat"]
WORDS = st.sampled_from(["a", "cat", "saw", "the", "dog", "sat", "zebra"])


@cache
def model(kind):
    network = paper_lm(n_hidden=4, embedding_dim=3, max_iter=3, random_state=0)
    members = [("n-grams", NGRAMS), ("network", network)]
    estimator = {
        "n-grams": NGRAMS,
        "network": network,
        "trigram": InterpolatedTrigram(),
        "mixture": MixtureLM(members, "learned", include_uniform=True),
        "by context": MixtureLM(members, "context"),
        "cells": CELLS,
        "mixed cells": MixtureLM([("cells", CELLS), ("n-grams", NGRAMS)]),
    }[kind]
    return TextLM(estimator, n_context=2).fit(TEXTS, X_val=VALID)


ALONE = ["n-grams", "network", "cells"]
MIXED = ["trigram", "mixture", "by context", "mixed cells"]
KINDS = ALONE + MIXED


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(WORDS, max_size=6).map(" ".join))
def test_surprisals_are_those_of_token_scores(kind, text):
    lm = model(kind)
    [found], [scores] = surprisals(lm, [text]), lm.token_scores([text])
    assert found.tokens == [*text.split(), "</s>"]
    np.testing.assert_allclose(found.bits, -scores.log_prob / math.log(2), rtol=1e-6)
    np.testing.assert_array_equal(found.unknown, scores.unknown)
    assert (found.order is None) == (scores.order is None)
    if found.order is not None:
        np.testing.assert_array_equal(found.order, scores.order)
    if scores.weights is not None:
        np.testing.assert_allclose(found.weights, scores.weights)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MIXED)
@given(text=st.lists(WORDS, max_size=6).map(" ".join))
def test_members_add_up_to_the_probability(kind, text):
    lm = model(kind)
    [found] = surprisals(lm, [text])
    sums = (found.weights * 2.0**-found.member_bits).sum(axis=1)
    np.testing.assert_allclose(np.log(sums).sum(), lm.score_samples([text]))


def test_members_are_those_that_are_scored_alone():
    lm = model("mixture")
    [found] = surprisals(lm, ["the dog sat"])
    assert found.members == ["n-grams", "network", "uniform"]
    # Kneser-Ney of the same documents, as a model of its own.
    [alone] = model("n-grams").token_scores(["the dog sat"])
    np.testing.assert_allclose(
        found.member_bits[:, 0], -alone.log_prob / math.log(2), rtol=1e-6
    )
    np.testing.assert_array_equal(found.member_order[:, 0], alone.order)
    assert (found.member_order[:, 1:] == 0).all()
    np.testing.assert_allclose(found.member_bits[:, 2], math.log2(lm.n_words_))


def test_orders_of_a_trigram_have_names():
    [found] = surprisals(model("trigram"), ["the dog"])
    assert found.members == ["uniform", "unigram", "bigram", "trigram"]
    np.testing.assert_allclose(
        found.member_bits[:, 0], math.log2(model("trigram").n_words_)
    )


def test_each_document_has_its_own_tokens():
    lm = model("mixture")
    texts = ["the dog", "", "a zebra sat"]
    for text, found in zip(texts, surprisals(lm, texts)):
        [alone] = surprisals(lm, [text])
        assert found.tokens == alone.tokens
        np.testing.assert_allclose(found.member_bits, alone.member_bits)
    assert surprisals(lm, []) == []


def test_ends_that_are_not_predicted_are_left_out():
    vocabulary = Vocabulary.from_words(["the", "dog"])
    lm = TextLM(UniformLM(n_words=4), predict_boundary=False, vocabulary=vocabulary)
    lm = lm.fit(["the dog"])
    [found, empty] = surprisals(lm, ["the zebra", ""])
    assert found.tokens == ["the", "zebra"]
    assert found.bits.tolist() == [2, 2]
    assert found.unknown.tolist() == [False, True]
    assert list(empty.tokens) == [] and len(empty.bits) == 0


def test_documents_of_ids_and_of_events_are_taken_apart():
    events = [["login", ("read", 3), "logout"]] * 20
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(events)
    [found] = surprisals(lm, [["login", ("read", 4)]])
    assert found.tokens == ["login", ("read", 4), "</s>"]
    ids = TextLM(InterpolatedTrigram(), n_context=2).fit([[1, 2, 3]] * 20)
    [found] = surprisals(ids, [[1, 2]])
    assert found.tokens.tolist() == [1, 2, 0]
    assert expected_words(ids, [1, 2], k=1).words.tolist() == [3]


@pytest.mark.parametrize("kind", KINDS)
def test_expected_words_are_the_most_probable(kind):
    lm = model(kind)
    found = expected_words(lm, "the cat", k=4)
    words, proba = lm.next_words("the cat", 4, unknown=True)
    assert found.words == words
    np.testing.assert_allclose(found.proba, proba)
    if found.members:
        np.testing.assert_allclose(
            found.member_proba @ found.weights, found.proba, rtol=1e-6
        )


@pytest.mark.parametrize("kind", ["n-grams", "cells", "mixture", "mixed cells"])
def test_expected_words_have_the_orders_and_members_of_scored_ones(kind):
    lm = model(kind)
    found = expected_words(lm, "the cat", k=6)
    for i, word in enumerate(found.words):
        text = "the cat" if word == "</s>" else f"the cat {word}"
        [scored] = surprisals(lm, [text])
        np.testing.assert_allclose(scored.bits[2], -np.log2(found.proba[i]), rtol=1e-6)
        np.testing.assert_array_equal(scored.member_order[2], found.member_order[i])
        np.testing.assert_allclose(
            2.0 ** -scored.member_bits[2], found.member_proba[i], rtol=1e-6
        )
        if kind == "n-grams":
            assert scored.order[2] == found.order[i]


def test_a_position_is_predicted_from_the_tokens_before_it():
    lm = model("mixture")
    for position, before in enumerate(["", "the", "the dog", "the dog saw"]):
        found = expected_words(lm, "the dog saw", 3, position=position)
        alone = expected_words(lm, before, 3)
        assert found.words == alone.words
        np.testing.assert_array_equal(found.proba, alone.proba)
    nothing = expected_words(lm, k=3)
    assert nothing.words == expected_words(lm, "", 3).words


def test_expected_words_are_as_many_as_the_vocabulary_has():
    lm = model("network")
    found = expected_words(lm, "the", k=1000)
    assert sorted(found.words) == sorted(lm.vocabulary_.words_)
    assert found.proba.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(k=0), "k == 0, must be >= 1"),
        (dict(position=3), "position must be from 0 to 2"),
        (dict(position=-1), "position must be from 0 to 2"),
    ],
)
def test_expected_words_refuse_numbers_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        expected_words(model("n-grams"), "the dog", **given)


@pytest.mark.parametrize("position", ["1", 0.5])
def test_positions_are_whole_numbers(position):
    with pytest.raises(TypeError, match="position must be an instance of int"):
        expected_words(model("n-grams"), "the dog", position=position)


def test_models_of_windows_are_refused():
    with pytest.raises(TypeError, match="lm must be a TextLM, got KneserNeyLM: make"):
        surprisals(model("n-grams").estimator_, ["the dog"])


@pytest.mark.parametrize("k", [None, 2.5, "3"])
def test_numbers_of_words_are_whole(k):
    lm = model("network")
    for method in (lm.next_words, lm.nearest, partial(expected_words, lm)):
        with pytest.raises(TypeError, match="k must be an instance of int, not"):
            method("the", k=k)


def test_an_impossible_token_has_infinite_surprisal():
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["a b"] * 20)
    lm.estimator_.weights_[:] = [0, 0, 0, 1]  # relative frequencies alone
    [found] = surprisals(lm, ["b b"])
    assert found.bits[0] == np.inf
    assert (found.bits >= 0).all() and not np.signbit(found.bits).any()
