"""ClassLM, compared with an implementation by dictionaries."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import ClassLM, KneserNeyLM, WordClasses, windows
from tests.helpers import text

# Discounts cannot be estimated from a text of few words.
pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 14
LABELS = np.arange(N_WORDS) % 4


@pytest.mark.parametrize("order", [2, 3, 4])
def test_probabilities_equal_a_dictionary_implementation(order):
    X, y = windows(text(800), 3)
    model = ClassLM(order, n_words=N_WORDS, classes=LABELS, uniform_weight=0.1)
    model.fit(X, y)
    nearest = X[:, 3 - (order - 1) :]
    over_classes = KneserNeyLM(n_words=4).fit(LABELS[nearest], LABELS[y])
    words, classes = Counter(y.tolist()), Counter(LABELS[y].tolist())
    contexts = X[:40]
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    of_class = over_classes.predict_proba(LABELS[nearest[:40]])
    for row in range(len(contexts)):
        expected = [
            0.9 * of_class[row, LABELS[w]] * words[w] / classes[LABELS[w]]
            + 0.1 / N_WORDS
            for w in range(N_WORDS)
        ]
        assert_allclose(proba[row], expected, rtol=1e-6)
    assert model.n_parameters_ == over_classes.n_parameters_ + 2 * N_WORDS + 1


@settings(max_examples=15)
@given(
    st.integers(8, 300),
    st.integers(1, 10),
    st.integers(2, 4),
    st.integers(1, 12),
    st.booleans(),
    st.integers(0, 2**16),
)
def test_probabilities_sum_to_one(n_tokens, n_words, order, n_classes, held_out, seed):
    X, y = windows(text(n_tokens, seed, n_words), 3)
    model = ClassLM(order, n_classes=n_classes, n_words=n_words + 1, random_state=0)
    if held_out:
        model.fit(X, y, X_val=X[::2], y_val=y[::2])
    else:
        model.fit(X, y)
    rng = np.random.default_rng(seed)
    contexts = np.concatenate([X, rng.permuted(X, axis=0), np.full((1, 3), n_words)])
    proba = model.predict_proba(contexts)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    words = rng.integers(n_words + 1, size=len(contexts))
    with np.errstate(divide="ignore"):
        expected = np.log(proba[np.arange(len(words)), words])
    assert_allclose(model.log_prob(contexts, words), expected, rtol=1e-5, atol=1e-6)


def test_words_within_classes_sum_to_one():
    X, y = windows(text(500), 2)
    # Class 4 does not occur: its words have equal shares.
    labels = np.concatenate([LABELS[:12], [4, 4]])
    model = ClassLM(n_words=N_WORDS, classes=labels).fit(X, y)
    assert_allclose(np.bincount(labels, model.word_proba_), 1)
    assert model.word_proba_[12:].tolist() == [0.5, 0.5]


def test_uniform_weight_is_the_best_on_held_out_windows():
    X, y = windows(text(600), 2)
    X_val, y_val = windows(text(300, seed=1, n_words=N_WORDS), 2)
    model = ClassLM(n_words=N_WORDS, classes=LABELS)
    learned = model.fit(X, y, X_val=X_val, y_val=y_val)
    weight, best = learned.uniform_weight_, learned.score(X_val, y_val)
    assert 0 < weight < 1
    for other in (weight * 0.9, weight * 1.1):
        model.set_params(uniform_weight=other).fit(X, y, X_val=X_val, y_val=y_val)
        assert model.score(X_val, y_val) < best


def test_uniform_weight_without_held_out_windows():
    X, y = windows([0, 1, 0, 1, 2, 0, 1, 0, 3, 0, 1], 1)
    model = ClassLM(n_words=6, classes=[0, 1, 1, 1, 1, 0]).fit(X, y)
    assert model.uniform_weight_ == 2 / 10  # words 2 and 3 are seen once
    assert np.isfinite(model.log_prob([[0], [0]], [4, 5])).all()


def test_fitted_classes_and_their_labels_agree():
    ids = text(1000)
    X, y = windows(ids, 2)
    classes = WordClasses(4, n_words=N_WORDS, max_iter=10, random_state=0).fit(ids)
    expected = ClassLM(n_words=N_WORDS, classes=classes.labels_.tolist()).fit(X, y)
    for source in (classes, FrozenEstimator(classes)):
        model = ClassLM(n_words=N_WORDS, classes=source).fit(X, y)
        assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    frozen = clone(model).fit(X, y)
    assert_array_equal(frozen.labels_, classes.labels_)
    # A clone is unfitted, so it is fitted to the windows.
    again = ClassLM(n_words=N_WORDS, classes=clone(classes)).fit(X, y)
    found = clone(classes).fit_pairs(X[:, -1], y)
    assert_array_equal(again.labels_, found.labels_)
    found = ClassLM(n_classes=4, n_words=N_WORDS, random_state=0).fit(X, y)
    restored = pickle.loads(pickle.dumps(found))
    assert_array_equal(found.log_prob(X, y), restored.log_prob(X, y))


def test_boundary_ends_the_contexts():
    X, y = windows(text(1000), 3, boundary=0)
    model = ClassLM(n_classes=4, n_words=N_WORDS, boundary=0, random_state=0).fit(X, y)
    assert model.class_model_.boundary == model.labels_[0]
    assert np.count_nonzero(model.labels_ == model.labels_[0]) == 1
    after_mark = model.predict_proba([[1, 2, 0], [5, 5, 0]])
    assert_array_equal(after_mark[0], after_mark[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 1}, "order=1 is a model without context"),
        ({"n_classes": 0}, "'n_classes' .* must be an int .* Got 0"),
        ({"classes": [0, 1]}, "a class for 2 words, but n_words=14"),
        ({"classes": [-1] * 14}, "classes has -1 at 0"),
        ({"boundary": 0, "classes": [0] * 14}, "the class of the boundary, 0, has"),
        ({"boundary": 14, "classes": [0] * 14}, "boundary must be .* 0 to 13 .*got 14"),
        ({"boundary": True}, "'boundary' .* must be an int .* Got True"),
        ({"boundary": 14}, "boundary must be None or a word id from 0 to 13"),
        ({"uniform_weight": 1.5}, r"'uniform_weight' .* \[0.0, 1.0\] or None. Got 1.5"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = windows(text(100), 2)
    with pytest.raises(ValueError, match=message):
        ClassLM(n_words=N_WORDS).set_params(**parameters).fit(X, y)


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_classes_are_numbered_without_gaps():
    ids = np.random.default_rng(0).zipf(1.5, 2000) % 10
    X, y = windows(ids, 2)
    labels = np.arange(10) % 4 * 10**8  # labels with gaps, as of another tool
    message = r"has class 100000000 but no word of class 1: .*np.unique\(classes, ret"
    with pytest.raises(ValueError, match=message):
        ClassLM(n_words=10, classes=labels).fit(X, y)
    # What the message advises:
    classes = np.unique(labels, return_inverse=True)[1]
    assert ClassLM(n_words=10, classes=classes).fit(X, y).n_classes_ == 4
