"""scikit-learn's own checks of classifiers and outlier detectors.

They are of tables of numbers, and the tags of both say that X is no table: scikit-learn
then leaves out all checks but one. Here the rows of its tables are documents, and their
numbers, rounded, are events.
"""

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from nplm import InterpolatedTrigram, LMClassifier, LMDetector, TextLM, Vocabulary
from tests.helpers import neural_lm


class OfRows:
    """Let scikit-learn pass tables, whose rows are documents."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.categorical = True
        return tags


class RowClassifier(OfRows, LMClassifier):
    pass


class RowDetector(OfRows, LMDetector):
    pass


def of_events(estimator):
    return TextLM(estimator, 2, vocabulary=Vocabulary())


def expected_failures(estimator):
    failures = {
        "check_classifier_data_not_an_array": "documents are a sequence, and an object "
        "that has only __array__ is none",
    }
    if isinstance(estimator, LMDetector):
        failures["check_outliers_train"] = (
            "predict takes rows of another length, which are documents too; "
            "test_lm_detector.py has the rest of this check"
        )
        failures["check_outliers_fit_predict"] = (
            "contamination is the share of documents that the model was not fitted on; "
            "among those of the fit there are fewer or more"
        )
    return failures


# The scores of rows by a network are distinct, so that a share of them is below any.
NETWORK = neural_lm(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)


@pytest.mark.slow
@parametrize_with_checks(
    [RowClassifier(of_events(InterpolatedTrigram(2))), RowDetector(of_events(NETWORK))],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [LMClassifier, LMDetector])
def test_tags_say_that_documents_are_no_table(kind):
    estimator = kind(InterpolatedTrigram())
    tags = get_tags(estimator).input_tags
    assert (tags.two_d_array, tags.string) == (False, True)
    with pytest.warns(SkipTestWarning, match="requires input"):
        results = check_estimator(estimator)
    assert [own["status"] for own in results] == ["passed"]


def test_rows_of_another_length_are_documents_too():
    X = np.array([[1, 2, 3], [1, 2, 4]] * 9)
    detector = LMDetector(of_events(InterpolatedTrigram(2))).fit(X)
    scores = detector.score_samples(X.T)
    np.testing.assert_array_equal(detector.predict(X.T), np.where(
        scores < detector.offset_, -1, 1))  # fmt: skip
