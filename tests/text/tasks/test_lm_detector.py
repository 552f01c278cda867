"""LMDetector is an outlier detector of scikit-learn's over a language model."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from nplm import InterpolatedTrigram, KneserNeyLM, LMDetector, TextLM, Vocabulary
from tests.helpers import neural_lm, pairwise, published_corpus

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


@pytest.mark.parametrize("kind", ["tokens", "text", "ids", "cells"])
def test_explanation_has_the_least_probable_tokens_and_what_was_expected(kind):
    """Against the scores of the tokens, and `next_words` after those before them."""
    texts = [
        "log in , read it , log out",
        "log in , log out",
        "log in , read , out",
    ] * 9
    odd = "log in , delete it , it"
    estimator, params = InterpolatedTrigram(), {}
    if kind == "cells":
        estimator = neural_lm(2, n_memory=4, n_hidden=4, max_iter=1, random_state=0)
    if kind in ("tokens", "ids"):
        texts, odd = [t.split() for t in texts], odd.split()
    if kind == "ids":
        numbers = {"log": 1, "in": 2, ",": 3, "read": 4, "it": 5, "out": 6, "delete": 7}
        texts, odd = [[numbers[w] for w in t] for t in texts], [numbers[w] for w in odd]
        params = {"estimator": estimator.set_params(n_words=8)}
    detector = LMDetector(TextLM(estimator)).set_params(**params).fit(texts)
    lm = detector.estimator_
    [scores] = lm.token_scores([odd])
    tokens = odd.split() if isinstance(odd, str) else odd
    found = detector.explain(odd, n=20, k=2)
    assert len(found) == len(tokens) + 1
    order = np.argsort(scores.log_prob, kind="stable")
    assert [token.position for token in found] == order.tolist()
    for i, token, log_prob, unknown, expected, proba in found:
        assert log_prob == pytest.approx(scores.log_prob[i], rel=1e-6)
        assert token == [*tokens, 0 if kind == "ids" else "</s>"][i]
        assert unknown == (kind != "ids" and token == "delete")
        before = tokens[:i] if isinstance(odd, list) else " ".join(tokens[:i])
        words, wanted = lm.next_words(before, 2, unknown=True)
        assert list(expected) == list(words)
        np.testing.assert_allclose(proba, wanted, rtol=1e-6)
    assert [o[:4] for o in detector.explain(odd, n=1)] == [found[0][:4]]
    for wrong in ({"n": 0}, {"k": 0}):
        with pytest.raises(ValueError, match="must be >= 1"):
            detector.explain(odd, **wrong)
    with pytest.raises(TypeError, match="n must be an instance of int"):
        detector.explain(odd, n=1.5)


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
    words = rng.zipf(1.3, size=(200, 6)).clip(max=500).tolist()
    held_out = rng.zipf(1.3, size=(200, 6)).clip(max=499).tolist()
    detector = LMDetector(TRIGRAM, contamination=contamination)
    lm = TextLM(TRIGRAM).fit([*words, [500]])
    for found in (
        detector.fit([*words, [500]], X_val=held_out).predict(held_out),
        clone(detector).set_params(estimator=FrozenEstimator(lm)).fit_predict(held_out),
    ):
        assert (found == -1).sum() == pytest.approx(200 * contamination, abs=1)


class Counting(InterpolatedTrigram):
    """A model that keeps how many windows each fit had."""

    sizes: ClassVar[list[int]] = []

    def fit(self, X, y=None, **others):
        self.sizes.append(len(y))
        return super().fit(X, y, **others)


@pytest.mark.slow
def test_the_threshold_is_of_documents_that_the_model_has_not_seen():
    """By hand: the scores of the held-out part, or of ten or five parts in turn."""
    rng = np.random.default_rng(0)
    for n, options, n_fits in [
        (150, {}, 10), (400, {}, 5), (1000, {}, 1), (400, {"contamination": 0.5}, 1),
        (150, {"validation_fraction": 0.7}, 1), (2, {"contamination": 0.5}, 2),
    ]:  # fmt: skip
        X = rng.zipf(1.3, size=(n, 6)).clip(max=500).tolist()
        Counting.sizes.clear()
        detector = LMDetector(Counting(n_words=501), **options).fit(X)
        assert len(Counting.sizes) == n_fits
        order = np.random.RandomState(0).permutation(n)
        parts = np.array_split(order, n_fits) if n_fits > 1 else [
            order[: round(detector.validation_fraction * n)]
        ]  # fmt: skip
        scores = []
        for part in parts:
            others = [X[i] for i in range(n) if i not in set(part)]
            lm = TextLM(InterpolatedTrigram(n_words=501)).fit(others)
            scores += [
                np.mean(s.log_prob) for s in lm.token_scores([X[i] for i in part])
            ]
        share = detector.contamination
        assert detector.offset_ == pytest.approx(
            np.quantile(scores, share, method="higher")
        )
        np.testing.assert_allclose(
            detector.estimator_.score_samples(X), lm.score_samples(X)
        )


@pytest.fixture(scope="module")
def lines():
    """Lines of words, of which many are rare; each is about one of many things."""
    rng, found = np.random.default_rng(0), []
    for _ in range(9000):
        about = rng.integers(40)
        ids = rng.zipf(1.4, rng.integers(4, 20)).clip(max=3000)
        own = rng.random(len(ids)) < 0.3
        found.append([f"w{i}of{about}" if of else f"w{i}" for i, of in zip(ids, own)])
    return found


@pytest.mark.slow
@pairwise({"contamination": [0.02, 0.1], "n": [1200, 5500], "min_count": [1, 2]})
def test_false_alarms_on_new_documents_are_as_many_as_it_says(
    lines, contamination, n, min_count
):
    """Of parts in turn and of one, alone and after a vocabulary in a pipeline.

    A pipeline's vocabulary has seen the parts that are held out. With a `min_count`,
    there are fewer alarms, the fewer documents there are.
    """
    model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    words = Vocabulary(min_count)
    lm = TextLM(model, n_context=2, vocabulary=words)
    detector = LMDetector(lm, contamination=contamination)
    after = LMDetector(TextLM(model, n_context=2), contamination=contamination)
    chains = [detector, make_pipeline(words, after)]
    for chain in chains if min_count == 1 or n > 5000 else chains[:1]:
        alarms = (chain.fit(lines[:n]).predict(lines[n:]) == -1).mean()
        assert contamination / 2 < alarms < 2 * contamination


@pytest.mark.slow
@pytest.mark.parametrize(("contamination", "min_count"), [(0.02, 2), (0.1, 1)])
def test_false_alarms_by_the_least_probable_token_are_not_many_more(
    lines, contamination, min_count
):
    """Many documents have the same score, which depends on the size of the model.

    There may be fewer alarms than that: a threshold cannot divide equal scores. The
    mean of four fits, as a share of few documents differs by chance.
    """
    model = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))
    lm = TextLM(model, n_context=2, vocabulary=Vocabulary(min_count))
    detector = LMDetector(lm, contamination=contamination, aggregate="min")
    alarms = [
        np.mean(detector.fit(lines[start : start + 400]).predict(lines[4000:]) == -1)
        for start in range(0, 1600, 400)
    ]
    assert np.mean(alarms) < 2 * contamination


@pytest.mark.corpora
@pytest.mark.parametrize(("name", "contamination"), [("brown", 0.02), ("ptb", 0.1)])
def test_false_alarms_on_lines_of_corpora_are_as_many_as_it_says(name, contamination):
    corpus = published_corpus(name)
    lines = [
        corpus.words[ids[ids != corpus.boundary]].tolist()
        for ids in np.split(corpus.train[: 20 * 7000], 7000)
    ]
    np.random.default_rng(0).shuffle(lines)
    lm = TextLM(KneserNeyLM(3), n_context=2)
    detector = LMDetector(lm, contamination=contamination).fit(lines[:5000])
    alarms = (detector.predict(lines[5000:]) == -1).mean()
    assert contamination / 2 < alarms < 2 * contamination


def test_a_share_of_no_document_is_said_and_the_threshold_is_the_lowest_score():
    frozen = FrozenEstimator(TextLM(TRIGRAM).fit(USUAL))
    scores = frozen.estimator.perplexity(SESSIONS, per_document=True)
    few = LMDetector(frozen, contamination=1e-5)
    with pytest.warns(UserWarning, match=f"about 1 in {len(SESSIONS) + 1}"):
        few.fit(SESSIONS)
    assert few.offset_ == pytest.approx(-np.log(scores.max()))
    assert (few.predict(SESSIONS) == 1).all()
    one = LMDetector(frozen, contamination=1 / len(SESSIONS)).fit(SESSIONS)
    assert (one.predict(SESSIONS) == -1).sum() == 1


def test_a_checkpoint_is_of_the_model_that_is_kept(tmp_path):
    network = neural_lm(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)
    lm = TextLM(network, 2)
    once, again = (LMDetector(lm).fit(USUAL, checkpoint=tmp_path) for _ in "12")
    last = np.array_split(np.random.RandomState(0).permutation(len(USUAL)), 10)[-1]
    alone = clone(lm).fit([x for i, x in enumerate(USUAL) if i not in last])
    for detector in (once, again):
        np.testing.assert_array_equal(
            detector.estimator_.score_samples(ODD), alone.score_samples(ODD)
        )
    assert once.offset_ == again.offset_


def test_a_document_without_tokens_scores_0():
    frozen = FrozenEstimator(TextLM(TRIGRAM, predict_boundary=False).fit(USUAL))
    for aggregate in ("mean", "sum", "min"):
        detector = LMDetector(frozen, aggregate=aggregate).fit(USUAL)
        assert detector.score_samples([[], ["login"]])[0] == 0


def test_impossible_documents_are_outliers_without_nan():
    detector = LMDetector(TRIGRAM).fit(USUAL)
    scores = np.array([-np.inf, -np.inf, -1.0, -2.0])
    detector._scores = lambda lm, X: scores
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
    detector = LMDetector(TextLM(network, 2)).fit(USUAL, X_val=USUAL[:10])
    assert np.isfinite(detector.estimator_.estimator_.val_loss_)


def test_pipelines_end_in_it():
    chain = make_pipeline(Vocabulary(), LMDetector(TRIGRAM)).fit(USUAL)
    alone = LMDetector(TRIGRAM).fit(USUAL)
    np.testing.assert_allclose(chain.score_samples(ODD), alone.score_samples(ODD))
    auc = roc_auc_score(LABELS, chain.decision_function(SESSIONS))
    assert auc > 0.9


def test_errors_say_what_to_pass():
    for options, message in [
        ({"contamination": 0.6}, "contamination"),
        ({"contamination": 0}, "contamination"),
        ({"aggregate": "median"}, "aggregate"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
    ]:
        with pytest.raises(ValueError, match=message):
            LMDetector(TRIGRAM, **options).fit(USUAL)
    with pytest.raises(TypeError, match="estimator must be a TextLM, or a language"):
        LMDetector(Vocabulary()).fit(USUAL)
    for n in (0, 1):
        with pytest.raises(
            ValueError, match=f"^n_samples={n}: of fewer than 2 documents none"
        ):
            LMDetector(TRIGRAM).fit(USUAL[:n])
        few = LMDetector(TRIGRAM, contamination=0.5)
        few.fit(USUAL[:1], X_val=USUAL[1:3])
    for documents, held_out, message in [
        (iter(USUAL), None, "^X must be a list"),
        (USUAL, iter(USUAL), "^X_val must be a list"),
        (USUAL, [None], r"^X_val\[0\] is missing"),
    ]:
        with pytest.raises(TypeError, match=message):
            LMDetector(TRIGRAM).fit(documents, X_val=held_out)
