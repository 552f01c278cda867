"""LMDetector is an outlier detector of scikit-learn's over a language model."""

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import nplm
from nplm import InterpolatedTrigram, LMDetector, TextLM, Vocabulary
from tests.helpers import neural_lm

USUAL = [
    ["login", "read", "logout"],
    ["login", "read", "read", "logout"],
    ["login", "edit", "save", "read", "logout"],
] * 20
# Of the same events, each in an order of its own.
RNG = np.random.default_rng(0)
ODD = [
    RNG.choice(["login", "read", "edit", "save", "logout"], size=n).tolist()
    for n in [4, 5, 6, 7] * 3
]
SESSIONS = [*USUAL, *ODD]
LABELS = np.r_[np.ones(len(USUAL)), -np.ones(len(ODD))].astype(int)
TRIGRAM = InterpolatedTrigram()


@pytest.fixture(scope="module", params=["mean", "sum", "min"])
def detector(request):
    return LMDetector(TRIGRAM, aggregate=request.param).fit(USUAL)


def test_scores_are_aggregates_of_the_tokens(detector):
    """Against the log-probabilities of the tokens, one document at a time."""
    aggregate = {"mean": np.mean, "sum": np.sum, "min": np.min}[detector.aggregate]
    wanted = [
        aggregate(scores.log_prob)
        for scores in detector.estimator_.token_scores(SESSIONS)
    ]
    scores = detector.score_samples(SESSIONS)
    np.testing.assert_allclose(scores, wanted)
    decision = detector.decision_function(SESSIONS)
    np.testing.assert_allclose(decision, scores - detector.offset_)
    np.testing.assert_array_equal(
        detector.predict(SESSIONS), np.where(decision < 0, -1, 1)
    )
    assert is_outlier_detector(detector)


def test_area_under_the_curve_is_scored_in_cross_validation():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(
        LMDetector(TRIGRAM, aggregate="min"), SESSIONS, LABELS, cv=folds,
        scoring="roc_auc",
    )  # fmt: skip
    assert (scores > 0.9).all()  # NaN if the detector had no decision_function


@pytest.mark.parametrize("contamination", [0.01, 0.1, 0.25, 0.5])
def test_contamination_is_the_share_below_the_threshold(contamination):
    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, size=(200, 6)).clip(max=500)
    detector = LMDetector(TRIGRAM, contamination=contamination)
    found = detector.fit_predict(words.tolist())
    assert (found == -1).sum() == pytest.approx(200 * contamination, abs=1)
    held_out = rng.zipf(1.3, size=(200, 6)).clip(max=499).tolist()
    found = detector.fit([*words.tolist(), [500]], X_val=held_out).predict(held_out)
    assert (found == -1).sum() == pytest.approx(200 * contamination, abs=1)


def test_a_long_document_is_no_outlier_per_token():
    short, long = ["login", "read", "logout"], ["login", *["read"] * 40, "logout"]
    scores = {
        aggregate: LMDetector(TRIGRAM, aggregate=aggregate)
        .fit([*USUAL, long]).score_samples([short, long])
        for aggregate in ("mean", "sum")
    }  # fmt: skip
    assert scores["sum"][1] < scores["sum"][0] - 5
    assert abs(scores["mean"][1] - scores["mean"][0]) < 1


def test_a_document_without_tokens_scores_0():
    lm = TextLM(TRIGRAM, predict_boundary=False)
    for aggregate in ("mean", "sum", "min"):
        detector = LMDetector(lm, aggregate=aggregate).fit(USUAL)
        assert detector.score_samples([[], ["login"]])[0] == 0


def test_impossible_documents_are_outliers_without_nan():
    detector = LMDetector(TRIGRAM).fit(USUAL)
    scores = np.array([-np.inf, -np.inf, -1.0, -2.0])
    detector._score_samples = lambda X: scores
    detector.offset_ = -np.inf
    assert detector.decision_function(scores).tolist() == [0, 0, np.inf, np.inf]
    detector.offset_ = -1.5
    assert detector.predict(scores).tolist() == [-1, -1, 1, -1]


def test_a_frozen_model_is_used_as_it_is():
    lm = TextLM(TRIGRAM).fit(USUAL)
    detector = LMDetector(FrozenEstimator(lm)).fit(ODD)
    assert detector.estimator_ is lm
    np.testing.assert_allclose(
        detector.score_samples(ODD), -np.log(lm.perplexity(ODD, per_document=True))
    )


def test_held_out_documents_reach_the_model():
    network = neural_lm(n_hidden=4, embedding_dim=3, max_iter=3, random_state=0)
    detector = LMDetector(TextLM(network, 2)).fit(USUAL, X_val=USUAL[:9])
    assert np.isfinite(detector.estimator_.estimator_.val_loss_)


def test_pipelines_end_in_it():
    chain = make_pipeline(Vocabulary(), LMDetector(TRIGRAM)).fit(USUAL)
    alone = LMDetector(TRIGRAM).fit(USUAL)
    np.testing.assert_allclose(chain.score_samples(ODD), alone.score_samples(ODD))
    auc = roc_auc_score(LABELS, chain.decision_function(SESSIONS))
    assert auc > 0.9


def test_saved_detector_is_restored(tmp_path, detector):
    nplm.save(detector, tmp_path / "detector")
    loaded = nplm.load(tmp_path / "detector")
    assert vars(loaded).keys() == vars(detector).keys()
    assert loaded.offset_ == detector.offset_
    np.testing.assert_array_equal(
        loaded.decision_function(SESSIONS), detector.decision_function(SESSIONS)
    )
    clone(loaded).fit(USUAL)


def test_errors_say_what_to_pass():
    for options, message in [
        ({"contamination": 0.6}, "contamination"),
        ({"contamination": 0}, "contamination"),
        ({"aggregate": "median"}, "aggregate"),
    ]:
        with pytest.raises(ValueError, match=message):
            LMDetector(TRIGRAM, **options).fit(USUAL)
    with pytest.raises(TypeError, match="estimator must be a TextLM, or a language"):
        LMDetector(Vocabulary()).fit(USUAL)
    for documents, held_out, message in [
        (iter(USUAL), None, "^X must be a list"),
        (USUAL, iter(USUAL), "^X_val must be a list"),
        (USUAL, [None], r"^X_val\[0\] is missing"),
    ]:
        with pytest.raises(TypeError, match=message):
            LMDetector(TRIGRAM).fit(documents, X_val=held_out)
