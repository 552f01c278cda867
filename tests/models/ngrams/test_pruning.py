"""Entropy pruning against its definition, evaluated one n-gram at a time."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import KneserNeyLM, windows

N_WORDS = 9


def fitted(order, n=1500, **parameters):
    ids = np.random.default_rng(0).zipf(1.6, size=n) % (N_WORDS - 1)
    X, y = windows(ids, order - 1, boundary=parameters.get("boundary"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return KneserNeyLM(n_words=N_WORDS, **parameters).fit(X, y), X, y


class Dictionary:
    """A back-off model in dictionaries, pruned as in the paper."""

    def __init__(self, trie):
        self.order, self.words = trie.order, range(trie.n_words)
        self.prob, self.bow = {}, {}
        for level in range(trie.order):
            own = trie.followers(level)
            self.prob |= zip(
                map(tuple, trie.ngrams(level).tolist()), trie.prob[own].tolist()
            )
            first, last = trie.level_start[level : level + 2]
            spelled = trie.context_words(np.arange(first, last), level)
            self.bow |= zip(map(tuple, spelled.tolist()), trie.bow[first:last].tolist())

    def p(self, context, word):
        if (*context, word) in self.prob:
            return self.prob[(*context, word)]
        return self.bow.get(context, 1) * self.p(context[1:], word)

    def probability(self, words):
        return math.prod(self.p(words[:i], w) for i, w in enumerate(words))

    def prune(self, threshold):
        for k in range(self.order, 1, -1):
            begun = {gram[:-1] for gram in self.prob if len(gram) == k + 1}
            contexts = {gram[:-1] for gram in self.prob if len(gram) == k}
            dropped = {}
            for c in contexts:
                before = [self.p(c, w) for w in self.words]
                seen = [w for w in self.words if (*c, w) in self.prob]
                if len(seen) == len(self.words):
                    continue
                for w in seen:
                    if (*c, w) in begun:
                        continue
                    rest = [v for v in seen if v != w]
                    after = self.distribution(c, rest)
                    loss = self.probability(c) * sum(
                        p * math.log(p / q) for p, q in zip(before, after)
                    )
                    if math.exp(loss) - 1 < threshold:
                        dropped.setdefault(c, set()).add(w)
            for c, words in dropped.items():
                seen = [w for w in self.words if (*c, w) in self.prob]
                self.bow[c] = self.weight(c, [w for w in seen if w not in words])
                for w in words:
                    del self.prob[(*c, w)]

    def weight(self, c, seen):
        mass = 1 - sum(self.prob[(*c, w)] for w in seen)
        return mass / (1 - sum(self.p(c[1:], w) for w in seen))

    def distribution(self, c, seen):
        weight = self.weight(c, seen)
        return [
            self.prob[(*c, w)] if w in seen else weight * self.p(c[1:], w)
            for w in self.words
        ]


@pytest.mark.parametrize("parameters", [{}, {"interpolate": False}, {"boundary": 1}])
@pytest.mark.parametrize("threshold", [1e-6, 1e-4, 1e-2])
def test_pruning_agrees_with_its_definition(parameters, threshold):
    model, X, _ = fitted(3, **parameters)
    expected = Dictionary(model.trie_)
    n_before = model.n_ngrams_.copy()
    expected.prune(threshold)
    assert model.prune(threshold) is model
    sizes = [sum(len(g) == k for g in expected.prob) for k in (1, 2, 3)]
    assert_array_equal(model.n_ngrams_, sizes)
    if threshold > 1e-6:
        assert (model.n_ngrams_[1:] < n_before[1:]).any()
    contexts = X[:40]
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    rows = []
    for x in contexts.tolist():
        if parameters.get("boundary") in x:
            x = x[1:] if x[1] == 1 else x
        rows.append([expected.p(tuple(x), w) for w in range(N_WORDS)])
    assert_allclose(proba, rows, rtol=1e-4)


def test_threshold_0_prunes_nothing_and_invalid_ones_are_refused():
    model, X, y = fitted(3)
    before = model.log_prob(X, y)
    assert_array_equal(model.prune(0).log_prob(X, y), before)
    for bad in (-1, np.nan, "much", np.inf):
        with pytest.raises(ValueError, match="threshold must be 0 or more, got"):
            model.prune(bad)
    model.prune(1e6).prune(1e6)
    assert model.n_ngrams_.tolist() == [N_WORDS, 0, 0]


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
@pytest.mark.parametrize("interpolate", [True, False])
@pytest.mark.parametrize("order", [3, 5, 8])
@pytest.mark.parametrize("threshold", [1e-5, 1e-3, 1e-2])
def test_pruned_model_is_normalised(order, interpolate, threshold):
    # Including contexts that lost no n-gram, but back off to one that did.
    ids = np.random.default_rng(0).zipf(1.5, 3000) % 20
    model = KneserNeyLM(order, n_words=20, interpolate=interpolate).fit_stream(ids)
    model.prune(threshold)
    X = np.random.default_rng(1).integers(0, 20, (300, order - 1))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-6)
