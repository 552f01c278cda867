"""Models restricted to a list of words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import (
    InterpolatedTrigram,
    TextLM,
    limit_vocabulary,
)
from tests.helpers.models import NAMES, contexts_of, lines, trained

pytestmark = pytest.mark.filterwarnings("ignore:.*Kneser-Ney")


@settings(max_examples=25)
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
    proba = small.estimator_.predict_proba(contexts_of(small))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=2e-5)
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
    proba = small.estimator_.predict_proba(contexts_of(small))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=2e-5)
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


def test_mistakes_are_told():
    lm = trained()
    trigram = TextLM(InterpolatedTrigram(), n_context=2).fit(lines(50, 0))
    ids = TextLM.from_model(lm.estimator_, boundary=0)
    for model, words, error, message in [
        (lm, "w1", TypeError, "words is a string, 'w1': pass a list"),
        (lm, [], ValueError, "has none of the words: it has 14 words"),
        (lm, ["zebra", "</s>"], ValueError, "Are they spelled as the model's are"),
        (lm.estimator_, ["w1"], TypeError, "lm is a KneserNeyLM: pass a TextLM"),
        (trigram, ["w1"], TypeError, "lm is over a InterpolatedTrigram"),
        (ids, ["w1"], ValueError, "lm has ids and no words"),
    ]:
        with pytest.raises(error, match=message):
            limit_vocabulary(model, words)
