"""Entropy pruning against its definition, evaluated one n-gram at a time."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nplm import KneserNeyLM
from nplm.formats import write_arpa
from tests.helpers.arpa import fitted, with_unseen
from tests.helpers.ngrams import DictionaryBackoff

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 9


class Pruned(DictionaryBackoff):
    """A back-off model in dictionaries, pruned as in the paper."""

    def probability(self, words):
        return math.prod(self.p(words[:i], w) for i, w in enumerate(words))

    def prune(self, threshold):
        for k in range(max(map(len, self.prob)), 1, -1):
            # The contexts of the longer n-grams that remain, and their ends.
            needed = {gram[-1 - k : -1] for gram in self.prob if len(gram) > k}
            contexts = {gram[:-1] for gram in self.prob if len(gram) == k}
            dropped = {}
            for c in contexts:
                before = [self.p(c, w) for w in self.words]
                seen = [w for w in self.words if (*c, w) in self.prob]
                if len(seen) == len(self.words):
                    continue
                for w in seen:
                    if (*c, w) in needed:
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
        # Contexts that lost no n-gram may back off to one that did.
        for c in sorted(self.bow, key=len):
            seen = [w for w in self.words if (*c, w) in self.prob]
            if c and len(seen) < len(self.words):
                self.bow[c] = self.weight(c, seen)

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
@pytest.mark.parametrize("order", [3, 4, 5])
def test_pruning_agrees_with_its_definition(order, parameters, threshold):
    model, X, y = fitted(order, n=1500, n_words=N_WORDS, **parameters)
    expected = Pruned(model.trie_)
    n_before = model.n_ngrams_.copy()
    expected.prune(threshold)
    assert model.prune(threshold) is model
    sizes = [sum(len(g) == k for g in expected.prob) for k in range(1, order + 1)]
    assert_array_equal(model.n_ngrams_, sizes)
    if threshold > 1e-6:
        assert (model.n_ngrams_[1:] < n_before[1:]).any()
    # Including contexts that lost no n-gram, but back off to one that did.
    contexts = with_unseen(X, y)[0][::40]
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    rows = []
    for x in contexts.tolist():
        boundary = parameters.get("boundary")
        while boundary in x[1:]:
            x = x[1:]
        rows.append([expected.p(tuple(x), w) for w in range(N_WORDS)])
    assert_allclose(proba, rows, rtol=1e-4)


def test_threshold_0_prunes_nothing_and_invalid_ones_are_refused():
    model, X, y = fitted(3, n=1500, n_words=N_WORDS)
    before = model.log_prob(X, y)
    assert_array_equal(model.prune(0).log_prob(X, y), before)
    for bad in (-1, np.nan, "much", np.inf):
        with pytest.raises(ValueError, match="threshold must be 0 or more, got"):
            model.prune(bad)
    model.prune(1e6).prune(1e6)
    assert model.n_ngrams_.tolist() == [N_WORDS, 0, 0]


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_lines_of_pruned_models_have_the_probabilities_before(tmp_path):
    ids = np.random.default_rng(0).zipf(1.4, 6000) % 30
    model = KneserNeyLM(5, n_words=30, boundary=0)
    model.fit_stream([line[line > 0] for line in np.split(ids, 600)])
    words = ["</s>", *(f"w{i}" for i in range(1, 30))]
    lines = {}
    for name in ("whole", "pruned"):
        write_arpa(model, tmp_path / name, words)
        rows = [line.split("\t") for line in (tmp_path / name).read_text().split("\n")]
        lines[name] = {row[1]: float(row[0]) for row in rows if len(row) > 1}
        model.prune(1e-4)
    assert len(lines["pruned"]) < len(lines["whole"]) / 2
    assert {gram: lines["whole"][gram] for gram in lines["pruned"]} == lines["pruned"]
