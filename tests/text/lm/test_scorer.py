"""Scorer and token_scores: the same scores as those of windows."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from nplm import (
    KneserNeyLM,
    TextLM,
    Vocabulary,
    windows,
)
from nplm._kernels.ngrams.decoding._word_scorer import WordScorer
from nplm.formats import load_binary, save_binary
from tests.helpers import small_text
from tests.helpers.models import BLANKS, fitted_to_texts
from tests.helpers.models import SCORED as MODELS
from tests.helpers.texts import texts

pytestmark = small_text


@pytest.fixture(scope="module")
def models():
    return {name: fitted_to_texts(model) for name, model in MODELS.items()}


def windows_score(lm, text, eos=True):
    """Score the windows of a text, with the model's own validation."""
    ids = lm.vocabulary_.transform([text.split()])[0].tolist() + [0] * eos
    total = 0.0
    for i, word in enumerate(ids):
        before = [0] * lm.n_context_ + ids[:i]
        nearest = before[-lm.n_context_ :]
        for j in range(len(nearest) - 2, -1, -1):
            nearest[j] = 0 if nearest[j + 1] == 0 else nearest[j]
        total += lm.estimator_.log_prob([nearest], [word])[0]
    return total


# Unknown words, an empty text, one longer than a chunk, and a boundary inside.
CASES = [
    *texts(20, 14, seed=2),
    "",
    "zoo w1 zoo zoo w1",
    " ".join(texts(20, seed=3)),
    "w1 w2 </s> w1 w2 w3 </s>",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_sentence_score_equals_score_of_its_windows(models, name):
    lm = models[name]
    scorer = lm.scorer()
    expected = [windows_score(lm, text) for text in CASES]
    assert_allclose([scorer.score(text) for text in CASES], expected, rtol=1e-5)
    assert_allclose(scorer.score_many(iter(CASES)), expected, rtol=1e-5)
    assert_allclose(lm.score_samples(CASES), expected, rtol=1e-5)
    tokens = [text.split() for text in CASES]
    assert_allclose(scorer.score_many(tokens), expected, rtol=1e-5)
    open_ended = [windows_score(lm, text, eos=False) for text in CASES]
    assert_allclose(
        [scorer.score(text, eos=False) for text in CASES], open_ended, rtol=1e-5
    )
    assert_allclose(scorer.score_many(CASES, eos=False), open_ended, rtol=1e-5)
    assert len(scorer.score_many([])) == 0


@pytest.mark.parametrize("name", MODELS)
def test_steps_and_candidates_add_up_to_the_sentence(models, name):
    scorer = models[name].scorer()
    for text in CASES:
        state, total = scorer.begin(), 0.0
        for word in text.split():
            every = scorer.candidates(state, [word, "w1", "zoo", "</s>"] * 9)
            log_prob, state = scorer.step(state, word)
            assert_allclose(every[::4], log_prob, rtol=1e-5)
            total += log_prob
        assert_allclose(total + scorer.end(state), scorer.score(text), rtol=1e-5)
    assert len(scorer.candidates(scorer.begin(), [])) == 0


@pytest.mark.parametrize("name", MODELS)
def test_steps_have_the_bits_of_single_steps(models, name):
    rng = np.random.default_rng(5)
    batched, single = models[name].scorer(), models[name].scorer()
    states = others = [single.begin()] * 30
    for _ in range(5):
        words = [f"w{i}" for i in rng.zipf(1.5, 30) % 14]  # some are unknown
        log_prob, states = batched.steps(states, words)
        one_by_one = [single.step(*pair) for pair in zip(others, words)]
        assert log_prob.dtype == np.float64
        assert_array_equal(log_prob, [own for own, _ in one_by_one])
        others = [after for _, after in one_by_one]
        assert states == others
    assert [batched.end(s) for s in states] == [single.end(s) for s in others]
    log_prob, states = batched.steps([], [])
    assert len(log_prob) == len(states) == 0
    with pytest.raises(ValueError, match="1 states and 2 words"):
        batched.steps([single.begin()], ["w1", "w2"])


@pytest.mark.parametrize("name", ["network", "mixture"])
def test_hypotheses_with_one_context_are_computed_once(models, name, monkeypatch):
    lm, asked = models[name], []
    predict = type(lm.estimator_).predict_log_proba

    def counted(self, X):
        asked.extend(map(tuple, X.tolist()))
        return predict(self, X)

    scorer = lm.scorer()
    monkeypatch.setattr(type(lm.estimator_), "predict_log_proba", counted)
    begin = scorer.begin()
    _, states = scorer.steps([begin] * 4, ["w1", "w2", "w1", "w3"])
    assert asked == [begin]
    scorer.steps([*states, begin], ["w1", "w1", "w2", "w1", "w4"])
    assert asked == [begin, *dict.fromkeys(states)]
    scorer.step(states[0], "w5")
    scorer.end(states[1])
    scorer.candidates(states[3], ["w1", "w2"])
    assert len(asked) == 4


@pytest.mark.parametrize("bits", [None, 8])
@pytest.mark.parametrize("name", ["Kneser-Ney", "pruned"])
@pytest.mark.parametrize("order", range(2, 7))
def test_ngram_scores_equal_window_scores_bit_for_bit(tmp_path, name, order, bits):
    """Words are looked up one by one, by sentence, and in blocks of sentences."""
    lm = fitted_to_texts(MODELS[name], order - 1)
    documents = lm.vocabulary_.transform([text.split() for text in CASES])
    save_binary(lm.estimator_, tmp_path / "file", lm.vocabulary_.words_, bits=bits)
    lm = TextLM.from_model(*load_binary(tmp_path / "file"), tokenizer=BLANKS)
    scorer = lm.scorer()
    for text, scores in zip(CASES, lm.token_scores(CASES), strict=True):
        state, steps = scorer.begin(), []
        for word in text.split():
            log_prob, state = scorer.step(state, word)
            steps.append(log_prob)
        steps.append(scorer.end(state))
        assert_array_equal(scores.log_prob, steps)
    windows = TextLM.from_model(lm.estimator_, boundary=0)
    assert_allclose(windows.score_samples(documents), lm.score_samples(CASES), 1e-14)
    tokens = scorer.tokens(CASES)
    by_sentence = np.empty(len(tokens.ids)), np.empty(len(tokens.ids), np.int32)
    ids = np.concatenate(documents).astype(np.int32)
    lengths = np.array([len(document) for document in documents])
    WordScorer.fill_tokens(scorer.word_scorer, ids, lengths, True, True, *by_sentence)
    assert_array_equal((tokens.log_prob, tokens.order), by_sentence)


@pytest.mark.parametrize("name", ["Kneser-Ney", "pruned", "network"])
def test_many_sentences_have_the_scores_of_each(models, name):
    scorer = models[name].scorer()
    as_words = [text.split() for text in CASES]
    for eos in (True, False, 2, 0):
        expected = [scorer.score(text, eos=eos) for text in CASES]
        for sentences in (
            CASES * 6,
            (text for text in CASES * 6),
            [*CASES, *as_words, *CASES * 4],
            as_words * 6,
        ):
            together = scorer.score_many(sentences, eos=eos)
            assert_allclose(
                together, expected * 6, rtol=0 if name != "network" else 1e-6
            )
    assert scorer.score_many(iter([])).shape == (0,)


def test_words_that_the_model_does_not_know_are_refused():
    lm = fitted_to_texts(KneserNeyLM())
    before = lm.scorer()
    lm.vocabulary_.add_words(["new"])
    assert before.score_many(["w1 new"]) == [before.score("w1 new")]
    scorer = lm.scorer()
    for use in (
        lambda: scorer.score("w1 new"),
        lambda: scorer.score_many(["w1 new"]),
        lambda: scorer.tokens(["w1 new"]),
        lambda: lm.token_scores(["w1 new"]),
    ):
        with pytest.raises(ValueError, match="knows 14 words: the vocabulary is not"):
            use()


@pytest.mark.parametrize("name", ["Kneser-Ney", "pruned"])
def test_equal_states_give_equal_probabilities(models, name):
    scorer = models[name].scorer()
    words = [f"w{i}" for i in range(12)]
    found = {}
    for text in texts(400, seed=4):
        state = scorer.begin()
        for word in text.split():
            state = scorer.step(state, word)[1]
        after = [scorer.step(state, word)[1] for word in words[:4]]
        futures = [scorer.candidates(s, words) for s in (state, *after)]
        if state in found:
            assert_array_equal(futures, found[state])
            assert after == [scorer.step(state, word)[1] for word in words[:4]]
        found[state] = futures
    assert 3 < len(found) < 250
    assert scorer.begin() == scorer.step(state, "</s>")[1] != state
    assert state != "something else"
    # A state has the last words only, fewer if no longer n-gram exists.
    assert scorer.begin(bos=False).words == ()
    assert len({state.words for state in found}) == len(found)


def test_stream_state_depends_on_all_words():
    """The first words of a long stream are contexts without n-grams."""
    rest = np.random.default_rng(0).zipf(1.5, 500) % 9 + 4
    ids = np.concatenate([[1, 2, 3, 1], rest])
    model = KneserNeyLM(4, n_words=13).fit_stream(ids)
    assert not model.index_.closed
    scorer = TextLM.from_model(model, boundary=0).scorer()
    _, state = scorer.step(scorer.begin(), 5)
    assert state.words == (0, 0, 5)
    with pytest.raises(ValueError, match="13 is not a word id"):
        scorer.step(state, 13)
    with pytest.raises(ValueError, match="-1 is not a word id"):
        scorer.score([-1])


@pytest.mark.parametrize("closed", [True, False])
def test_quantized_states_are_as_long_as_later_probabilities_need(tmp_path, closed):
    rest = np.random.default_rng(0).zipf(1.5, 500) % 9 + 4
    rest[9::10] = 0 if closed else 4
    # The first words of a stream are contexts without n-grams.
    ids = rest if closed else [1, 2, 3, 1, *rest]
    model = KneserNeyLM(4, n_words=13, boundary=0 if closed else None)
    model.fit_stream(ids)
    save_binary(model, tmp_path / "bits", [f"w{i}" for i in range(13)], bits=8)
    quantized, _ = load_binary(tmp_path / "bits")
    assert quantized.trie_.closed == model.index_.closed == closed
    lm = TextLM.from_model(quantized, boundary=0)
    scorer, states = lm.scorer(), set()
    for length in range(1, 40):
        words = np.random.default_rng(length).integers(1, 13, length)
        state, total = scorer.begin(), 0.0
        for word in words.tolist():
            log_prob, state = scorer.step(state, word)
            total += log_prob
        states.add(state)
        total += scorer.end(state)
        X, y = windows(np.append(words, 0), 3, boundary=0)
        assert_allclose(total, quantized.log_prob(X, y).sum(), 1e-12)
        assert_allclose(scorer.score(words.tolist()), total, 1e-14)
    assert (min(len(state.words) for state in states) < 3) == closed


@pytest.mark.parametrize("bits", [None, 12])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_sentences_begin_after_all_boundaries_that_the_model_has(tmp_path, bits, order):
    """Several boundaries together are n-grams of a stream of which some are empty."""
    n_words = 5
    ids = np.random.default_rng(order).integers(0, n_words, 900)
    ids[100:110] = 0
    ids = np.append(ids, ids[: order - 1])  # each context has a next word
    model = KneserNeyLM(n_words=n_words, discount_fallback=(0.5, 1, 1.5))
    model.fit(*windows(ids, order - 1))
    save_binary(model, tmp_path / "file", [f"w{i}" for i in range(n_words)], bits=bits)
    model, _ = load_binary(tmp_path / "file")
    assert (model.trie_ if bits else model.index_).closed
    lm = TextLM.from_model(model, boundary=0)
    scorer, words = lm.scorer(), np.arange(n_words)
    X = np.zeros((n_words, order - 1), dtype=np.int32)
    assert scorer.begin().words == (0,) * (order - 1)
    found = scorer.candidates(scorer.begin(), words.tolist())
    assert_allclose(found, model.log_prob(X, words), 1e-12)
    [scores] = lm.token_scores([ids[:60]])
    X, y = windows(np.append(ids[:60], 0), order - 1, boundary=0)
    assert_allclose(scores.log_prob, model.log_prob(X, y), 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda words: words.append("w2"), "more than 3 words"),
        (lambda words: words.pop(), "fewer than 3 words"),
    ],
)
def test_candidates_of_a_list_that_changes_its_length_are_refused(
    models, change, message
):
    """Nothing is written beyond the array, and no number of it is left unset."""

    class Changing:
        def __hash__(self):
            change(words)
            return 0

    scorer = models["Kneser-Ney"].scorer()
    words = [Changing(), "w2", "w3"]
    with pytest.raises(ValueError, match=message):
        scorer.candidates(scorer.begin(), words)


def test_token_scores_have_the_order_of_the_ngram_found(models):
    lm = models["Kneser-Ney"]
    [scores] = lm.token_scores(["w1 zoo w1 w2"])
    assert scores.words == ["w1", "<unk>", "w1", "w2", "</s>"]
    assert scores.unknown.tolist() == [False, True, False, False, False]
    assert_allclose(scores.log_prob.sum(), lm.score_samples(["w1 zoo w1 w2"])[0])
    # The longest n-gram in the trie, found by its words.
    ids = lm.vocabulary_.transform([["</s>"] * 3 + scores.words])[0]
    trie = lm.estimator_.trie_
    for i, order in enumerate(scores.order, 3):
        has = [
            k
            for k in range(1, 5)
            if trie.index(ids[None, i - k + 1 : i], ids[i : i + 1])[0] >= 0
        ]
        assert order == max(has)
    assert scores.weights is None


def test_token_scores_have_the_weights_of_members(models):
    text = ["w1 w2", "", "w3"]
    for scores in models["mixture"].token_scores(text):
        assert_array_equal(scores.weights, np.full((len(scores.words), 2), 0.5))
        assert scores.order is None
    lm = models["trigram"]
    scores = lm.token_scores(text)
    assert [len(s.weights) for s in scores] == [3, 1, 2]
    assert_allclose(scores[0].weights.sum(axis=1), 1)
    contexts = np.array([[0, 0], [0, lm.vocabulary_.ids_["w1"]]])
    expected = lm.estimator_.member_weights(contexts.astype(np.int32))
    assert_array_equal(scores[0].weights[:2], expected)


@pytest.mark.parametrize("name", MODELS)
def test_bos_and_eos_are_chosen_per_score(models, name):
    lm = models[name]
    whole, cut = lm.token_scores(["w1 w2"])[0], lm.token_scores(["w1 w2"], eos=False)[0]
    assert cut.words == ["w1", "w2"]
    assert_array_equal(cut.log_prob, whole.log_prob[:2])
    assert len(lm.token_scores([""], eos=False)[0].words) == 0
    for use in (
        lambda: lm.token_scores(["w1 w2"], bos=False),
        lambda: lm.scorer().score("w1 w2", bos=False),
        lambda: lm.scorer().begin(bos=False),
    ):
        if name in ("Kneser-Ney", "pruned"):
            use()
            continue
        with pytest.raises(ValueError, match="only backoff n-grams"):
            use()


@pytest.mark.parametrize("name", ["Kneser-Ney", "network"])
def test_unknown_words_without_a_symbol_are_refused(name):
    lm = fitted_to_texts(MODELS[name], vocabulary=Vocabulary(unknown=None))
    scorer = lm.scorer()
    for use in (
        lambda: scorer.score("w1 zoo"),
        lambda: scorer.step(scorer.begin(), "zoo"),
        lambda: scorer.candidates(scorer.begin(), ["w1", "zoo"]),
        lambda: scorer.score_many(["w1", "zoo"]),
        lambda: lm.score_samples(["zoo"]),
        lambda: lm.token_scores(["zoo"]),
    ):
        with pytest.raises(ValueError, match=r"'zoo' .*unknown words are refused"):
            use()


def test_missing_token_is_not_an_unknown_word():
    lm = TextLM(KneserNeyLM()).fit([["a", "b"], ["b"]])
    for missing in (None, float("nan")):
        for use in (lm.scorer().score, lambda words: lm.score_samples([words])):
            with pytest.raises(TypeError, match="a token is missing"):
                use(["a", missing])


def test_scorer_keeps_the_model_it_was_made_from(models):
    lm = pickle.loads(pickle.dumps(models["Kneser-Ney"]))
    scorer = lm.scorer()
    before = scorer.score("w1 w2")
    lm.fit(["w2 w1"] * 50 + texts(10))
    assert scorer.score("w1 w2") == before != lm.scorer().score("w1 w2")


@pytest.mark.parametrize("name", MODELS)
def test_scorers_and_states_pickle(models, name):
    scorer = models[name].scorer()
    again = pickle.loads(pickle.dumps(scorer))
    assert_array_equal(again.score_many(CASES), scorer.score_many(CASES))
    assert again.score(["w1", "w2"], eos=False) == scorer.score("w1 w2", eos=False)
    for words in ([], ["w1"], ["w1", "w2", "w0", "w5"], ["w3", "</s>"]):
        state = scorer.begin()
        for word in words:
            state = scorer.step(state, word)[1]
        sent = pickle.loads(pickle.dumps(state))
        assert sent == state
        assert hash(sent) == hash(state)
        log_prob, after = scorer.step(state, "w1")
        assert again.step(sent, "w1") == (log_prob, after)
        assert again.end(sent) == scorer.end(state)


class Unigrams(BaseEstimator):
    """A model of windows with what a text model needs, and no base of nplm."""

    def fit(self, X, y):
        self.n_features_in_, self.n_words_ = X.shape[1], int(y.max()) + 1
        self.prob_ = np.bincount(y) / len(y)
        return self

    def log_prob(self, X, y):
        assert X.shape == (len(y), self.n_features_in_)
        return np.log(self.prob_[y])


@pytest.mark.parametrize("n_context", [1, 4, 70])
def test_any_model_of_windows_scores_text(n_context):
    lm = TextLM(Unigrams(), n_context).fit([[1, 2, 1], [1]])
    expected = np.log([3 / 6 * 1 / 6 * 2 / 6, 3 / 6 * 2 / 6])
    assert_allclose(lm.score_samples([[1, 2], [1]]), expected)
    assert_allclose(lm.scorer().score_many([[1, 2], [1]]), expected)
