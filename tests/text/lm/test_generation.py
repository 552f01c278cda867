"""TextLM: next words and drawn texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nplm import InterpolatedTrigram, TextLM, Tokenizer, Vocabulary
from tests.helpers.texts import SENTENCES as TEXTS


def text_lm(**params):
    return TextLM(InterpolatedTrigram(2), **params).fit(TEXTS)


OF_IDS = TextLM(InterpolatedTrigram(2), boundary=0).fit([np.arange(10)])
OF_TEXT = text_lm()


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.floats(0.01, 10), st.lists(st.integers(0, 9)))
def test_generated_words_are_in_range(seed, temperature, context):
    draw = {"max_words": 12, "temperature": temperature, "random_state": seed}
    words = OF_IDS.generate(context, **draw)
    assert words.dtype == np.int32
    assert len(words) <= 12
    assert ((words > 0) & (words < 10)).all()
    assert words.tolist() == OF_IDS.generate(context, **draw).tolist()


def test_a_low_temperature_draws_the_most_probable_words():
    lm = TextLM(InterpolatedTrigram(2)).fit([[3, 4, 5]] * 9)
    assert lm.generate(temperature=1e-3, random_state=0).tolist() == [3, 4, 5]
    assert lm.generate([3], temperature=1e-3, random_state=0).tolist() == [4, 5]
    assert lm.generate([3], max_words=1, temperature=1e-3).tolist() == [4]


def test_excluded_words_are_not_predicted():
    lm = OF_TEXT
    with pytest.raises(ValueError, match="k == 0, must be"):
        lm.next_words(k=0)
    words, proba = lm.next_words("zoo", k=99, exclude=["<unk>", "</s>", "</s>"])
    assert len(words) == len(proba) == lm.n_words_ - 2
    assert not {"<unk>", "</s>"} & set(words)
    assert proba.sum() == pytest.approx(1)
    all_words, all_proba = lm.next_words("zoo", k=99, unknown=True)
    kept = [p for word, p in zip(all_words, all_proba) if word in words]
    np.testing.assert_allclose(proba, np.array(kept) / sum(kept))
    options = dict(max_words=30, exclude=["</s>", "cat"], random_state=0)
    texts = lm.generate("a", 20, **options)
    assert "cat" not in " ".join(texts).split()
    assert texts == lm.generate("a", 20, **options)
    for words in (lm.vocabulary_.words_, [*lm.vocabulary_.words_[2:].tolist(), "</s>"]):
        with pytest.raises(
            ValueError, match=r"among them <unk>, unless .*exclude fewer"
        ):
            lm.next_words("a", exclude=words)


def test_unknown_words_are_not_generated_by_default():
    rare = Vocabulary(max_words=4)
    lm = text_lm(vocabulary=rare)
    mark = lm.vocabulary_.unknown_id_
    contexts = [[lm.vocabulary_.ids_["the"]]]
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
        TextLM(InterpolatedTrigram(2)).fit([[1, 2]]),
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
    samples = lm.sample(1500, max_words=1, random_state=0)
    words, proba = lm.next_words((), k=99, unknown=True)
    assert "<unk>" in words
    check_shares(samples, words, proba)
    again, once_more = (lm.sample(30, random_state=0) for _ in range(2))
    assert again == once_more
    lm = OF_TEXT
    words, proba = lm.next_words("the", k=99)
    check_shares(lm.generate("the", 1500, max_words=1, random_state=0), words, proba)
    # With top_k or top_p, in the order of probabilities.
    for cut, n in [(dict(top_k=2), 2), (dict(top_p=proba[:3].sum() - 1e-9), 3)]:
        firsts = lm.generate("the", 500, max_words=1, random_state=0, **cut)
        assert set(firsts) == {"" if word == "</s>" else word for word in words[:n]}


def test_texts_have_the_least_number_of_words():
    lm = OF_TEXT
    for least in (0, 1, 3):
        texts = lm.generate("the", 150, min_words=least, random_state=0)
        lengths = [len(tokens) for tokens in Tokenizer().transform(texts)]
        assert min(lengths) == least < max(lengths)
    # The first word is drawn among the others by their probabilities.
    words, proba = lm.next_words("the", k=99, exclude=["</s>"])
    firsts = lm.generate("the", 1500, min_words=1, max_words=1, random_state=0)
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
        OF_TEXT.generate(**params)


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (None, TypeError)])
def test_sample_refuses(n, error):
    with pytest.raises(error, match="n_samples"):
        OF_TEXT.sample(n)
