"""Models with fewer words, more words, or words that are more probable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import (
    InterpolatedTrigram,
    TextLM,
    Tokenizer,
    boost_words,
    expand_classes,
    limit_vocabulary,
    static_mixture,
)
from tests.helpers.models import NAMES, contexts_of, lines, trained

pytestmark = pytest.mark.filterwarnings("ignore:.*Kneser-Ney")
FACTORS = st.floats(0.1, 50)


def sums_are_one(lm):
    proba = lm.estimator_.predict_proba(contexts_of(lm))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=2e-5)
    return proba


@settings(max_examples=15)
@given(
    kept=st.sets(st.sampled_from(NAMES[:8]), min_size=1),
    order=st.integers(2, 4),
    unknown=st.sampled_from(["<unk>", None]),
    prune=st.sampled_from([0.0, 0.01]),
)
def test_limited_model_keeps_its_ngrams_and_sums_to_one(kept, order, unknown, prune):
    lm = trained(order, unknown=unknown, prune=prune)
    small = limit_vocabulary(lm, kept | {"zebra"})
    words = small.vocabulary_.words_.tolist()
    specials = {"</s>"} | ({unknown} - {None})
    assert words == [w for w in lm.vocabulary_.words_ if w in kept | specials]
    sums_are_one(small)
    # The n-grams are those of kept words, with their probabilities.
    ids = np.array([lm.vocabulary_.ids_[word] for word in words])
    own, all_ngrams = small.estimator_.trie_, lm.estimator_.trie_
    for level in range(1, order):
        ngrams = all_ngrams.ngrams(level)
        expected = ngrams[np.isin(ngrams, ids).all(axis=1)]
        found = ids[own.ngrams(level)]
        assert set(map(tuple, found)) == set(map(tuple, expected))
        at = all_ngrams.index(
            np.ascontiguousarray(found[:, :-1], dtype=np.int32),
            found[:, -1].astype(np.int32),
        )
        # Where every word follows, probabilities are scaled.
        first, last = own.level_start[level : level + 2]
        n_followers = np.diff(own.start[first : last + 1])
        as_before = np.repeat(n_followers < own.n_words, n_followers)
        prob = own.prob[own.followers(level)]
        np.testing.assert_array_equal(prob[as_before], all_ngrams.prob[at][as_before])


@pytest.mark.parametrize("unknown", ["<unk>", None])
@pytest.mark.parametrize("mass_to", ["unknown", "words"])
def test_other_words_get_the_probability_of_dropped_ones(mass_to, unknown):
    lm = trained(unknown=unknown)
    small = limit_vocabulary(lm, NAMES[:3], mass_to=mass_to)
    before, after = (
        model.estimator_.trie_.prob[: model.n_words_].astype(float)
        for model in (lm, small)
    )
    expected = before[[lm.vocabulary_.ids_[w] for w in small.vocabulary_.words_]]
    dropped = before.sum() - expected.sum()
    if mass_to == "words":
        expected += dropped / len(expected)
    elif unknown is None:
        expected /= expected.sum()
    else:
        expected[small.vocabulary_.unknown_id_] += dropped
    np.testing.assert_allclose(after, expected, rtol=1e-5)
    sums_are_one(small)
    with pytest.raises(ValueError, match="got 'all'"):
        limit_vocabulary(lm, NAMES[:3], mass_to="all")


def test_all_words_leave_the_model_as_it_is():
    lm = trained()
    same = limit_vocabulary(lm, lm.vocabulary_.words_)
    texts = [*lines(50, 1), "w1 zebra w2"]
    np.testing.assert_allclose(
        same.score_samples(texts), lm.score_samples(texts), rtol=1e-5
    )
    assert same.estimator_.index_ is not None
    assert limit_vocabulary(lm, ["w1"], index=False).estimator_.index_ is None


@pytest.mark.parametrize(
    "change",
    [
        lambda lm: limit_vocabulary(lm, ["w1"]),
        lambda lm: boost_words(lm, ["w1"]),
        lambda lm: expand_classes(lm, {"w1": {"x": 1.0}}),
        lambda lm: static_mixture([lm, trained()], [0.5, 0.5]),
    ],
    ids=["limit", "boost", "expand", "mix"],
)
def test_models_without_ngrams_of_words_are_refused(change):
    lm = trained()
    trigram = TextLM(InterpolatedTrigram(), n_context=2).fit(lines(50, 0))
    ids = TextLM.from_model(lm.estimator_, boundary=0)
    for model, error, message in [
        (lm.estimator_, TypeError, "is a KneserNeyLM: pass a TextLM"),
        (trigram, TypeError, "is over a InterpolatedTrigram"),
        (ids, ValueError, "has ids and no words"),
    ]:
        with pytest.raises(error, match=message):
            change(model)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("w1", TypeError, "words is a string, 'w1': pass a list"),
        ([], ValueError, "has none of the words: it has 14 words"),
        (["zebra", "</s>"], ValueError, "Are they spelled as the model's are"),
    ],
)
def test_words_to_keep_are_a_list_of_the_models_words(words, error, message):
    with pytest.raises(error, match=message):
        limit_vocabulary(trained(), words)


@settings(max_examples=12)
@given(
    factors=st.dictionaries(st.sampled_from(NAMES[:8]), FACTORS, min_size=1),
    order=st.integers(2, 4),
    prune=st.sampled_from([0.0, 0.01]),
)
def test_the_odds_of_words_are_multiplied_after_every_context(factors, order, prune):
    lm = trained(order, prune=prune)
    boosted = boost_words(lm, factors)
    X = contexts_of(lm)
    factor = [factors.get(word, 1) for word in lm.vocabulary_.words_]
    expected = lm.estimator_.predict_proba(X) * factor
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sums_are_one(boosted), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("unknown", ["<unk>", None])
def test_new_words_are_as_probable_as_the_rarest(unknown):
    lm = trained(unknown=unknown)
    more = boost_words(lm, ["zebra", "gnu", NAMES[0]])
    n, words = lm.n_words_, lm.vocabulary_.words_.tolist()
    assert more.vocabulary_.words_.tolist() == [*words, "zebra", "gnu"]
    old, new = (m.estimator_.trie_ for m in (lm, more))
    expected = [*old.prob[:n], old.prob[:n].min(), old.prob[:n].min()]
    np.testing.assert_allclose(new.prob[: n + 2], expected / np.sum(expected), 1e-6)
    sums_are_one(more)
    for level in (1, 2):  # the n-grams are those of the model
        np.testing.assert_array_equal(new.ngrams(level), old.ngrams(level))
        own = [trie.prob[trie.followers(level)] for trie in (new, old)]
        np.testing.assert_allclose(*own, rtol=1e-5)
    boosted = boost_words(lm, ["zebra"], factor=30)
    assert boosted.perplexity(["zebra"]) < more.perplexity(["zebra"])


def test_words_that_cannot_be_boosted_are_refused():
    lm = trained()
    for words, message in (
        ({"a": 0.0}, "the factor of 'a' must be a number above 0, got 0.0"),
        ({"a": float("nan")}, "the factor of 'a'"),
        ({"a": "3"}, "the factor of 'a' must be a number above 0, got '3'"),
        ([], "words is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            boost_words(lm, words)
    for words in ("zebra", 5):
        with pytest.raises(TypeError, match=f"words is {words!r}: pass a list"):
            boost_words(lm, words)


def test_new_words_that_the_tokenizer_does_not_make_are_named():
    lm = trained(tokenizer=Tokenizer(lowercase=True))
    with pytest.warns(UserWarning, match=r"makes \['new'.*'New York'.*2 of the 3 new"):
        boost_words(lm, ["zebra", "New York", "Gnu"])
