"""Class models and mixtures on real corpora, against the toolkits' figures."""

import pytest
from sklearn.frozen import FrozenEstimator

from nplm import ClassLM, KneserNeyLM, MixtureLM, UniformLM, WordClasses
from tests.helpers import published_corpus

pytestmark = pytest.mark.corpora


@pytest.fixture(scope="module")
def brown():
    data = published_corpus("brown")
    classes = WordClasses(150, n_words=data.n_words, random_state=0).fit(data.train)
    return data, data.windows(4), classes


def test_brown_classes(brown):
    """mkcls, the reference, has 1.0571 nats in 26.2 s, brown-cluster 1.0168."""
    assert brown[2].mutual_information_ > 1.0571


def test_brown_class_trigram(brown):
    """The classes of mkcls give 301.2, uniform part included."""
    data, (train, valid, test), classes = brown
    model = ClassLM(3, n_words=data.n_words, classes=classes)
    model.fit(*train, X_val=valid[0], y_val=valid[1])
    assert model.perplexity(*test) < 301.2


def test_brown_mixture(brown):
    """The classes of mkcls give 254.3 (learned weights)."""
    data, (train, valid, test), classes = brown
    held_out = dict(zip(("X_val", "y_val"), valid))
    members = [
        ("kn", FrozenEstimator(KneserNeyLM(n_words=data.n_words).fit(*train))),
        ("classes", ClassLM(3, n_words=data.n_words, classes=classes.labels_)),
    ]
    figures = {}
    for weights in ("learned", "context"):
        mix = MixtureLM(members, weights, include_uniform=True)
        figures[weights] = mix.fit(*train, **held_out).perplexity(*test)
    assert figures["context"] < figures["learned"] < 254.3
    # A uniform distribution over unseen words is better still.
    unseen = UniformLM("unseen", n_words=data.n_words)
    mix = MixtureLM([*members, ("unseen", unseen)], "context").fit(*train, **held_out)
    assert mix.perplexity(*test) < figures["context"] - 3
