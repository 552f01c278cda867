"""The usual mistakes, and what they are told: windows, and the text model."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from nplm import (
    CacheLM,
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    WordClasses,
    neg_bits_per_character,
    neg_bits_per_token,
    neg_perplexity,
    windows,
)
from tests.helpers import paper_lm, small_text

IDS = np.random.default_rng(0).zipf(1.4, 400) % 12
X, Y = windows(IDS, 3)
MODELS = [
    KneserNeyLM(),
    InterpolatedTrigram(),
    UniformLM(),
    CacheLM(),
    MixtureLM([("one", UniformLM())]),
    paper_lm(n_hidden=2, max_iter=1),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((IDS,), ValueError, r"nplm\.windows\(ids, n_context\)"),
        ((IDS, IDS), ValueError, r"nplm\.windows\(ids, n_context\)"),
        ((IDS.tolist(), IDS), ValueError, r"nplm\.windows\(ids, n_context\)"),
        ((X,), ValueError, r"y are the next words.*nplm\.windows"),
        ((X, None), ValueError, "requires y to be passed, but the target y is None"),
        ((["raw text", "more"],), ValueError, r"TextLM\({name}\(...\)\)"),
        ((np.array(["raw text"]),), ValueError, r"TextLM\({name}\(...\)\)"),
        (([["a", "b"], ["c"]],), ValueError, r"TextLM\({name}\(...\)\)"),
        (([["a", "b"]], [1]), ValueError, r"nplm\.Vocabulary"),
        (([[1, 2, 3], [4]],), ValueError, r"rows of 1 to 3 ids.*TextLM\({name}"),
        (("raw text",), TypeError, r"TextLM\({name}\(...\)\)"),
    ],
)
@small_text
def test_what_is_no_windows_is_told_what_to_do(model, given, error, message):
    name = type(model).__name__
    message = message.format(name=name)
    with pytest.raises(error, match=message):
        clone(model).fit(*given)
    fitted = clone(model).fit(X, Y)
    for use in (fitted.score, fitted.perplexity, fitted.log_prob):
        with pytest.raises(error, match=message):
            use(*given)
    if given[0] is not X:
        for use in (fitted.predict_proba, fitted.predict):
            with pytest.raises(error, match=r"windows"):
                use(given[0])


HUGE = [7, 10**9, 3, 5] * 5
INFERRING = [
    *MODELS,
    ClassLM(),
    EnergyLM(),
    MixtureLM([("kn", KneserNeyLM())], include_uniform=True),
    ShortlistLM(paper_lm(), KneserNeyLM()),
]


@pytest.mark.parametrize("model", INFERRING, ids=lambda model: type(model).__name__)
def test_ids_far_above_their_number_are_told_of_vocabulary(model):
    message = r"have 4 distinct .*largest is 1000000000, .*nplm\.Vocabulary"
    with pytest.raises(ValueError, match=f"X and y {message}"):
        clone(model).fit(*windows(HUGE, 2))
    message = message.replace("4", "5")
    with pytest.raises(ValueError, match=f"X and boundary {message}"):
        TextLM(model).fit([HUGE])


def test_large_ids_pass_where_n_words_or_a_vocabulary_is_given():
    with pytest.raises(ValueError, match=r"ids have 4 distinct .*nplm\.Vocabulary"):
        WordClasses().fit(HUGE)
    with pytest.raises(ValueError, match=r"X and boundary have 3 .* 1000000000"):
        TextLM(UniformLM(), boundary=10**9).fit([[1, 2]])
    n_words = 1 << 21
    with pytest.raises(ValueError, match=f"set n_words={n_words}"):
        UniformLM().fit([[1]], [n_words - 1])
    assert UniformLM(n_words=n_words).fit([[1]], [n_words - 1]).n_words_ == n_words
    lm = TextLM(UniformLM(n_words=n_words)).fit([[1, n_words - 1]])
    assert lm.n_words_ == n_words
    # A vocabulary of which a small text has few words is no mistake.
    assert UniformLM().fit([[1]], [300_000]).n_words_ == 300_001
    assert TextLM(UniformLM(), vocabulary=Vocabulary()).fit([HUGE]).n_words_ == 6


@small_text
def test_perplexity_as_a_scoring():
    scores = cross_val_score(InterpolatedTrigram(), X, Y, scoring=neg_perplexity, cv=3)
    means = cross_val_score(InterpolatedTrigram(), X, Y, cv=3)
    np.testing.assert_allclose(scores, -np.exp(-means))
    texts = [" ".join(f"w{i}" for i in row) for row in IDS.reshape(40, 10)]
    search = GridSearchCV(
        TextLM(InterpolatedTrigram()),
        {"estimator__order": [1, 2]},
        scoring=neg_perplexity,
        cv=3,
    ).fit(texts)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() < -1


def test_bits_as_a_scoring():
    texts = [" ".join(f"w{i}" for i in row) for row in IDS.reshape(40, 10)]
    lm = TextLM(InterpolatedTrigram(), vocabulary=Vocabulary(min_count=2)).fit(texts)
    bits = -neg_bits_per_token(lm, texts)
    np.testing.assert_allclose(2**bits, lm.perplexity(texts))
    n_tokens, n_characters = 40 * 11, sum(map(len, texts)) + 40
    scores = lm.text_scores(texts)
    spelling = -scores.spelling_log_prob / np.log(2)
    expected = (bits * n_tokens + spelling) / n_characters
    np.testing.assert_allclose(-neg_bits_per_character(lm, texts), expected)
    pipeline = Pipeline([("tokens", Tokenizer()), ("lm", TextLM(UniformLM()))])
    pipeline.fit(texts)
    n_words = pipeline[-1].n_words_
    np.testing.assert_allclose(neg_bits_per_token(pipeline, texts), -np.log2(n_words))
    np.testing.assert_allclose(neg_perplexity(pipeline, texts), -n_words)
    model = InterpolatedTrigram().fit(X, Y)
    np.testing.assert_allclose(
        neg_bits_per_token(model, X, Y), -np.log2(model.perplexity(X, Y))
    )
    with pytest.raises(TypeError, match="neg_bits_per_token scores windows"):
        neg_bits_per_character(model, X, Y)


@small_text
def test_held_out_documents_pass_through_a_pipeline():
    texts = [" ".join(f"w{i}" for i in row) for row in IDS.reshape(40, 10)]
    train, held_out = texts[:30], texts[30:]
    members = [("one", UniformLM()), ("two", InterpolatedTrigram())]
    model = MixtureLM(members, "learned")
    with sklearn.config_context(enable_metadata_routing=True):
        lm = TextLM(model, boundary=0).set_fit_request(X_val=True)
        steps = [("tokens", Tokenizer()), ("ids", Vocabulary()), ("lm", lm)]
        pipeline = Pipeline(steps, transform_input=["X_val"])
        pipeline.fit(train, X_val=held_out)
    direct = TextLM(model).fit(train, X_val=held_out)
    weights = pipeline[-1].estimator_.weights_
    np.testing.assert_array_equal(weights, direct.estimator_.weights_)
    assert pipeline.score(held_out) == direct.score(held_out)


def test_weights_that_have_not_settled_are_told():
    few = dict(max_iter=1, tol=1e-9)
    members = [("one", UniformLM()), ("two", InterpolatedTrigram())]
    for model in (InterpolatedTrigram(**few), MixtureLM(members, "learned", **few)):
        with pytest.warns(
            ConvergenceWarning, match=r"after 1 iterations .* Raise max_iter=1, or tol"
        ):
            model.fit(X, Y, X_val=X[:99], y_val=Y[:99])
        # As many steps as asked for.
        clone(model).set_params(tol=0).fit(X, Y, X_val=X[:99], y_val=Y[:99])
        clone(model).set_params(max_iter=0).fit(X, Y, X_val=X[:99], y_val=Y[:99])


def test_falling_held_out_loss_at_max_iter_is_a_warning():
    network = paper_lm(n_hidden=2, max_iter=2, early_stopping=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"NeuralLM: .* after max_iter=2"):
        network.fit(X, Y)
    # Epochs that were asked for, whether or not they are watched.
    clone(network).set_params(early_stopping=False).fit(X, Y)
    clone(network).set_params(early_stopping="auto").fit(X, Y, X_val=X, y_val=Y)


@pytest.mark.parametrize(
    ("model", "method"),
    [(KneserNeyLM(3), "fit"), (KneserNeyLM(3), "partial_fit"), (NeuralLM(), "fit"),
     (NeuralLM(), "partial_fit"), (EnergyLM(), "fit"),
     (ShortlistLM(NeuralLM(), KneserNeyLM()), "fit")],
)  # fmt: skip
def test_weights_of_windows_are_refused_with_what_to_do(model, method):
    with pytest.raises(TypeError, match=f"{type(model).__name__} has no weights of"):
        getattr(model, method)(X, Y, sample_weight=np.ones(len(Y)))
    assert not has_fit_parameter(model, "sample_weight")
