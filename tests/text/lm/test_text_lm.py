"""TextLM: documents of ids, tokens and text."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from nplm import (
    CacheLM,
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
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
from tests.helpers.texts import SENTENCES as TEXTS


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


def test_held_out_documents_reach_the_estimator():
    lm = TextLM(AddOneBigram()).fit([[1, 2]], X_val=[[1], [2]])
    assert lm.estimator_.n_held_out_ == 4
    assert TextLM(AddOneBigram()).fit([[1, 2]]).estimator_.n_held_out_ is None


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
    assert steps["lm"].estimator.n_words is None  # its clone has a size
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
    ("lm", "documents", "message"),
    [
        (TextLM(AddOneBigram(n_words=20)), (TEXTS,), r"has \d+ words.*n_words=20"),
        (TextLM(AddOneBigram()), (np.ones((3, 2), int), [1] * 3), "fit the estimator"),
        *(
            (TextLM(AddOneBigram(), boundary=boundary), ([[1, 2]],), "boundary")
            for boundary in (None, "0", -1, 0.5, True)
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(lm, documents, message):
    with pytest.raises(ValueError, match=message):
        lm.fit(*documents)


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


def test_interrupt_between_new_words_leaves_the_model_unchanged(monkeypatch):
    lm = TextLM(energy_lm(max_iter=1, random_state=0), n_context=2).fit(TEXTS)
    before, model, scores = dict(vars(lm)), lm.estimator_, lm.score_samples(TEXTS)
    add_words, calls = EnergyLM.add_words, []

    def interrupted(self, X, y):
        calls.append(y)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return add_words(self, X, y)

    monkeypatch.setattr(EnergyLM, "add_words", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lm.add_words(["the zoo gnu"])  # the context of the second has the first
    assert len(calls) == 2
    assert vars(lm) == before
    assert model.n_words_ == lm.n_words_ == len(lm.vocabulary_.words_)
    np.testing.assert_array_equal(lm.score_samples(TEXTS), scores)


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
    message = r"X_val\[1\] has the id 0 at position 0.* boundary=4\)"
    with pytest.raises(ValueError, match=message):
        TextLM(AddOneBigram()).fit([[1, 2, 3]], X_val=[[1], [0]])
    # The advised boundary is unused in training.
    lm = TextLM(AddOneBigram()).fit([[1, 2, 3]])
    advice = r"has the id 0 at position 1.* boundary=4\).*Then fit"
    for use in (lm.score, lm.score_samples, lm.perplexity):
        with pytest.raises(ValueError, match=r"X\[1\] " + advice):
            use([[1, 2], [1, 0]])
    for use in (lm.next_words, lm.generate):
        with pytest.raises(ValueError, match="context " + advice):
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


@pytest.mark.parametrize("boundary", [0, 3])
def test_id_0_is_a_word_with_another_boundary(boundary):
    """With order 3, the word before a 0 determines the word after it."""
    documents = [[1, 0, 1], [2, 0, 2]] * 10
    lm = TextLM(InterpolatedTrigram(), n_context=2, boundary=boundary)
    lm.fit(documents, X_val=documents)
    assert lm.boundary_ == boundary
    _, likely = lm.next_words([1, 0], k=1)
    assert (likely > 0.9) == (boundary == 3)
