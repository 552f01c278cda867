"""CacheLM: the words of the context, with falling weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nplm import CacheLM, TextLM, windows
from tests.helpers import text

N_WORDS = 12
IDS = text(400, n_words=N_WORDS)


def naive(lm, context):
    """The docstring's formula, word by word."""
    words = list(context)[len(context) - (lm.order_ - 1) :]
    padding = 0
    while padding < len(words) and words[padding] == lm.boundary:
        padding += 1
    c, pairs = np.zeros(lm.n_words_), np.zeros(lm.n_words_)
    for i in range(padding, len(words)):
        distance = len(words) - i
        weight = 1.0 if lm.half_life is None else 0.5 ** (distance / lm.half_life)
        c[words[i]] += weight
        if i > 0 and words[i - 1] == words[-1]:
            pairs[words[i]] += weight
    p = (c + lm.prior * lm.proba_) / (c.sum() + lm.prior)
    if lm.bigram_prior is None:
        return p
    return (pairs + lm.bigram_prior * p) / (pairs.sum() + lm.bigram_prior)


@settings(max_examples=25)
@given(
    data=st.data(),
    width=st.integers(1, 9),
    half_life=st.none() | st.floats(0.1, 1000),
    prior=st.floats(0.01, 100),
    bigram_prior=st.none() | st.floats(0.01, 100),
    boundary=st.none() | st.integers(0, N_WORDS - 1),
)
def test_the_formula(data, width, half_life, prior, bigram_prior, boundary):
    length = data.draw(st.none() | st.integers(1, width))
    lm = CacheLM(
        length, half_life=half_life, prior=prior, bigram_prior=bigram_prior,
        boundary=boundary, n_words=N_WORDS,
    )  # fmt: skip
    lm.fit(*windows(IDS, width))
    assert lm.order_ == (width if length is None else length) + 1
    # Few words: pairs repeat, and boundaries are often at the start.
    word = st.integers(0, 2) | st.just(boundary or 0)
    context = data.draw(st.lists(word, min_size=width, max_size=width))
    proba = lm.predict_proba([context])[0]
    assert proba.sum() == pytest.approx(1)
    assert_allclose(proba, naive(lm, context), rtol=1e-9)
    words = np.arange(N_WORDS)
    log_prob = lm.log_prob([context] * N_WORDS, words)
    assert_allclose(log_prob, np.log(proba), atol=1e-12)


def test_an_empty_cache_is_the_training_text():
    X, y = windows(IDS, 5, boundary=0)
    lm = CacheLM(boundary=0, n_words=N_WORDS + 1).fit(X, y)
    counts = np.bincount(y, minlength=N_WORDS + 1) + 1
    assert_allclose(lm.proba_, counts / counts.sum())
    assert_allclose(lm.predict_proba([[0] * 5])[0], lm.proba_)
    assert lm.n_parameters_ == N_WORDS


def test_a_boundary_within_the_text_is_a_word():
    X, y = windows(IDS, 4)
    lm = CacheLM(prior=0.1, boundary=0, n_words=N_WORDS).fit(X, y)
    assert lm.log_prob([[3, 0, 4, 5]], [0]) > lm.log_prob([[3, 3, 4, 5]], [0])
    assert lm.log_prob([[3, 0, 4, 5]], [0]) > lm.log_prob([[0, 0, 4, 5]], [0])


def test_parameters_set_after_the_fit():
    X, y = windows(IDS, 6)
    lm = CacheLM(half_life=5).fit(X, y)
    changed = CacheLM(half_life=50).fit(X, y).set_params(half_life=5)
    assert_array_equal(changed.log_prob(X, y), lm.log_prob(X, y))
    with pytest.raises(ValueError, match="'half_life' parameter of CacheLM must be"):
        lm.set_params(half_life=0).log_prob(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"length": 7}, r"a cache of 7 words needs windows of 7 columns, but X has 6"),
        ({"length": 0}, "'length' parameter of CacheLM"),
        ({"half_life": -1.0}, "'half_life' parameter of CacheLM"),
        ({"prior": 0}, "'prior' parameter of CacheLM"),
        ({"bigram_prior": 0}, "'bigram_prior' parameter of CacheLM"),
        ({"boundary": 12, "n_words": 12}, "boundary must be None or a word id"),
    ],
)
def test_parameters_out_of_range(params, message):
    with pytest.raises(ValueError, match=message):
        CacheLM(**params).fit(*windows(IDS, 6))


def repeated():
    """Texts, each of a few words of its own."""
    rng = np.random.default_rng(0)
    topics = [rng.choice(np.arange(1, 40), 4, replace=False) for _ in range(60)]
    return [rng.choice(topic, 30) for topic in topics]


def test_documents_begin_with_an_empty_cache():
    lm = TextLM(CacheLM(half_life=10, prior=1), n_context=20, boundary=0)
    documents = repeated()
    lm.fit(documents)
    assert lm.estimator_.boundary == 0
    first, second = lm.score_samples([[5], [5, 5]])
    p, after = lm.estimator_.proba_, (2**-0.1 + lm.estimator_.proba_) / (2**-0.1 + 1)
    end = lm.estimator_.log_prob([[0] * 19 + [5], [0] * 18 + [5, 5]], [0, 0])
    assert first == pytest.approx(np.log(p[5]) + end[0])
    # The pair (5, 5) has not occurred, and the start is not 5.
    assert second == pytest.approx(np.log(p[5]) + np.log(after[5]) + end[1])
    together = lm.score_samples(documents)
    apart = [lm.score_samples([document])[0] for document in documents]
    assert_allclose(together, apart)
