"""AutoLM of windows of ids."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from nplm import AutoLM, KneserNeyLM, windows
from tests.helpers import markov_stream
from tests.helpers.auto import NGRAMS, SMALL, TEXTS

pytestmark = pytest.mark.usefixtures("simulated_clock")
X, Y = windows(markov_stream(4000), 3)


def test_windows_have_the_n_grams_of_their_rows():
    y = Y
    order = np.random.default_rng(0).permutation(len(y))
    for rows in (slice(None), order):  # one text, and a text of each row
        lm = AutoLM(0.1, n_words=30, settings=NGRAMS)
        lm.fit(X[rows], y[rows], X_val=X[:99], y_val=y[:99])
        expected = KneserNeyLM(4, n_words=30, discount_fallback=(0.5, 1.0, 1.5))
        expected.fit(X[rows], y[rows])
        log_prob = expected.log_prob(X, y)
        np.testing.assert_allclose(lm.score_samples(X, y), log_prob)
        assert lm.score(X, y) == pytest.approx(log_prob.mean())
    assert lm.next_words([1, 2], k=3)
    with pytest.raises(ValueError, match="n-grams of order 4 need 3: make wider"):
        lm.score(X[:, :2], y)
    with pytest.raises(TypeError, match="sample_weight is for documents"):
        lm.score(X, y, np.ones(len(y)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(y=Y[:-1]), "inconsistent numbers of samples"),
        (dict(X=X[:0], y=Y[:0]), r"X, of shape \(0, 3\), has no window"),
        (dict(X=X[:, :0]), r"X, of shape \(\d+, 0\), has no window"),
        (dict(X_val=X[:0], y_val=Y[:0]), r"X_val, of shape \(0, 3\), has no window"),
        (dict(X_val=X), "X_val and y_val go together"),
        (dict(y_val=Y), "X_val and y_val go together"),
        (dict(X_val=X[:, 1:], y_val=Y), "X_val has 2 columns, and X has 3"),
        (dict(X_val=X - X.max(), y_val=Y), r"X_val has -\d+ at"),
        (dict(X=TEXTS, y=None, X_val=TEXTS, y_val=Y), "y_val is for windows"),
        (dict(sample_weight=np.ones(len(Y))), "sample_weight is for documents"),
    ],
)
def test_invalid_windows_are_refused(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AutoLM(0.1, n_words=30, settings=NGRAMS).fit(**dict(X=X, y=Y) | changes)


def test_windows_have_a_network_that_reads_them_as_a_text():
    X, y = windows(markov_stream(12_000), 3)
    lm = AutoLM(0.1, n_words=20, settings=SMALL | {"members": ["network"]})
    lm.fit(X[:9000], y[:9000])
    assert lm.estimator_.n_memory
    # It knows most of what n-grams know, which know it all; nothing is -3.0 nats.
    ngrams = KneserNeyLM(2, n_words=20, discount_fallback=(0.5, 1.0, 1.5))
    ngrams.fit(X[:9000], y[:9000])
    assert lm.score(X[9000:], y[9000:]) > ngrams.score(X[9000:], y[9000:]) - 0.6
    order = np.random.default_rng(0).permutation(9000)
    lm.fit(X[order], y[order])
    assert not lm.estimator_.n_memory
    assert lm.score(X[9000:], y[9000:]) > ngrams.score(X[9000:], y[9000:]) - 0.6


def test_windows_are_searched_and_cross_validated():
    X, y = windows(markov_stream(3000), 3)
    grid = {"settings": [NGRAMS | {"ngram_order": n} for n in (1, 2)]}
    search = GridSearchCV(AutoLM(0.05, n_words=20), grid, cv=2).fit(X, y)
    assert search.best_params_["settings"]["ngram_order"] == 2
    scores = cross_val_score(AutoLM(0.05, n_words=20, settings=NGRAMS), X, y, cv=2)
    assert (scores > np.log(1 / 20)).all()


def test_cache_adapts_to_the_words_before_windows():
    random = np.random.default_rng(0)
    X, y = windows(np.repeat(random.integers(1, 200, 600), 8), 1)
    settings = NGRAMS | {"ngram_order": 1}
    fixed = AutoLM(0.1, settings=settings).fit(X[:4000], y[:4000])
    lm = AutoLM(0.1, settings=settings, adapt=True).fit(X[:4000], y[:4000])
    assert lm.recipe_.members == ("ngrams", "cache")
    assert lm.score(X[4000:], y[4000:]) > fixed.score(X[4000:], y[4000:]) + 0.7
