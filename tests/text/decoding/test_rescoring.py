"""Rescorer: the weights that a metric prefers."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import nplm
from nplm import Rescorer, TextLM
from nplm.text.decoding.rescoring import _changes
from tests.helpers import small_text
from tests.helpers.decoding import WORDS, models, sentences

pytestmark = small_text
NUMBERS = st.sampled_from(range(-9, 10))


def errors(references, texts):
    """Return the share of texts that are wrong."""
    return sum(a != b for a, b in zip(references, texts)) / len(texts)


def word_errors(references, texts):
    """Return the share of words that are wrong, in texts of the same length."""
    pairs = [(a.split(), b.split()) for a, b in zip(references, texts)]
    wrong = sum(x != y for a, b in pairs for x, y in zip(a, b))
    return wrong / sum(len(a) for a, _ in pairs)


def n_best(texts, seed, n=12):
    """Return lists of texts with a word replaced, and scores that mislead."""
    rng = np.random.default_rng(seed)
    lists = []
    for text in texts:
        found = {text: rng.normal(1.0)}
        while len(found) < n:
            words = text.split()
            words[rng.integers(len(words))] = rng.choice(WORDS)
            found[" ".join(words)] = rng.normal()
        lists.append(list(found.items()))
    return lists


@pytest.fixture(scope="module")
def lists():
    return [(n_best(texts, seed), texts) for seed, texts in
            ((3, sentences(60, 3)), (4, sentences(60, 4)))]  # fmt: skip


class ScoresOf:
    """A language model with given scores."""

    def __init__(self, scores):
        self.scores = scores

    def score_many(self, texts):
        return np.array([self.scores[text] for text in texts])


@pytest.mark.parametrize("name", ["n-grams", "network"])
def test_tuned_weights_make_fewer_errors(lists, name):
    (dev, dev_texts), (test, test_texts) = lists
    rescorer = Rescorer(models()[name], metric=word_errors).fit(dev, dev_texts)
    assert rescorer.metric_value_ == word_errors(dev_texts, rescorer.predict(dev))
    alone = [max(own, key=lambda pair: pair[1])[0] for own in test]
    assert rescorer.lm_weight_ > 0
    found = -rescorer.score(test, test_texts)
    assert found < 0.85 * word_errors(test_texts, alone)


def test_totals_order_the_texts(lists):
    """By hand; the saved rescorer has the same bits."""
    [(dev, dev_texts), (test, _)] = lists
    lm = models()["n-grams"]
    rescorer = Rescorer(lm, metric=word_errors).fit(dev, dev_texts)
    totals = rescorer.totals(test)
    for candidates, of_list in zip(test, totals):
        texts, own = zip(*candidates)
        added = rescorer.lm_weight_ * lm.score_samples(texts)
        words = rescorer.length_weight_ * np.array([len(t.split()) for t in texts])
        np.testing.assert_allclose(of_list, own + added + words)
    best = [own[of_list.argmax()][0] for own, of_list in zip(test, totals)]
    assert rescorer.predict(test) == best


def test_a_rescorer_with_a_metric_that_is_a_function_is_not_saved(lists, tmp_path):
    (dev, dev_texts), _ = lists
    rescorer = Rescorer(models()["n-grams"], metric=word_errors).fit(dev, dev_texts)
    with pytest.raises(TypeError, match=r"does not support Rescorer\.params\.metric"):
        nplm.save(rescorer, tmp_path / "rescorer")


def test_scale_of_own_scores_does_not_matter(lists):
    (dev, texts), _ = lists
    large = [[(text, 1000 * score) for text, score in own] for own in dev]
    settings = dict(lm=models()["n-grams"], metric=errors, weight_length=False)
    small_scores, large_scores = (
        Rescorer(**settings).fit(own, texts) for own in (dev, large)
    )
    assert small_scores.predict(dev) == large_scores.predict(large)
    ratio = large_scores.lm_weight_ / small_scores.lm_weight_
    assert ratio == pytest.approx(1000)


def test_length_weight_is_tuned_where_long_texts_are_right():
    lists = [[("a", -1.0), ("a b", -1.5)], [("b", -2.0), ("b a", -2.2)]]
    lm = ScoresOf({"a": -1.0, "a b": -1.0, "b": -1.0, "b a": -1.0})
    texts = ["a b", "b a"]
    rescorer = Rescorer(lm, metric=errors).fit(lists, texts)
    assert rescorer.length_weight_ > 0.5
    assert rescorer.predict(lists) == texts
    rescorer.set_params(weight_length=False).fit(lists, texts)
    assert rescorer.length_weight_ == 0
    assert rescorer.metric_value_ == 1.0


def test_greater_metric_may_be_better():
    lists = [[("a", -1.0), ("b", -1.1)]]
    lm = ScoresOf({"a": -3.0, "b": -1.0})

    def right(references, texts):
        return float(references == texts)

    rescorer = Rescorer(lm, metric=right, greater_is_better=True).fit(lists, ["b"])
    assert rescorer.predict(lists) == ["b"]
    assert rescorer.score(lists, ["b"]) == rescorer.metric_value_ == 1.0


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_changes_are_where_the_best_line_changes(lines):
    own, slopes = np.array(lines, dtype=float).T
    features = np.array([own, slopes, np.zeros(len(own))])
    changes = _changes(features, [0.0, 0.0], 0)
    assert changes == sorted(changes)
    # The envelope at the ends and between the changes has one slope in each part.
    ends = [min(changes, default=0) - 1, *changes, max(changes, default=0) + 1]
    for left, right in pairwise(ends):
        values = [(own + w * slopes).max() for w in (left, (left + right) / 2, right)]
        assert 2 * values[1] == pytest.approx(values[0] + values[2], abs=1e-9)
    steps = np.diff([(own + w * slopes).max() for w in np.linspace(-50, 50, 5)])
    assert len(changes) == 0 or steps[0] < steps[-1]


@pytest.mark.slow
def test_word_error_rate_and_bleu_are_those_of_the_packages(lists):
    jiwer = pytest.importorskip("jiwer", reason="needs jiwer")
    sacrebleu = pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    (dev, texts), _ = lists
    rescorer = Rescorer(models()["n-grams"]).fit(dev, texts)
    assert -rescorer.score(dev, texts) == jiwer.wer(texts, rescorer.predict(dev))
    rescorer = Rescorer(models()["n-grams"], metric="bleu").fit(dev, texts)
    bleu = sacrebleu.corpus_bleu(rescorer.predict(dev), [texts]).score
    assert rescorer.score(dev, texts) == rescorer.metric_value_ == bleu


@pytest.mark.parametrize(
    ("metric", "package"), [("wer", "jiwer"), ("bleu", "sacrebleu")]
)
def test_missing_package_is_named(monkeypatch, lists, metric, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        Rescorer(models()["n-grams"], metric=metric).fit(*lists[0])


def test_lists_of_words_are_rescored():
    lm = TextLM(models()["n-grams"].estimator, 2).fit([["a", "b"], ["a", "b"]] * 9)
    lists = [[(["b", "b"], -1.0), (["a", "b"], -1.1)]]
    rescorer = Rescorer(lm.scorer(), metric=errors).fit(lists, [["a", "b"]])
    assert rescorer.predict(lists) == [["a", "b"]]


def test_invalid_lists_are_refused():
    rescorer = Rescorer(models()["n-grams"], metric=errors)
    with pytest.raises(ValueError, match="2 n-best lists and y 1 references"):
        rescorer.fit([[("a", 0.0)], [("b", 0.0)]], ["a"])
    with pytest.raises(ValueError, match=r"X\[1\] is empty"):
        rescorer.fit([[("a", 0.0)], []], ["a", "b"])
    with pytest.raises(ValueError, match="no n-best list"):
        rescorer.fit([], [])
    for wrong in ("a", ("a",), ("a", None), (0.0, "a b")):
        with pytest.raises(ValueError, match=r"X\[0\] has .* pairs of a text"):
            rescorer.fit([[wrong]], ["a"])
    for score in (float("nan"), float("-inf")):
        with pytest.raises(ValueError, match=r"X\[0\] has .* must be finite"):
            rescorer.fit([[("a", score), ("b", 0.0)]], ["a"])
    rescorer.fit([[("a", 0.0)]], ["a"])
    with pytest.raises(ValueError, match="1 n-best lists and y 2 references"):
        rescorer.score([[("a", 0.0)]], ["a", "b"])
    assert clone(rescorer, safe=False).metric is errors
