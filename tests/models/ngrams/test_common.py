"""Tests common to the n-gram models: scikit-learn's checks, bad windows, pickling."""

import pickle
from math import exp

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from nplm import InterpolatedTrigram, KneserNeyLM, windows
from tests.helpers import small_text, text

N_WORDS = 12


@small_text
@parametrize_with_checks(
    [
        KneserNeyLM(interpolate=False, min_counts=(1, 1, 2)),
        InterpolatedTrigram(order=None),
    ]
)
def test_estimator_passes_sklearn_checks(estimator, check):
    check(estimator)


@small_text
@pytest.mark.parametrize("model", [KneserNeyLM(), InterpolatedTrigram()])
def test_fit_is_deterministic_and_models_can_be_pickled(model):
    X, y = windows(text(500), 2)
    model = clone(model).set_params(n_words=N_WORDS).fit(X, y)
    again = clone(model).fit(X.copy(), y)
    restored = pickle.loads(pickle.dumps(model))
    for other in (again, restored):
        assert_array_equal(model.predict_proba(X), other.predict_proba(X))
        assert_array_equal(model.log_prob(X, y), other.log_prob(X, y))
    assert model.perplexity(X, y) == pytest.approx(exp(-model.score(X, y)))


@small_text
def test_grid_search_finds_the_order():
    """The last two words determine the next one, so the best order is 3."""
    ids = text(1500)
    for i in range(2, len(ids)):
        ids[i] = (ids[i] + 3 * ids[i - 1] + ids[i - 2]) % N_WORDS
    X, y = windows(ids, 3)
    lm = KneserNeyLM(n_words=N_WORDS)
    search = GridSearchCV(lm, {"order": [1, 2, 3, 4]}, cv=3).fit(X, y)
    assert search.best_params_ == {"order": 3}
    assert search.best_estimator_.order_ == 3
    lm.set_params(order=3)
    thirds = np.array_split(np.arange(len(y)), 3)  # contiguous folds
    scores = [
        clone(lm).fit(np.delete(X, part, 0), np.delete(y, part)).score(X[part], y[part])
        for part in thirds
    ]
    assert search.best_score_ == pytest.approx(np.mean(scores))


@small_text
@pytest.mark.parametrize("model", [KneserNeyLM(), InterpolatedTrigram()])
def test_invalid_windows_are_refused(model):
    X, y = windows(text(300), 2)
    model = clone(model)
    for bad, message in (
        (np.where(X == 3, -1, X), "X has -1 at row"),
        (X + 0.5, "not a whole number"),
        (np.where(X == 3, np.nan, X), "NaN"),
        (X[:0], "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(bad, y[: len(bad)])
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"n_words was inferred"):
        model.log_prob([[0, 1]], [N_WORDS + 5])
    with pytest.raises(ValueError, match="X_val and y_val go together"):
        model.fit(X, y, X_val=X)
