"""Networks with LSTM cells read texts: their state goes on from word to word."""

import numpy as np
import pytest
from scipy.special import logsumexp

import nplm
from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    TextLM,
    Tokenizer,
    windows,
)
from nplm.base.blocks import Texts
from nplm.models.neural.network.network_scorer import columns_of
from nplm.text.lm.fitted_text import fitted_text
from tests.helpers import peak_of, text
from tests.helpers.texts import texts
from tests.reference.neural.lstm import Memory, lstm

SMALL = dict(
    order=2, n_words=12, n_hidden=5, embedding_dim=3, n_memory=9, batch_size=64,
    max_iter=2, dropout=0, random_state=0,
)  # fmt: skip
IDS, HELD_OUT = text(1500), text(700, seed=1)
LENGTHS = [1, 2, 3, 4, 5, 200, 3, 100, 7, 80, 1, 50]
DOCUMENTS = np.split(IDS[: sum(LENGTHS)], np.cumsum(LENGTHS)[:-1])


def reading(**settings):
    return NeuralLM(**SMALL | settings)


def word_by_word(lm, ids):
    """Score a text by the twin of the cells, one after another."""
    n = lm.order - 1
    contexts = np.lib.stride_tricks.sliding_window_view(np.array(ids)[:-1], n)
    x = lm.C_[contexts[:, ::-1]].reshape(len(contexts), -1)
    a = lstm(lm.V_, lm.d_ + x @ lm.H_.T, Memory(np.arange(len(x)), {0: None}))[0]
    logits = lm.b_ + a @ lm.U_.T
    return logits[np.arange(len(x)), ids[n:]] - logsumexp(logits, axis=1)


@pytest.mark.parametrize("order", [2, 3])
def test_the_state_goes_on_within_a_text_and_no_further(order):
    lm = reading(order=order, precision="float64").fit_stream(IDS)
    assert lm.n_features_in_ == lm.n_memory  # of windows to score alone
    want = word_by_word(lm, HELD_OUT)
    np.testing.assert_allclose(lm.log_prob_stream(HELD_OUT), want, rtol=1e-12)
    want = [word_by_word(lm, ids) for ids in DOCUMENTS if len(ids) >= order]
    found = lm.log_prob_stream(DOCUMENTS)
    np.testing.assert_allclose(found, np.concatenate(want), rtol=1e-12)


@pytest.mark.parametrize(("n_columns", "n_rows"), [(2, 350), (7, 100), (64, 11)])
def test_columns_of_a_text_begin_with_words_that_do_not_count(n_columns, n_rows):
    lm = reading(precision="float64").fit_stream(IDS)
    want = [
        word_by_word(lm, HELD_OUT[max(i - 9, 0) : i + n_rows + 1])[min(i, 9) :]
        for i in range(0, 699, n_rows)
    ]
    found = lm.log_prob_stream(HELD_OUT, n_columns=n_columns)
    np.testing.assert_allclose(found, np.concatenate(want), rtol=1e-12)
    assert lm.score_stream(HELD_OUT, n_columns=n_columns) == found.mean()
    lm.set_params(n_jobs=3)
    again = lm.log_prob_stream(HELD_OUT, n_columns=n_columns)
    np.testing.assert_array_equal(again, found)


def test_columns_change_no_documents_and_no_network_of_windows():
    for lm, ids in [(reading(), DOCUMENTS), (reading(n_memory=0), HELD_OUT)]:
        lm.fit_stream(IDS)
        np.testing.assert_array_equal(
            lm.log_prob_stream(ids, n_columns=5), lm.log_prob_stream(ids)
        )
    with pytest.raises(ValueError, match="n_columns == 65"):
        lm.log_prob_stream(IDS, n_columns=65)


@pytest.mark.parametrize("output", ["softmax", "classes", "tree"])
@pytest.mark.parametrize("n_hidden", [5, (5, 7)])
def test_documents_have_the_same_bits_alone_and_among_others(output, n_hidden):
    lm = reading(output=output, n_hidden=n_hidden).fit_stream(IDS)
    scores = lm.log_prob_stream([HELD_OUT, *DOCUMENTS])
    alone = [lm.log_prob_stream(ids) for ids in (HELD_OUT, *DOCUMENTS) if len(ids) > 1]
    np.testing.assert_array_equal(scores, np.concatenate(alone))
    lm.set_params(n_jobs=3)
    np.testing.assert_array_equal(lm.log_prob_stream([HELD_OUT, *DOCUMENTS]), scores)


def test_held_out_text_is_scored_as_a_text():
    lm = reading(early_stopping=True).fit_stream(IDS, HELD_OUT)
    assert lm.val_loss_ == pytest.approx(-lm.score_stream(HELD_OUT), rel=1e-3)
    lm.fit_stream(IDS, DOCUMENTS)
    assert lm.val_loss_ == pytest.approx(-lm.score_stream(DOCUMENTS), rel=0.01)
    other = reading(early_stopping=True)
    val = windows(HELD_OUT, 9)
    other.fit(*windows(IDS, 9), X_val=val[0], y_val=val[1])
    first = lm.log_prob_stream(HELD_OUT)[8:]
    assert other.val_loss_ == pytest.approx(-first.mean(), rel=0.01)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_documents_are_cut_within_the_runs_of_a_mini_batch(n_jobs):
    # No document begins with the word that another ends with.
    documents = [np.r_[i % 6, ids % 6, 6 + i % 6] for i, ids in enumerate(DOCUMENTS)]
    documents *= 3
    cut = [windows(ids, 1) for ids in documents]
    X, y = (np.concatenate(parts) for parts in zip(*cut))
    settings = dict(precision="float64", early_stopping=False, n_jobs=n_jobs)
    lm = reading(**settings).fit_stream(documents)
    with pytest.warns(UserWarning, match=r"X has 1 column, and n_memory=9: .*stream"):
        assert reading(**settings).fit(X, y).score(X, y) < 0
    other = reading(**settings).fit(X, y)
    scores = other.log_prob_stream(documents)
    np.testing.assert_allclose(lm.log_prob_stream(documents), scores, rtol=1e-9)


def test_narrow_windows_of_a_text_train_the_same_network(tmp_path):
    lm = reading(early_stopping=False).fit_stream(IDS)
    narrow = reading(early_stopping=False).fit(*windows(IDS, 1))
    scores = lm.log_prob_stream(HELD_OUT)
    np.testing.assert_array_equal(narrow.log_prob_stream(HELD_OUT), scores)
    assert (lm.n_features_in_, narrow.n_features_in_) == (9, 1)
    nplm.save(narrow, tmp_path / "lm")
    loaded = nplm.load(tmp_path / "lm")
    np.testing.assert_array_equal(loaded.log_prob_stream(HELD_OUT), scores)
    X, _ = windows(HELD_OUT, 1)
    np.testing.assert_array_equal(loaded.predict_proba(X), narrow.predict_proba(X))


@pytest.mark.parametrize("lengths", [[5], [1] * 200, [20] * 600, [0, 3, 0, 600, 2, 90]])
def test_texts_are_read_side_by_side(lengths):
    own = [np.zeros(n, np.int32) for n in lengths]
    read = list(columns_of(Texts.of(own, 1, 7, ends=True), slice(0, len(own))))
    tokens = np.concatenate([tokens for _, tokens in read])
    assert sorted(tokens) == list(range(sum(lengths) + len(lengths)))
    assert max(len(rows) for rows, _ in read) <= 512
    every, before = np.concatenate([rows for rows, _ in read]), set()
    for rows, _ in read:
        assert before <= set(rows)  # the next rows of texts that go on
        before = (set(rows + 1) & set(every)) - set(rows)


def test_a_long_text_takes_no_memory_for_its_windows():
    ids = np.resize(IDS, 1 << 17).astype(np.int32)
    lm = reading(early_stopping=False, n_memory=64, batch_size=512, max_iter=1)
    lm.fit_stream(IDS)
    peak = peak_of(lambda: lm.fit_stream(ids), lambda: lm.log_prob_stream(ids))
    assert peak < 100 * len(ids)  # windows of n_memory words had 260 bytes a token


# -- documents of TextLM -----------------------------------------------------------

MODELS = {
    "network": reading(n_words=None),
    "classes": reading(n_words=None, output="classes"),
    "mixture": MixtureLM(
        [("kn", InterpolatedTrigram()), ("n", reading(n_words=None))], max_iter=500
    ),
    "by context": MixtureLM(
        [("kn", KneserNeyLM(3)), ("n", reading(n_words=None))], "context"
    ),
}
TEXTS = [*texts(20, 14, seed=2), "", "zoo w1 zoo", " ".join(texts(60, seed=3))]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    lm = TextLM(MODELS[request.param], tokenizer=Tokenizer(r"\S+"))
    return lm.fit(texts(150), X_val=texts(30, seed=1))


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")
def test_documents_are_scored_without_windows(fitted, monkeypatch):
    monkeypatch.setattr(Texts, "windows", None)
    scores = fitted.score_samples(TEXTS)
    np.testing.assert_array_equal(fitted.score_samples(TEXTS[::-1]), scores[::-1])
    n = sum(len(t.split()) + 1 for t in TEXTS)
    assert fitted.score(TEXTS) == pytest.approx(scores.sum() / n)
    assert fitted.perplexity(TEXTS) == pytest.approx(np.exp(-scores.sum() / n))
    inside = fitted.score_samples(["w1 w2 </s> w3"])
    apart = fitted.score_samples(["w1 w2", "w3"])
    assert inside.sum() == pytest.approx(apart.sum())


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")
def test_a_step_of_a_scorer_is_one_step_of_the_cells(fitted):
    scorer = fitted.scorer()
    for words in map(str.split, TEXTS):
        state, total = scorer.begin(), 0.0
        for word in words:
            assert len(state) <= 4  # whatever the history
            log_prob, after = scorer.step(state, word)
            assert scorer.candidates(state, ["w1", word])[1] == log_prob
            state, total = after, total + log_prob
        whole = scorer.score(" ".join(words))
        assert total + scorer.end(state) == pytest.approx(whole, rel=1e-5)
    assert scorer.step(state, "</s>")[1] == scorer.begin()
    log_probs, states = scorer.steps([state, scorer.begin()] * 3, ["w1", "zoo"] * 3)
    single = [scorer.step(*pair) for pair in ((state, "w1"), (scorer.begin(), "zoo"))]
    assert list(zip(log_probs, states)) == single * 3


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")
def test_words_go_on_from_the_whole_context(fitted):
    context = " ".join(texts(150, seed=3))
    assert len(context.split()) > 520
    for before in (context, "w1", "", f"{context} </s> w2"):
        scorer, state = fitted.scorer(), fitted.scorer().begin()
        for word in before.split():
            _, state = scorer.step(state, word)
        words, proba = fitted.next_words(before, k=3, unknown=True)
        want = np.exp(scorer.candidates(state, words))
        np.testing.assert_allclose(proba, want, rtol=1e-5)
    drawn = fitted.generate(context, n=5, max_words=9, top_k=1, random_state=0)
    assert drawn == [fitted.generate(context, max_words=9, top_k=1)] * 5
    document = fitted_text(fitted).codec.encode_one(context, "context")
    scorer, state = fitted.scorer(), fitted_text(fitted).state_after(document)
    state = (*state[0].tolist(), state[1])
    for word in drawn[0].split():
        best = scorer.candidates(state, fitted.vocabulary_.words_.tolist())
        best[fitted.vocabulary_.unknown_id_] = -np.inf
        assert fitted.vocabulary_.words_[best.argmax()] == word
        _, state = scorer.step(state, word)


def test_mixtures_read_texts():
    members = [("kn", InterpolatedTrigram()), ("n", reading())]
    lm = MixtureLM(members, n_words=12).fit_stream(IDS, HELD_OUT)
    kn, network = lm.estimators_
    scores = lm.log_prob_stream(HELD_OUT)
    parts = [kn.log_prob_stream(HELD_OUT), network.log_prob_stream(HELD_OUT)[1:]]
    want = logsumexp(parts, axis=0, b=lm.weights_[:, None])
    np.testing.assert_allclose(scores, want, rtol=1e-12)
    assert lm.n_features_in_ == 9
    with pytest.warns(UserWarning, match="n_memory=9"):
        reading().fit(*windows(IDS, 2)).score(*windows(IDS, 2))
