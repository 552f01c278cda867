"""TextLM: documents of ids, tokens and text."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from nplm import (
    CacheLM,
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    LMClassifier,
    LMDetector,
    MixtureLM,
    NeuralCacheLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    windows,
)
from nplm.base.estimators.language_model import LanguageModel
from nplm.models.neural.presets import PRESETS
from tests.helpers import energy_lm, paper_lm


class AddOneBigram(LanguageModel):
    """Add-one counts of the next word after the nearest (order 2) or any (1)."""

    def __init__(self, order=None, *, n_words=None):
        self.order = order
        self.n_words = n_words

    def fit(self, X, y, *, X_val=None, y_val=None):
        X, y = self._start_fit(X, y)
        held_out = self._check_held_out(X_val, y_val)
        self.n_held_out_ = None if held_out is None else len(held_out[1])
        self.counts_ = np.ones((self.n_words_, self.n_words_))
        np.add.at(self.counts_, (self._row(X), y), 1)
        return self

    def _row(self, X):
        return X[:, -1] if self.order_ > 1 else np.zeros(len(X), dtype=int)

    def _predict_proba(self, X):
        rows = self.counts_[self._row(X)]
        return rows / rows.sum(axis=1, keepdims=True)


TEXTS = [
    "the cat sat on the mat .",
    "the dog sat on the cat .",
    "a dog saw the cat .",
    "the cat saw a mat .",
    "a cat sat .",
    "the dog saw a zebra .",
]
documents_of_ids = st.lists(
    st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=5
)


def pipeline(min_count=1, **params):
    return Pipeline(
        [
            ("tokens", Tokenizer()),
            ("ids", Vocabulary(min_count=min_count)),
            ("lm", TextLM(AddOneBigram(), n_context=4, **params)),
        ]
    )


def test_score_is_the_mean_over_tokens_with_the_boundary():
    lm = TextLM(AddOneBigram(order=2), n_context=2).fit([[2, 3], [2]])
    # P(2 | 0) = 3/6, P(3 | 2) = P(0 | 2) = 2/6, P(0 | 3) = 2/5.
    expected = np.log([3 / 6 * 2 / 6 * 2 / 5, 3 / 6 * 2 / 6])
    np.testing.assert_allclose(lm.score_samples([[2, 3], [2]]), expected)
    assert lm.score([[2, 3], [2]]) == pytest.approx(expected.sum() / 5)


def test_score_without_the_boundary():
    lm = TextLM(AddOneBigram(), n_context=2, predict_boundary=False)
    lm.fit([[2, 3], [], [2]])
    assert lm.n_words_ == 4
    expected = np.log([3 / 6 * 2 / 5, 1, 3 / 6])
    np.testing.assert_allclose(lm.score_samples([[2, 3], [], [2]]), expected)
    assert lm.score([[2, 3], [], [2]]) == pytest.approx(expected.sum() / 3)


@pytest.mark.slow
@given(documents_of_ids, st.booleans())
def test_document_scores_are_sums_of_token_scores(documents, predict_boundary):
    lm = TextLM(AddOneBigram(n_words=10), boundary=0, predict_boundary=predict_boundary)
    lm.fit([np.arange(10)])
    n_tokens = sum(len(ids) + predict_boundary for ids in documents)
    if n_tokens == 0:
        with pytest.raises(ValueError, match="no token"):
            lm.score(documents)
        return
    log_prob = lm.score_samples(documents)
    assert log_prob.shape == (len(documents),)
    assert log_prob.sum() == pytest.approx(lm.score(documents) * n_tokens)
    assert lm.perplexity(documents) == pytest.approx(np.exp(-lm.score(documents)))
    # No window spans two documents: each has the same score alone.
    alone = [lm.score_samples([ids])[0] for ids in documents if len(ids)]
    np.testing.assert_allclose(alone, [p for p, d in zip(log_prob, documents) if d])


def test_perplexity_without_unknown_words():
    lm = TextLM(AddOneBigram(order=1), n_context=1).fit([[1, 1, 2]])
    # Counts plus one: boundary 2, unknown 3, word 2 of 7.
    assert lm.perplexity([[1, 2]]) == pytest.approx((2 * 3 * 2 / 7**3) ** (-1 / 3))
    assert lm.perplexity([[1, 2]], skip=1) == pytest.approx(7 / 2)
    lm.set_params(predict_boundary=False)
    with pytest.raises(ValueError, match="none is left"):
        lm.perplexity([[1]], skip=1)


def test_pipeline_on_raw_text():
    model = pipeline().fit(TEXTS)
    scores = model.score_samples(["the cat sat .", "mat mat dog the"])
    assert scores[0] > scores[1]
    assert model["lm"].n_words_ == model["ids"].n_words_
    ids, proba = model["lm"].next_words(model["ids"].transform([["on"]])[0], k=1)
    assert model["ids"].words_[ids].tolist() == ["the"]
    assert proba[0] == model["lm"].next_words([model["ids"].ids_["on"]], 99)[1].max()


def test_clone_and_pickle():
    model = pipeline().fit(TEXTS)
    assert "lm__estimator__order" in model.get_params()
    assert clone(model)["lm"].estimator is not model["lm"].estimator
    again = pickle.loads(pickle.dumps(model))
    assert again.score(TEXTS) == model.score(TEXTS)
    # The given estimator is unchanged; its clone has the size of the vocabulary.
    assert model["lm"].estimator.n_words is None
    assert model["lm"].estimator_.n_words == model["lm"].n_words_


def test_held_out_documents_reach_the_estimator():
    lm = TextLM(AddOneBigram()).fit([[1, 2]], X_val=[[1], [2]])
    assert lm.estimator_.n_held_out_ == 4
    assert TextLM(AddOneBigram()).fit([[1, 2]]).estimator_.n_held_out_ is None


@given(st.integers(0, 2**31), st.floats(0.01, 10), st.lists(st.integers(0, 9)))
def test_generated_words_are_in_range(seed, temperature, context):
    lm = TextLM(AddOneBigram(), boundary=0).fit([np.arange(10)])
    draw = {"max_words": 12, "temperature": temperature, "random_state": seed}
    words = lm.generate(context, **draw)
    assert words.dtype == np.int32
    assert len(words) <= 12
    assert ((words > 0) & (words < 10)).all()
    assert words.tolist() == lm.generate(context, **draw).tolist()


def test_a_low_temperature_draws_the_most_probable_words():
    lm = TextLM(AddOneBigram(order=2)).fit([[3, 4, 5]] * 9)
    assert lm.generate(temperature=1e-3, random_state=0).tolist() == [3, 4, 5]
    assert lm.generate([3], temperature=1e-3, random_state=0).tolist() == [4, 5]
    assert lm.generate([3], max_words=1, temperature=1e-3).tolist() == [4]


def test_id_beyond_training_error_names_n_words():
    lm = TextLM(AddOneBigram()).fit([[1, 2]])
    with pytest.raises(ValueError, match=r"X\[0\] has 3 at 1.*set n_words"):
        lm.score([[1, 3]])
    with pytest.raises(ValueError, match="set n_words"):
        lm.next_words([3])
    assert np.isfinite(TextLM(AddOneBigram(n_words=4)).fit([[1, 2]]).score([[1, 3]]))


def test_estimator_gets_vocabulary_size_and_boundary():
    documents = [[2, 3, 2], [3, 2], [2, 2, 3, 4]]
    lm = TextLM(
        MixtureLM([("kn", KneserNeyLM()), ("own", KneserNeyLM(boundary=3))]),
        n_context=2,
    )
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate"):
        lm.fit(documents)
    members = lm.estimator_.named_estimators_
    assert (members.kn.boundary, members.own.boundary) == (0, 3)
    assert members.kn.n_words == 5


# -- text in, text out -----------------------------------------------------------


def text_lm(**params):
    return TextLM(AddOneBigram(order=2), n_context=2, **params).fit(TEXTS)


def test_text_equals_tokenizer_and_vocabulary_in_a_pipeline():
    lm, steps = text_lm(), pipeline().set_params(lm__n_context=2).fit(TEXTS)
    assert lm.vocabulary_.ids_ == steps["ids"].ids_
    assert lm.n_words_ == steps["lm"].n_words_ == lm.estimator_.n_words
    texts = ["the cat sat .", "", "mat zoo the"]
    np.testing.assert_array_equal(lm.score_samples(texts), steps.score_samples(texts))
    assert lm.score(texts) == steps.score(texts)
    ids, proba = steps["lm"].next_words(steps["ids"].transform([["on"]])[0], k=3)
    # After a Vocabulary, a TextLM does not know which id is the unknown word.
    words, own = lm.next_words("on", k=3, unknown=True)
    assert words == steps["ids"].words_[ids].tolist()
    np.testing.assert_array_equal(own, proba)
    drawn = steps["lm"].generate([lm.vocabulary_.ids_["the"]], random_state=0)
    spelled = " ".join(lm.vocabulary_.words_[drawn])
    text = lm.generate("the", unknown=True, random_state=0)
    assert " ".join(lm.tokenizer_.transform([text])[0]) == spelled


def test_tokens_and_events_of_any_kind():
    sessions = [["login", ("read", 3), 404], ["login", ("read", 3)], []]
    lm = TextLM(AddOneBigram(order=2), n_context=2).fit(sessions)
    assert lm.tokenizer_ is None
    words = lm.vocabulary_.words_.tolist()
    assert words == ["</s>", "<unk>", ("read", 3), "login", 404]
    assert lm.next_words(["login"], k=1)[0] == [("read", 3)]
    assert lm.generate(["login"], max_words=1, top_k=1) == [("read", 3)]
    # The perplexity changes if the event 404 is not counted.
    assert lm.perplexity(sessions, skip=404) != lm.perplexity(sessions)
    # Numbers are ids unless a vocabulary is given.
    numbers = [[404, 0, 200], [0, 200]]
    lm = TextLM(AddOneBigram(order=2), vocabulary=Vocabulary()).fit(numbers)
    assert lm.vocabulary_.words_.tolist() == ["</s>", "<unk>", 0, 200, 404]
    with pytest.raises(ValueError, match=r"set vocabulary=Vocabulary\(\)"):
        TextLM(AddOneBigram()).fit(numbers)


def test_perplexity_of_each_document():
    lm = text_lm()
    texts = ["the cat", "zoo", "a"]
    each = lm.perplexity(texts, per_document=True)
    np.testing.assert_allclose(each, [lm.perplexity([text]) for text in texts])
    own = lm.perplexity(["zoo"], skip="<unk>")
    without = lm.perplexity(["zoo", "a"], skip="<unk>", per_document=True)
    np.testing.assert_allclose(without, [own, each[2]])
    lm.set_params(predict_boundary=False)
    each = lm.perplexity(["zoo", "a"], skip="<unk>", per_document=True)
    np.testing.assert_array_equal(np.isnan(each), [True, False])
    with pytest.raises(ValueError, match="'zoo' is not in the vocabulary"):
        lm.perplexity(texts, skip="zoo")


def test_excluded_words_are_not_predicted():
    lm = text_lm()
    with pytest.raises(ValueError, match="k == 0, must be"):
        lm.next_words(k=0)
    words, proba = lm.next_words("zoo", k=99, exclude=["<unk>", "</s>", "</s>"])
    assert len(words) == len(proba) == lm.n_words_ - 2
    assert not {"<unk>", "</s>"} & set(words)
    assert proba.sum() == pytest.approx(1)
    all_words, all_proba = lm.next_words("zoo", k=99, unknown=True)
    kept = [p for word, p in zip(all_words, all_proba) if word in words]
    np.testing.assert_allclose(proba, np.array(kept) / sum(kept))
    texts = lm.generate("a", 20, max_words=30, exclude=["</s>", "cat"], random_state=0)
    assert "cat" not in " ".join(texts).split()
    assert texts == lm.generate(
        "a", 20, max_words=30, exclude=["</s>", "cat"], random_state=0
    )
    for words in (lm.vocabulary_.words_, [*lm.vocabulary_.words_[2:].tolist(), "</s>"]):
        with pytest.raises(
            ValueError, match=r"among them <unk>, unless .*exclude fewer"
        ):
            lm.next_words("a", exclude=words)


def test_unknown_words_are_not_generated_by_default():
    rare = Vocabulary(max_words=4)
    lm = text_lm(vocabulary=rare)
    mark = lm.vocabulary_.unknown_id_
    contexts = [[0, lm.vocabulary_.ids_["the"]]]
    all_proba = lm.estimator_.predict_proba(contexts)[0]
    assert all_proba.argmax() == mark
    words, proba = lm.next_words("the", k=99)
    assert "<unk>" not in words
    known = np.delete(all_proba, mark)
    np.testing.assert_allclose(proba, -np.sort(-known) / known.sum())
    words, proba = lm.next_words("the", k=99, unknown=True)
    assert words[0] == "<unk>"
    np.testing.assert_allclose(proba, -np.sort(-all_proba))
    assert "<unk>" not in " ".join(lm.generate(n=50, random_state=0))
    assert "<unk>" in " ".join(lm.generate(n=50, unknown=True, random_state=0))
    # A vocabulary without the symbol, and ids, have no unknown words.
    for own in (
        text_lm(vocabulary=Vocabulary(unknown=None)),
        TextLM(AddOneBigram()).fit([[1, 2]]),
    ):
        for unknown in (False, True):
            assert len(own.next_words(k=99, unknown=unknown)[0]) == own.n_words_


def check_shares(firsts, words, proba):
    """Check how often texts of at most one word have each, "" the boundary."""
    for word, p in zip(words, proba):
        share = firsts.count("" if word == "</s>" else word) / len(firsts)
        assert abs(share - p) < 4 * np.sqrt(p / len(firsts))


def test_texts_are_drawn_by_probability():
    lm = text_lm(vocabulary=Vocabulary(max_words=6))
    samples = lm.sample(4000, max_words=1, random_state=0)
    words, proba = lm.next_words((), k=99, unknown=True)
    assert "<unk>" in words
    check_shares(samples, words, proba)
    assert lm.sample(4000, max_words=1, random_state=0) == samples
    lm = text_lm()
    words, proba = lm.next_words("the", k=99)
    check_shares(lm.generate("the", 4000, max_words=1, random_state=0), words, proba)
    # With top_k or top_p, in the order of probabilities.
    for cut, n in [(dict(top_k=2), 2), (dict(top_p=proba[:3].sum() - 1e-9), 3)]:
        firsts = lm.generate("the", 500, max_words=1, random_state=0, **cut)
        assert set(firsts) == {"" if word == "</s>" else word for word in words[:n]}


def test_texts_have_the_least_number_of_words():
    lm = text_lm()
    for least in (0, 1, 3):
        texts = lm.generate("the", 500, min_words=least, random_state=0)
        lengths = [len(tokens) for tokens in Tokenizer().transform(texts)]
        assert min(lengths) == least < max(lengths)
    # The first word is drawn among the others by their probabilities.
    words, proba = lm.next_words("the", k=99, exclude=["</s>"])
    firsts = lm.generate("the", 4000, min_words=1, max_words=1, random_state=0)
    check_shares(firsts, words, proba)


@pytest.mark.parametrize(
    "params",
    [
        {"min_words": -1},
        {"max_words": -1},
        {"min_words": 3, "max_words": 2},
        {"temperature": 0.0},
        {"n": 0},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"n": True},
    ],
)
def test_generate_refuses(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        text_lm().generate(**params)


@pytest.mark.parametrize(
    ("model", "order"),
    [
        (pipeline(min_count=2), "lm__estimator__order"),
        (
            TextLM(AddOneBigram(), vocabulary=Vocabulary(min_count=2)),
            "estimator__order",
        ),
    ],
    ids=["ids", "text"],
)
def test_grid_search(model, order):
    search = GridSearchCV(model, {order: [1, 2]}, cv=3, error_score="raise")
    assert search.fit(TEXTS).best_params_ == {order: 2}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert again.score(TEXTS) == search.score(TEXTS)
    with pytest.raises(NotFittedError):
        clone(again).score(TEXTS)


def test_grid_over_the_order_scores_the_same_tokens():
    """With windows as wide as each order needs, as with those of the highest."""
    ngrams = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
    grid = {"estimator__order": [1, 2, 3, 5, 6]}
    scores = [
        GridSearchCV(lm, grid, cv=3, error_score="raise")
        .fit(TEXTS)
        .cv_results_["mean_test_score"]
        for lm in (TextLM(ngrams), TextLM(ngrams, n_context=5))
    ]
    np.testing.assert_array_equal(*scores)
    for order in grid["estimator__order"]:
        lm = TextLM(clone(ngrams).set_params(order=order)).fit(TEXTS)
        assert lm.n_context_ == max(order - 1, 1)
        for scored, text in zip(lm.token_scores(TEXTS), TEXTS):
            assert scored.words == [*text.split(), "</s>"]


FALLBACK = {"discount_fallback": (0.5, 1, 1.5)}
NETWORK = paper_lm(3, max_iter=1, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "n_context"),
    [
        (KneserNeyLM(**FALLBACK), 4),
        (InterpolatedTrigram(), 2),
        (UniformLM(), 1),
        (CacheLM(), 4),
        (CacheLM(7), 7),
        (ClassLM(6, n_classes=3, **FALLBACK), 5),
        (paper_lm(3, n_distant=9, max_iter=1, random_state=0), 9),
        (paper_lm(3, n_memory=8, solver="adam", max_iter=1, random_state=0), 8),
        (energy_lm(3, n_distant=6, max_iter=1, random_state=0), 6),
        (NeuralCacheLM(NETWORK, length=7), 9),
        (ShortlistLM(NETWORK, KneserNeyLM(6, **FALLBACK)), 5),
        (MixtureLM([("a", KneserNeyLM(6, **FALLBACK)), ("b", "drop")]), 5),
        (
            MixtureLM(
                [("a", UniformLM()), ("b", clone(NETWORK).set_params(order=None))]
            ),
            4,
        ),
        (MixtureLM([("a", UniformLM())]), 2),
        (FrozenEstimator(UniformLM().fit(*windows([1, 2, 3, 0] * 3, 3))), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_windows_are_as_wide_as_the_estimator_needs(estimator, n_context):
    ids = [[1, 2, 3], [2, 1]] * 9
    lm = TextLM(estimator).fit(ids)
    assert lm.n_context == "auto"
    assert lm.n_context_ == lm.estimator_.n_features_in_ == n_context
    as_wide = TextLM(estimator, n_context=n_context)
    assert lm.score(ids) == as_wide.fit(ids).score(ids)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_fitted_in_a_text_model(name):
    network = NeuralLM.preset(name).set_params(
        n_hidden=4, embedding_dim=4, max_iter=1, early_stopping=False, random_state=0
    )
    lm = TextLM(network).fit(TEXTS * 9)
    needed = max(lm.estimator_.order_ - 1, network.n_distant, network.n_memory)
    assert lm.n_context_ == needed
    assert np.isfinite(lm.score(TEXTS))


def test_parameters_of_parts_that_auto_chooses_are_set():
    lm = TextLM(AddOneBigram())
    lm.set_params(tokenizer__lowercase=True, vocabulary__min_count=2)
    expected = TextLM(
        AddOneBigram(),
        tokenizer=Tokenizer(lowercase=True),
        vocabulary=Vocabulary(min_count=2),
    )
    texts = [text.upper() for text in TEXTS]
    assert lm.fit(texts).vocabulary_.ids_ == expected.fit(TEXTS).vocabulary_.ids_
    assert lm.get_params()["tokenizer__lowercase"] is True
    grid = {"tokenizer__lowercase": [False, True]}
    search = GridSearchCV(TextLM(AddOneBigram()), grid, cv=3, error_score="raise")
    assert search.fit([*TEXTS, *texts]).best_params_ == {"tokenizer__lowercase": True}
    lm.set_params(tokenizer="auto", tokenizer__number="#")  # not those of before
    assert lm.tokenizer.get_params() == Tokenizer(number="#").get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'lower' for estimator"):
        lm.set_params(tokenizer__lower=True)


def test_text_for_the_last_step_of_a_pipeline_is_refused_with_advice():
    model = pipeline().fit(TEXTS)
    for use in (model["lm"].next_words, lambda text: model["lm"].score([text])):
        with pytest.raises(TypeError, match=r"fitted on ids.*p\[:-1\]\.transform"):
            use("the cat")
    words = model[-1].next_words(model[:-1].transform(["the cat"])[0])[0]
    text_words = TextLM(AddOneBigram(), n_context=4).fit(TEXTS)
    text_words = text_words.next_words("the cat", unknown=True)[0]
    assert model["ids"].words_[words].tolist() == text_words


@pytest.mark.parametrize(
    "estimator",
    [KneserNeyLM(3, discount_fallback=0.5), paper_lm(3, max_iter=1, random_state=0)],
    ids=["n-grams", "network"],
)
def test_weights_of_documents_repeat_them(estimator):
    weights = np.arange(len(TEXTS)) % 3
    vocabulary = Vocabulary(min_count=2)
    lm = TextLM(estimator, 2, vocabulary=vocabulary).fit(TEXTS, sample_weight=weights)
    often = [text for text, n in zip(TEXTS, weights) for _ in range(n)]
    other = TextLM(estimator, 2, vocabulary=vocabulary).fit(often)
    assert lm.vocabulary_.words_.tolist() == other.vocabulary_.words_.tolist()
    np.testing.assert_array_equal(lm.score_samples(TEXTS), other.score_samples(TEXTS))
    weighted = lm.score(TEXTS, sample_weight=weights)
    assert weighted == pytest.approx(lm.score(often), rel=1e-12)
    for wrong in (-1, np.nan, np.inf, *[0.5] * isinstance(estimator, KneserNeyLM)):
        with pytest.raises(ValueError, match=rf"sample_weight\[1\]={wrong}.*0 or more"):
            lm.fit(TEXTS, sample_weight=[1, wrong, *weights[2:]])
    with pytest.raises(ValueError, match="sample_weight is 0 for every document"):
        lm.fit(TEXTS, sample_weight=np.zeros(len(TEXTS)))
    with pytest.raises(ValueError, match=rf"shape \(2,\), but X has {len(TEXTS)} doc"):
        lm.fit(TEXTS, sample_weight=[1, 2])
    with pytest.raises(TypeError):
        lm.fit((text for text in TEXTS), sample_weight=weights)


def test_a_pipeline_with_routed_metadata_is_searched():
    lm = TextLM(AddOneBigram())
    pipeline = make_pipeline(Tokenizer(), Vocabulary(), lm)
    expected = cross_val_score(pipeline, TEXTS, cv=3)
    with config_context(enable_metadata_routing=True):
        lm.set_fit_request(X_val=True)
        pipeline.set_params(transform_input=["X_val"])
        scores = cross_val_score(pipeline, TEXTS, cv=3, params={"X_val": TEXTS[:2]})
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize(
    "estimator",
    [
        paper_lm(max_iter=2, random_state=0),
        NeuralLM(
            3, n_memory=5, n_hidden=4, embedding_dim=3, random_state=0, max_iter=2
        ),
        energy_lm(max_iter=2, random_state=0),
    ],
    ids=["windows", "memory", "energy"],
)
def test_networks_take_fractions(estimator):
    weights = np.linspace(2.4, 0, len(TEXTS))
    lm = TextLM(estimator, 2).fit(TEXTS, sample_weight=weights)
    lengths = [len(text.split()) + 1 for text in TEXTS]
    assert lm.estimator_.n_seen_ == 2 * round(weights @ lengths)
    words = lm.vocabulary_.words_
    assert "sat" in words and "zebra" not in words  # of the text of weight 0


def test_scores_are_weighted():
    lm = TextLM(KneserNeyLM(2, discount_fallback=0.5)).fit(TEXTS)
    weights = np.linspace(0, 2.4, len(TEXTS))
    lengths = np.array([len(text.split()) + 1 for text in TEXTS])
    expected = weights @ lm.score_samples(TEXTS) / (weights @ lengths)
    assert lm.score(TEXTS, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"sample_weight\[0\]=-1.0: a document counts"):
        lm.score(TEXTS, sample_weight=-np.ones(len(TEXTS)))


def test_weights_of_documents_are_refused():
    for model in (LMClassifier(AddOneBigram()), LMDetector(AddOneBigram())):
        with pytest.raises(
            TypeError, match=r"no weights of documents.* repeat it in X"
        ):
            model.fit(TEXTS, TEXTS, sample_weight=np.ones(len(TEXTS)))
    network = TextLM(paper_lm(max_iter=1))
    with pytest.raises(TypeError, match="no weights of documents"):
        network.partial_fit(TEXTS, sample_weight=np.ones(len(TEXTS)))


def test_vocabulary_of_given_words_survives_clones_and_folds():
    words = Vocabulary(words=["cat", "the", "sat"])
    lm = TextLM(AddOneBigram(), vocabulary=words)
    assert clone(clone(lm)).fit(TEXTS).n_words_ == 5
    assert lm.fit(["sat"]).vocabulary_.ids_["sat"] == 4


def test_from_model_makes_a_text_model():
    fitted = text_lm()
    words = fitted.vocabulary_.words_.tolist()
    lm = TextLM.from_model(fitted.estimator_, words, boundary=0)
    split = [" ".join(tokens) for tokens in Tokenizer().transform(TEXTS)]
    assert lm.score(split) == fitted.score(TEXTS)
    [tokens] = Tokenizer().transform([fitted.generate("a", random_state=1)])
    assert lm.generate("a", random_state=1) == " ".join(tokens)
    assert lm.estimator_ is fitted.estimator_
    # A clone fitted to other documents is the same model.
    again = clone(lm).fit(["zoo"])
    np.testing.assert_array_equal(again.score_samples(split), lm.score_samples(split))
    closed = [words[0], "other", *words[2:]]
    lm = TextLM.from_model(fitted.estimator_, closed, boundary=0)
    with pytest.raises(ValueError, match=r"'zoo' is not among the .* words"):
        lm.score(["a zoo"])
    with pytest.raises(ValueError, match="n_words_"):
        TextLM.from_model(fitted.estimator_, ["a", "b"], boundary=0)
    with pytest.raises(ValueError, match="has no boundary"):
        TextLM.from_model(fitted.estimator_, closed)
    for boundary in (99, "</s>", 0.5):
        message = rf"boundary must be .* word id .*got {boundary!r}"
        with pytest.raises(ValueError, match=message):
            TextLM.from_model(fitted.estimator_, closed, boundary=boundary)
    with pytest.raises(TypeError, match="language model with log_prob"):
        TextLM.from_model(fitted, closed)
    # Without words, documents are ids.
    ids = fitted.vocabulary_.transform(Tokenizer().transform(TEXTS))
    lm = TextLM.from_model(fitted.estimator_, boundary=0)
    assert lm.score(ids) == fitted.score(TEXTS)


def test_an_estimator_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"the vocabulary has \d+ words.*n_words=20"):
        TextLM(AddOneBigram(n_words=20)).fit(TEXTS)


def test_windows_are_refused_as_documents():
    X, y = np.ones((3, 2), int), np.ones(3, int)
    with pytest.raises(ValueError, match="fit the estimator itself"):
        TextLM(AddOneBigram()).fit(X, y)


def test_words_of_texts_are_added():
    lm = TextLM(energy_lm(max_iter=1, random_state=0), n_context=2).fit(TEXTS)
    n_before = lm.n_words_
    assert lm.add_words(["the zoo sat on a zoo", "a gnu"]) is lm
    assert lm.vocabulary_.words_[n_before:].tolist() == ["zoo", "gnu"]
    assert lm.n_words_ == lm.estimator_.n_words_ == n_before + 2
    assert np.isfinite(lm.score(["the gnu"]))
    assert lm.add_words(["the cat"]).n_words_ == n_before + 2
    with pytest.raises(TypeError, match="cannot take new words"):
        text_lm().add_words(["zoo"])


def test_nearest_words():
    neural = paper_lm(n_hidden=2, embedding_dim=2, max_iter=1, random_state=0)
    lm = TextLM(neural, n_context=2).fit(TEXTS)
    ids, C = lm.vocabulary_.ids_, lm.estimator_.C_
    unit = C / np.linalg.norm(C, axis=1, keepdims=True)
    words, cosines = lm.nearest("cat", k=99)
    expected = [unit[ids[word]] @ unit[ids["cat"]] for word in words]
    np.testing.assert_allclose(cosines, expected, rtol=1e-5)
    assert (np.diff(cosines) <= 0).all()
    assert set(words) == ids.keys() - {"cat"}
    assert lm.nearest("cat", k=99, among=3)[0] == [w for w in words if ids[w] < 3]
    mixed = MixtureLM([("one", AddOneBigram()), ("nn", neural)])
    mixed = TextLM(mixed, n_context=2).fit(TEXTS)
    assert mixed.nearest("cat")[0] == lm.nearest("cat")[0]
    with pytest.raises(TypeError, match="no features of words"):
        text_lm().nearest("cat")
    with pytest.raises(ValueError, match="'zoo' is not in the vocabulary"):
        lm.nearest("zoo")


# -- the id 0 as a word -----------------------------------------------------------


def test_id_0_in_a_document_needs_a_boundary():
    documents = [[1, 0, 1, 2], [2, 1]]
    message = r"X\[0\] has the id 0 at position 1.* boundary=3\).*set boundary=0"
    with pytest.raises(ValueError, match=message):
        TextLM(AddOneBigram(), n_context=2).fit(documents)
    with pytest.raises(ValueError, match=r"X_val\[1\] has the id 0 at position 0"):
        TextLM(AddOneBigram()).fit([[1]], X_val=[[1], [0]])
    lm = TextLM(AddOneBigram()).fit([[1, 2]])
    for use in (lm.score, lm.score_samples, lm.perplexity):
        with pytest.raises(ValueError, match=r"X\[1\] has the id 0 at position 1"):
            use([[1, 2], [1, 0]])
    for use in (lm.next_words, lm.generate):
        with pytest.raises(ValueError, match="context has the id 0 at position 1"):
            use([1, 0])


def test_errors_in_held_out_documents_name_them():
    for documents, held_out in [
        (["a b", "b"], ["a", None]),
        (["a b", "b"], ["a", ["b"]]),
        ([["a", "b"], ["b"]], [["a"], None]),
        ([["a", "b"], ["b"]], [["a"], "b"]),
        ([[1, 2], [2]], [[1], None]),
    ]:
        for X_val in (held_out, lambda held_out=held_out: iter(held_out)):
            with pytest.raises(TypeError, match=r"^X_val\[1\] is "):
                TextLM(AddOneBigram()).fit(documents, X_val=X_val)


def test_advised_boundary_is_unused_in_training():
    with pytest.raises(ValueError, match=r"X_val\[0\] has the id 0.* boundary=4\)"):
        TextLM(AddOneBigram()).fit([[1, 2, 3]], X_val=[[0]])
    lm = TextLM(AddOneBigram()).fit([[1, 2, 3]])
    for use in (lm.score, lambda ids: lm.next_words(ids[0])):
        with pytest.raises(ValueError, match=r"has the id 0.* boundary=4\).*Then fit"):
            use([[0, 1]])


@pytest.mark.parametrize("boundary", [0, 3])
def test_id_0_is_a_word_with_another_boundary(boundary):
    """With order 3, the word before a 0 determines the word after it."""
    documents = [[1, 0, 1], [2, 0, 2]] * 10
    lm = TextLM(InterpolatedTrigram(), n_context=2, boundary=boundary)
    lm.fit(documents, X_val=documents)
    assert lm.boundary_ == boundary
    _, likely = lm.next_words([1, 0], k=1)
    assert (likely > 0.9) == (boundary == 3)


@pytest.mark.parametrize("boundary", [None, "0", -1, 0.5, True])
def test_invalid_boundary_is_refused(boundary):
    with pytest.raises(ValueError, match="boundary"):
        TextLM(AddOneBigram(), boundary=boundary).fit([[1, 2]])
