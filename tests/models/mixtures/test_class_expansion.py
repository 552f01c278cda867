"""Models of classes expanded to words, beside the definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import (
    ClassLM,
    KneserNeyLM,
    TextLM,
    Vocabulary,
    expand_classes,
)
from tests.helpers import text
from tests.helpers.ngrams import lines_of

pytestmark = pytest.mark.filterwarnings("ignore:.*Kneser-Ney")
TOKENS = ["</s>", "<unk>", "A", "B", "C", "u", "v", "w"]
ANIMALS = {"A": {"cat": 0.5, "dog": 0.25, "horse": 0.25}, "B": {"sofa": 1.0}}


def trained(order=3, *, seed=0, prune=0.0, tokens=TOKENS):
    """Return a model of words and classes."""
    model = KneserNeyLM(order, n_words=len(tokens), boundary=0)
    model.fit_stream(text(300, seed=seed, n_words=len(tokens)))
    return TextLM.from_model(model.prune(prune), tokens)


class Definition:
    """The expansion on dictionaries, one probability at a time."""

    def __init__(self, lm, classes):
        self.lm, ids = lm, lm.vocabulary_.ids_
        self.words = {t: classes.get(t, {t: 1.0}) for t in ids}
        self.tokens = {}
        for token, words in self.words.items():
            for word, prob in words.items():
                self.tokens.setdefault(word, {})[token] = prob / sum(words.values())

    def token_prob(self, context, token):
        """Return the probability of a token after others, by the class model."""
        ids, width = self.lm.vocabulary_.ids_, self.lm.estimator_.order_ - 1
        trie, k = self.lm.estimator_.trie_, min(len(context), width)
        X = np.array([[ids[t] for t in context[len(context) - k :]]], dtype=np.int32)
        return trie.distribution(X.reshape(1, k))[0, ids[token]]

    def readings(self, context):
        """Return the sequences of tokens of a context, with their probability."""
        found = {}
        for tokens in itertools.product(*(self.tokens[word] for word in context)):
            found[tokens] = 1.0
            for k, (token, word) in enumerate(zip(tokens, context)):
                found[tokens] *= self.token_prob(tokens[:k], token)
                found[tokens] *= self.tokens[word][token]
        total = sum(found.values())
        return {tokens: prob / total for tokens, prob in found.items()}

    def p(self, context, word):
        return sum(
            weight * prob * self.token_prob(tokens, token)
            for tokens, weight in self.readings(context).items()
            for token, prob in self.tokens[word].items()
        )

    def ngrams(self, level):
        """Return the n-grams of words whose contexts have `level` words."""
        names = self.lm.vocabulary_.words_
        return {
            words
            for gram in names[self.lm.estimator_.trie_.ngrams(level)]
            for words in itertools.product(*(self.words[token] for token in gram))
        }


def distributions(words):
    """Return a strategy for the probabilities of one or more words."""
    weights = st.dictionaries(st.sampled_from(words), st.integers(1, 9), min_size=1)
    return weights.map(lambda w: {k: n / sum(w.values()) for k, n in w.items()})


@settings(max_examples=20)
@given(
    order=st.integers(1, 4),
    a=distributions(["a0", "a1", "a2", "a3"]),
    b=distributions(["b0", "b1"]),
    prune=st.sampled_from([0.0, 0.01]),
    seed=st.integers(0, 99),
)
def test_words_of_one_class_have_the_probability_of_the_class_model(
    order, a, b, prune, seed
):
    lm = trained(order, seed=seed, prune=prune)
    words = expand_classes(lm, {"A": a, "B": b, "absent": {"x": 1.0}})
    token_of = {**dict.fromkeys(a, "A"), **dict.fromkeys(b, "B")}
    names = words.vocabulary_.words_.tolist()
    assert set(names) == set(TOKENS) - {"A", "B"} | set(a) | set(b)
    tokens = [lm.vocabulary_.ids_[token_of.get(word, word)] for word in names]
    given_token = np.array([{**a, **b}.get(word, 1.0) for word in names])
    width = max(order - 1, 1)
    X = np.random.default_rng(seed).integers(0, len(names), (300, width))
    expected = lm.estimator_.predict_proba(np.array(tokens)[X])[:, tokens] * given_token
    found = words.estimator_.predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


@settings(max_examples=10)
@given(
    order=st.integers(2, 3),
    a=distributions(["a", "ab", "abc", "v"]),
    b=distributions(["b", "ab", "abc", "<unk>"]),
    c=distributions(["c", "abc", "w"]),
    prune=st.sampled_from([0.0, 0.01]),
    seed=st.integers(0, 99),
)
def test_ngrams_of_words_of_several_classes_are_sums(order, a, b, c, prune, seed):
    lm, classes = trained(order, seed=seed, prune=prune), {"A": a, "B": b, "C": c}
    expected = Definition(lm, classes)
    words = expand_classes(lm, classes)
    names, trie = words.vocabulary_.words_, words.estimator_.trie_
    for level in range(order):
        ngrams = list(map(tuple, names[trie.ngrams(level)]))
        assert len(ngrams) == len(set(ngrams))
        assert set(ngrams) == expected.ngrams(level)
        prob = trie.prob[trie.followers(level)]
        for gram, found in itertools.islice(zip(ngrams, prob), 0, None, 3):
            assert found == pytest.approx(expected.p(gram[:-1], gram[-1]), rel=1e-5)
    X = np.random.default_rng(seed).integers(0, len(names), (200, order - 1))
    proba = words.estimator_.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


def test_shorter_order_has_the_same_shorter_ngrams():
    lm = trained(3)
    whole, short = expand_classes(lm, ANIMALS), expand_classes(lm, ANIMALS, order=2)
    assert short.estimator_.order_ == 2
    n = whole.estimator_.n_ngrams_[:2]
    np.testing.assert_array_equal(short.estimator_.n_ngrams_, n)
    np.testing.assert_array_equal(
        short.estimator_.trie_.prob, whole.estimator_.trie_.prob[: n.sum()]
    )


def test_class_model_without_uniform_part_is_expanded_exactly():
    lines = lines_of(2000, ["", "", *(f"w{i}" for i in range(30))])
    lm = TextLM(ClassLM(3, n_classes=5, uniform_weight=0, random_state=0), n_context=2)
    model = lm.fit(lines).estimator_
    names = [f"CLASS{c}" for c in range(model.n_classes_)]
    names[model.labels_[lm.boundary_]] = "</s>"
    classes = {name: {} for name in names if name != "</s>"}
    for word, c, prob in zip(lm.vocabulary_.words_, model.labels_, model.word_proba_):
        if word != "</s>" and prob > 0:
            classes[names[c]][word] = prob
    boundary = names.index("</s>")
    of_classes = TextLM.from_model(model.class_model_, names, boundary=boundary)
    words = expand_classes(of_classes, classes)
    np.testing.assert_allclose(
        words.score_samples(lines), lm.score_samples(lines), rtol=1e-5
    )


def test_probabilities_after_a_word_of_probability_0_are_finite():
    # Every sequence of classes of a context that begins with it has probability 0.
    lm = trained(3)
    trie = lm.estimator_.trie_
    trie.prob[5] = 0
    words = expand_classes(lm, {"A": {"x": 1.0}, "B": {"x": 0.5, "y": 0.5}})
    assert np.isfinite(words.estimator_.trie_.prob).all()
    X = np.random.default_rng(0).integers(0, words.n_words_, (200, 2))
    assert np.isfinite(words.estimator_.predict_proba(X)).all()


def test_hash_table_is_made_unless_it_is_left_out():
    lm = trained()
    assert expand_classes(lm, ANIMALS).estimator_.index_ is not None
    assert expand_classes(lm, ANIMALS, index=False).estimator_.index_ is None


def test_too_many_ngrams_are_refused_before_they_are_made():
    lm = trained(3)
    many = {name: {f"{name}{i}": 5e-4 for i in range(2000)} for name in "ABC"}
    ids = [lm.vocabulary_.ids_[name] for name in "ABC"]
    n_classes = [
        np.isin(lm.estimator_.trie_.ngrams(level), ids).sum(axis=1)
        for level in range(3)
    ]
    expected = sum(int((2000.0**n).sum()) for n in n_classes)
    message = (
        f"expands to {expected:,} n-grams of words, more than max_ngrams=100000000"
    )
    with pytest.raises(ValueError, match=message):
        expand_classes(lm, many)
    n = int(expand_classes(lm, ANIMALS).estimator_.n_ngrams_.sum())
    assert expand_classes(lm, ANIMALS, max_ngrams=n).n_words_ == 10
    with pytest.raises(ValueError, match=f"{n:,} n-grams.*max_ngrams={n - 1}"):
        expand_classes(lm, ANIMALS, max_ngrams=n - 1)


@pytest.mark.parametrize(("order", "shown"), [(5, r"1e\+20"), (80, "inf")])
def test_a_number_of_ngrams_beyond_integers_is_refused(order, shown):
    lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=order - 1)
    lm.fit(["A " * 90] * 2)
    many = {"A": {f"w{i}": 1e-4 for i in range(10**4)}}
    with pytest.raises(ValueError, match=f"expands to {shown} n-grams"):
        expand_classes(lm, many)


@pytest.mark.parametrize("unknown", ["OOV", "<UNK>"])
def test_the_symbol_for_unknown_words_stays_what_it_is(unknown):
    """Also where a class has a word that is the symbol in other models."""
    lm = TextLM(
        KneserNeyLM(2, discount_fallback=0.5), 1, vocabulary=Vocabulary(unknown=unknown)
    ).fit([["a", "THING", "b"], ["THING", "a"]])
    made = expand_classes(lm, {"THING": {"x": 0.5, "<unk>": 0.5}})
    assert made.vocabulary_.words_[made.vocabulary_.unknown_id_] == unknown
    rare = [["a", "zebra"], ["zebra", "b"]]
    np.testing.assert_allclose(made.score_samples(rare), lm.score_samples(rare), 1e-5)


def test_mistakes_are_told():
    lm = trained()
    for classes, error, message in [
        ({}, ValueError, "there are no classes: give one"),
        ({"X": {"x": 1.0}}, ValueError, "none of the 1 classes, such as 'X'"),
        ({"A": {"B": 1.0}, "B": {"x": 1.0}}, ValueError, "'B', which is a class"),
        ({"A": {"A": 1.0}}, ValueError, "class 'A' has the word 'A', which is a"),
        ({"A": {"</s>": 1.0}}, ValueError, "class 'A' has '</s>', which marks"),
        ({"</s>": {"x": 1.0}}, ValueError, "'</s>' is a mark"),
        ({"<unk>": {"x": 1.0}}, ValueError, "'<unk>' is a mark"),
        ({"A": {"x": 0.0, "y": 1.0}}, ValueError, "'x' has the probability 0.0"),
        ({"A": {"x": 1.5}}, ValueError, "'x' has the probability 1.5 in class 'A'"),
        ({"A": {"x": float("nan")}}, ValueError, "'x' has the probability nan"),
        ({"A": {"x": 0.5, "y": 0.4}}, ValueError, "class 'A' sum to 0.9: they"),
        ({"A": {}}, ValueError, "class 'A' sum to 0: they"),
        ({"A": ["x"]}, TypeError, "classes has a list in place of a mapping"),
        ([("A", "x")], TypeError, "classes has a list in place of a mapping"),
    ]:
        with pytest.raises(error, match=message):
            expand_classes(lm, classes)
    for order in (0, 4, 1.5, 2.0):
        with pytest.raises(ValueError, match=f"order={order} must be from 1 to 3"):
            expand_classes(lm, ANIMALS, order=order)
