"""LMClassifier is Bayes' rule over language models, in scikit-learn's words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import nplm
from nplm import (
    InterpolatedTrigram,
    LMClassifier,
    MixtureLM,
    Subwords,
    TextLM,
    Tokenizer,
    Vocabulary,
)

ENGLISH = ["the cat sat on the mat", "a dog ran to the cat", "the dog is in the house"]
FRENCH = ["le chat dort sur le lit", "un chien court vers le chat"]
GERMAN = ["die Katze schläft im Bett", "ein Hund läuft zur Katze", "der Hund schläft"]
TEXTS = [*ENGLISH, *FRENCH, *GERMAN] * 2
LABELS = (["en"] * 3 + ["fr"] * 2 + ["de"] * 3) * 2
CHARACTERS = Tokenizer("(?s).")


def characters(estimator=None, **options):
    model = InterpolatedTrigram() if estimator is None else estimator
    return TextLM(model, 2, tokenizer=CHARACTERS, **options)


@pytest.fixture(scope="module")
def classifier():
    return LMClassifier(characters()).fit(TEXTS, LABELS)


def by_hand(texts, priors):
    """Bayes' rule with models of one vocabulary, written out."""
    words = Vocabulary.from_words(
        Vocabulary().fit(CHARACTERS.transform(TEXTS)).words_.tolist()
    )
    joint = np.empty((len(texts), 3))
    for k, label in enumerate(["de", "en", "fr"]):
        own = [text for text, other in zip(TEXTS, LABELS) if other == label]
        lm = characters(vocabulary=words).fit(own)
        joint[:, k] = lm.score_samples(texts) + np.log(priors[k])
    likelihood = np.exp(joint - joint.max(axis=1, keepdims=True))
    return likelihood / likelihood.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("priors", "wanted"),
    [
        ("empirical", [3 / 8, 3 / 8, 2 / 8]),
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
        ([0.5, 0.2, 0.3], [0.5, 0.2, 0.3]),
    ],
)
def test_probabilities_are_those_of_bayes_rule(priors, wanted):
    texts = ["a chat", "der cat", "", "la"]
    fitted = LMClassifier(characters(), priors=priors).fit(TEXTS, LABELS)
    np.testing.assert_allclose(fitted.priors_, wanted)
    proba = fitted.predict_proba(texts)
    np.testing.assert_allclose(proba, by_hand(texts, wanted), rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    labels = fitted.classes_[proba.argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(texts), labels)


def test_methods_agree(classifier):
    texts = [*TEXTS, "un dog", "zzz"]
    joint = classifier.predict_joint_log_proba(texts)
    log_proba = classifier.predict_log_proba(texts)
    np.testing.assert_allclose(np.exp(log_proba), classifier.predict_proba(texts))
    differences = joint - log_proba  # log P(document), of all classes
    np.testing.assert_allclose(differences, np.tile(differences[:, :1], 3))
    np.testing.assert_array_equal(classifier.decision_function(texts), log_proba)
    assert classifier.score(TEXTS, LABELS) == 1.0
    assert is_classifier(classifier)
    assert classifier.classes_.tolist() == ["de", "en", "fr"]


def test_decision_of_two_classes_is_their_log_odds():
    labels = np.array([label == "fr" for label in LABELS])
    fitted = LMClassifier(characters()).fit(TEXTS, labels)
    proba = fitted.predict_proba(TEXTS)
    decision = fitted.decision_function(TEXTS)
    assert decision.shape == (len(TEXTS),)
    np.testing.assert_allclose(decision, np.log(proba[:, 1] / proba[:, 0]), rtol=1e-6)
    np.testing.assert_array_equal(fitted.predict(TEXTS), decision > 0)
    assert fitted.predict(TEXTS).dtype == bool


def test_models_of_all_classes_have_the_same_words(classifier):
    words = [lm.vocabulary_.words_.tolist() for lm in classifier.estimators_]
    assert words[0] == words[1] == words[2]
    assert "ä" in words[1]  # of German alone
    # Without it, a class that knows few words finds others' words easy to predict.
    lm = TextLM(InterpolatedTrigram(), 2, vocabulary=Vocabulary(min_count=3))
    fitted = LMClassifier(lm).fit(TEXTS, LABELS)
    assert {len(lm.vocabulary_.words_) for lm in fitted.estimators_} == {
        len(Vocabulary(3).fit([text.split() for text in TEXTS]).words_)
    }


@pytest.mark.slow
@settings(max_examples=20)
@given(
    documents=st.lists(
        st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=4, max_size=9
    )
)
def test_documents_of_ids_and_events_are_classified_alike(documents):
    labels = np.arange(len(documents)) % 2
    lm = InterpolatedTrigram()
    of_ids = LMClassifier(lm).fit(documents, labels)
    assert {lm.n_words_ for lm in of_ids.estimators_} == {max(map(max, documents)) + 1}
    # As a stream of their own: the ids of each class under its model of windows.
    for k in (0, 1):
        own = [ids for ids, label in zip(documents, labels) if label == k]
        n_words = max(map(max, documents)) + 1
        alone = TextLM(InterpolatedTrigram(n_words=n_words)).fit(own)
        np.testing.assert_allclose(
            of_ids.predict_joint_log_proba(documents)[:, k],
            alone.score_samples(documents) + np.log(of_ids.priors_[k]),
        )
    events = [[("event", i) for i in ids] for ids in documents]
    proba = LMClassifier(lm).fit(events, labels).predict_proba(events)
    assert proba.shape == (len(documents), 2)


def test_a_model_of_windows_stands_for_a_text_model():
    bare = LMClassifier(InterpolatedTrigram(2)).fit(TEXTS, LABELS)
    text = LMClassifier(TextLM(InterpolatedTrigram(2))).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(bare.predict_proba(TEXTS), text.predict_proba(TEXTS))


def test_jobs_do_not_change_the_models(classifier):
    with parallel_config("threading"):
        in_parallel = LMClassifier(characters(), n_jobs=2).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(
        in_parallel.predict_proba(TEXTS), classifier.predict_proba(TEXTS)
    )


@pytest.mark.slow
def test_searches_pipelines_and_scorers_take_it():
    search = GridSearchCV(
        LMClassifier(characters()), {"estimator__estimator__order": [1, 2, 3]}, cv=2
    )
    assert search.fit(TEXTS, LABELS).best_score_ > 0.8
    scores = cross_val_score(
        LMClassifier(characters()), TEXTS, LABELS, cv=2, scoring="roc_auc_ovr"
    )
    assert (scores > 0.9).all()
    chain = make_pipeline(CHARACTERS, Vocabulary(), LMClassifier(InterpolatedTrigram()))
    assert chain.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1.0
    fitted = LMClassifier(characters()).fit(TEXTS, [label == "de" for label in LABELS])
    assert roc_auc_score([label == "de" for label in LABELS],
                         fitted.decision_function(TEXTS)) == 1.0  # fmt: skip


def test_columns_of_pandas_are_documents_and_labels(classifier):
    pd = pytest.importorskip("pandas")
    index = range(len(TEXTS), 0, -1)  # labels of rows are not their places
    table = pd.DataFrame({"text": TEXTS, "label": LABELS}, index)
    fitted = LMClassifier(characters()).fit(table["text"], table["label"])
    np.testing.assert_allclose(
        fitted.predict_proba(table["text"]),
        classifier.predict_proba(table["text"].tolist()),
    )


def test_an_impossible_document_has_the_priors(classifier):
    fitted = clone(classifier).fit(TEXTS, LABELS)
    for lm in fitted.estimators_:
        lm.score_samples = lambda X: np.full(len(X), -np.inf)
    np.testing.assert_allclose(fitted.predict_proba(["a"])[0], fitted.priors_)


def test_held_out_documents_are_those_of_the_class():
    mixture = MixtureLM(
        [("pairs", InterpolatedTrigram(2)), ("trigrams", InterpolatedTrigram())]
    )
    X_val, y_val = ["the mat", "le lit", "der Hund", "a cat"], ["en", "fr", "de", "en"]
    fitted = LMClassifier(characters(mixture))
    fitted.fit(TEXTS, LABELS, X_val=X_val, y_val=y_val)
    known = fitted.estimators_[0].vocabulary_.words_.tolist()
    for label, lm in zip(fitted.classes_, fitted.estimators_):
        own = [text for text, other in zip(TEXTS, LABELS) if other == label]
        held_out = [text for text, other in zip(X_val, y_val) if other == label]
        alone = characters(mixture, vocabulary=Vocabulary.from_words(known))
        alone.fit(own, X_val=held_out)
        np.testing.assert_array_equal(lm.score_samples(own), alone.score_samples(own))
    for pair, message in [
        ((X_val, None), "requires y_val to be passed"),
        ((None, y_val), "requires X_val to be passed"),
        ((X_val[1:3], y_val[1:3]), "y_val has no document of the class 'en'"),
        (([*X_val, "il gatto"], [*y_val, "it"]), "y_val has the class 'it', which y"),
        ((X_val, y_val[1:]), "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.fit(TEXTS, LABELS, X_val=pair[0], y_val=pair[1])


def test_errors_say_what_to_pass():
    for labels, message in [
        (None, "requires y to be passed"),
        (LABELS[:-1], "inconsistent numbers of samples"),
        (np.linspace(0, 1, len(LABELS)), "continuous"),
        ([*LABELS[:-1], None], r"y\[\d+\] is missing \(None\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            LMClassifier(characters()).fit(TEXTS, labels)
    for priors, message in [
        ([0.5, 0.5], r"priors has shape \(2,\), but y has 3 classes"),
        ([0.5, 0.6, 0.7], "must sum to 1"),
        ([1.5, -0.5, 0], "must not be negative"),
        ("equal", "priors"),
        ({"en": 0.5, "fr": 0.5}, "priors must be 'empirical'"),
    ]:
        with pytest.raises(ValueError, match=message):
            LMClassifier(characters(), priors=priors).fit(TEXTS, LABELS)
    for estimator in (LMClassifier, object(), CHARACTERS):
        with pytest.raises(TypeError, match="estimator must be a TextLM, or a lang"):
            LMClassifier(estimator).fit(TEXTS, LABELS)
    frozen = FrozenEstimator(characters().fit(TEXTS))
    with pytest.raises(TypeError, match="the same model for all classes"):
        LMClassifier(frozen).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="must be a list of documents"):
        LMClassifier(characters()).fit("the cat", LABELS)
    with pytest.raises(ValueError, match="X has 0 documents"):
        LMClassifier(characters()).fit([], [])
    with pytest.raises(TypeError, match=r"X_val\[1\] is missing"):
        LMClassifier(characters()).fit(
            TEXTS, LABELS, X_val=["a", None], y_val=[LABELS[0], LABELS[-1]]
        )


def test_an_error_leaves_the_classifier_as_it_was():
    fitted = LMClassifier(characters()).fit(TEXTS, LABELS)
    before = fitted.predict_proba(TEXTS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.fit(TEXTS, LABELS[:3])
    np.testing.assert_array_equal(fitted.predict_proba(TEXTS), before)


@pytest.mark.parametrize("model", ["bpe", "characters", "bytes"])
def test_classes_share_subwords_that_are_saved(model, tmp_path):
    if model == "bpe":
        pytest.importorskip("tokenizers", reason="it learns the units")
    lm = TextLM(InterpolatedTrigram(), 2, tokenizer=Subwords(model, n_words=256))
    fitted = LMClassifier(lm).fit(TEXTS, LABELS)
    assert fitted.score(TEXTS, LABELS) > 0.8
    nplm.save(fitted, tmp_path / "model")
    again = nplm.load(tmp_path / "model")
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
