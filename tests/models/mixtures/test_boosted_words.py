"""Models with more words, or words that are more probable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import Tokenizer, boost_words
from tests.helpers.models import NAMES, contexts_of, trained

pytestmark = pytest.mark.filterwarnings("ignore:.*Kneser-Ney")
FACTORS = st.floats(0.1, 50)


@settings(max_examples=20)
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
    found = boosted.estimator_.predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=2e-5)


@pytest.mark.parametrize("unknown", ["<unk>", None])
def test_new_words_are_as_probable_as_the_rarest(unknown):
    lm = trained(unknown=unknown)
    more = boost_words(lm, ["zebra", "gnu", NAMES[0]])
    n, words = lm.n_words_, lm.vocabulary_.words_.tolist()
    assert more.vocabulary_.words_.tolist() == [*words, "zebra", "gnu"]
    old, new = (m.estimator_.trie_ for m in (lm, more))
    expected = [*old.prob[:n], old.prob[:n].min(), old.prob[:n].min()]
    np.testing.assert_allclose(new.prob[: n + 2], expected / np.sum(expected), 1e-6)
    proba = more.estimator_.predict_proba(contexts_of(more))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=2e-5)
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
