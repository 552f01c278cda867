"""Streams: texts and documents that models fit and score without windows."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from nplm import KneserNeyLM, NeuralLM, windows
from tests.helpers import peak_of, text
from tests.helpers.models import neural_lm, small_models

N_WORDS = 12
IDS, HELD_OUT = text(1500), text(300, seed=1)
LENGTHS = [1, 2, 3, 4, 5, 40, 3, 100, 7, 80] * 5
DOCUMENTS = np.split(IDS[: sum(LENGTHS)], np.cumsum(LENGTHS)[:-1])
MODELS = small_models(N_WORDS)
pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


def model(name):
    """Return a model whose windows have three columns."""
    lm = clone(MODELS[name])
    values = {"order": 4, "length": 3}
    own = {key: values.get(key.split("__")[-1]) for key in lm.get_params()}
    return lm.set_params(**{key: value for key, value in own.items() if value})


def cut(texts):
    """Return the windows of each text, concatenated."""
    own = [windows(ids, 3) for ids in texts if len(ids) > 3]
    return tuple(np.concatenate(parts) for parts in zip(*own))


def held_out_of(X_val, y_val):
    return {"X_val": X_val, "y_val": y_val}


@pytest.mark.parametrize("name", MODELS)
def test_a_text_has_the_bits_of_its_windows(name):
    lm, other = model(name).fit_stream(IDS, HELD_OUT), model(name)
    X, y = windows(HELD_OUT, 3)
    other.fit(*windows(IDS, 3), **held_out_of(X, y))
    np.testing.assert_array_equal(lm.log_prob(X, y), other.log_prob(X, y))
    scores = lm.log_prob_stream(HELD_OUT)
    np.testing.assert_array_equal(scores[len(scores) - len(y) :], lm.log_prob(X, y))
    assert len(scores) == len(HELD_OUT) - max(lm.order_ - 1, 1)
    assert lm.score_stream(HELD_OUT) == scores.mean()
    assert lm.n_features_in_ == 3


@pytest.mark.parametrize("name", MODELS)
def test_documents_do_not_depend_on_each_other(name):
    lm = model(name).fit_stream(DOCUMENTS, DOCUMENTS[-9:])
    scores = lm.log_prob_stream(DOCUMENTS)
    long = [ids for ids in DOCUMENTS if len(ids) > max(lm.order_ - 1, 1)]
    alone = [lm.log_prob_stream(ids) for ids in long]
    np.testing.assert_array_equal(scores, np.concatenate(alone))
    if not isinstance(lm, KneserNeyLM):  # which counts the shorter n-grams, too
        other = model(name)
        other.fit(*cut(DOCUMENTS), **held_out_of(*cut(DOCUMENTS[-9:])))
        X, y = windows(HELD_OUT, 3)
        np.testing.assert_array_equal(lm.log_prob(X, y), other.log_prob(X, y))


@pytest.mark.parametrize("boundary", [0, 5])
def test_a_boundary_begins_and_ends_documents(boundary):
    documents = [ids[ids != boundary] for ids in [*DOCUMENTS, IDS[:0]]]
    lm = KneserNeyLM(4, n_words=N_WORDS, boundary=boundary).fit_stream(documents)
    scores = lm.log_prob_stream(documents)
    want = []
    for ids in documents:
        filled = [boundary] * 3 + [*ids, boundary]
        X, y = windows(filled, 3)
        want += lm.log_prob(X, y).tolist()
    np.testing.assert_array_equal(scores, want)
    joined = np.concatenate([[*ids, boundary] for ids in documents])
    X, y = windows(joined, 3, boundary=boundary)
    np.testing.assert_array_equal(lm.log_prob_stream(joined), lm.log_prob(X, y))
    np.testing.assert_array_equal(scores, lm.log_prob(X, y))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "ids is empty"),
        ([1, 2, 3], "ids has 3 tokens, of which none has 3 words of context"),
        ([[1, 2], [3]], "ids has 3 tokens, of which none"),
        ([1, 2, -3], "ids has -3 at 2"),
        ([[1, 2], [1, 12]], r"ids\[1\] has 12 at 1, but n_words=12"),
        (np.ones((3, 2), int), "ids must have 1 dimension, got an array of shape"),
        (["a", "b"], "ids must hold word ids"),
    ],
)
def test_invalid_streams_are_refused(ids, message):
    lm = model("neural")
    with pytest.raises(ValueError, match=message):
        lm.fit_stream(ids)
    with pytest.raises(ValueError, match=message.replace("ids", "ids_val", 1)):
        lm.fit_stream(IDS, ids)
    lm = lm.fit_stream(IDS)
    with pytest.raises(ValueError, match=message):
        lm.log_prob_stream(ids)


def test_models_without_an_order_are_refused():
    with pytest.raises(ValueError, match=r"for example NeuralLM\(order=5\)"):
        NeuralLM().fit_stream(IDS)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_resumed_fit_of_documents_has_its_bits(tmp_path, n_jobs):
    def interrupt(done, total, loss):
        if done > 900:
            raise KeyboardInterrupt

    def lm():
        return model("neural").set_params(max_iter=3, n_jobs=n_jobs)

    want = lm().fit_stream(DOCUMENTS, HELD_OUT).log_prob_stream(HELD_OUT)
    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("ignore", RuntimeWarning)
        lm().fit_stream(DOCUMENTS, HELD_OUT, progress=interrupt, checkpoint=tmp_path)
    again = lm().fit_stream(DOCUMENTS, HELD_OUT, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.log_prob_stream(HELD_OUT), want)


def test_a_long_text_takes_no_memory_for_its_windows():
    lm = neural_lm(33, n_words=N_WORDS, n_hidden=4, embedding_dim=2, max_iter=1)
    lm.set_params(early_stopping=False, batch_size=512)
    ids = np.resize(IDS, 1 << 18).astype(np.int32)
    lm.fit_stream(IDS)  # imports, and what a first fit makes
    peak = peak_of(lambda: lm.fit_stream(ids), lambda: lm.log_prob_stream(ids))
    # The scores have 8 bytes a token, and the order of an epoch 4; copies had 132.
    assert peak < 40 * len(ids)


@pytest.mark.parametrize("name", MODELS)
def test_documents_without_a_token_are_refused(name):
    with pytest.raises(ValueError, match=r"ids has .*token.*; pass more ids"):
        model(name).fit_stream([[], []])


@pytest.mark.parametrize("boundary", [None, 0])
def test_whole_weights_of_documents_repeat_them(boundary):
    documents, weights = [[1, 2, 1], [3, 1], [2, 2, 3, 1]], [2, 0, 3]
    lm = KneserNeyLM(2, boundary=boundary, n_words=4, discount_fallback=0.5)
    weighted = clone(lm).fit_stream(documents, sample_weight=weights)
    often = [d for d, n in zip(documents, weights) for _ in range(n)]
    other = clone(lm).fit_stream(often)
    np.testing.assert_array_equal(
        weighted.log_prob_stream(documents), other.log_prob_stream(documents)
    )
    with pytest.raises(ValueError, match=r"=0.5: .* whole number .* for KneserNeyLM"):
        clone(lm).fit_stream(documents, sample_weight=[1, 1, 0.5])
    with pytest.raises(ValueError, match="is for a list of documents"):
        clone(lm).fit_stream(documents[0], sample_weight=[1, 1, 1])
