"""Scores that compare between models with different tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm import Subwords, TextLM, TextScores, UniformLM, Vocabulary

# Each has tokens of its own.
TOKENIZERS = {
    "words": "auto",
    "characters": Subwords("characters"),
    "bytes": Subwords("bytes"),
}
TEXTS = st.lists(st.text("aé \nन"), min_size=1, max_size=5)


@given(TEXTS, st.sampled_from(sorted(TOKENIZERS)), st.booleans())
def test_scores_are_those_of_the_tokens_per_unit_of_the_text(texts, kind, ends):
    lm = TextLM(UniformLM(), tokenizer=TOKENIZERS[kind], predict_boundary=ends)
    lm.fit(["aé न a\n"])
    n_ends = len(texts) if ends else 0
    tokens = lm.tokenizer_.transform(texts)
    n_tokens = sum(map(len, tokens)) + n_ends
    if n_tokens == 0:
        with pytest.raises(ValueError, match="no token"):
            lm.text_scores(texts)
        return
    scores = lm.text_scores(iter(texts))
    file = "".join(text + "\n" * ends for text in texts)  # as a file of lines
    assert scores.n_characters == len(file)
    assert scores.n_bytes == len(file.encode())
    assert scores.n_words == sum(len(text.split()) for text in texts) + n_ends
    assert (scores.n_documents, scores.n_tokens) == (len(texts), n_tokens)
    assert scores.log_prob == pytest.approx(-n_tokens * np.log(lm.n_words_))
    assert scores.perplexity == pytest.approx(lm.perplexity(texts))
    bits = n_tokens * np.log2(lm.n_words_)
    assert scores.bits_per_byte == pytest.approx(bits / len(file.encode()))
    if file:
        assert scores.bits_per_character == pytest.approx(bits / len(file))
    if scores.n_words:
        assert scores.word_perplexity == pytest.approx(2 ** (bits / scores.n_words))


def test_a_uniform_model_of_bytes_has_eight_bits_a_byte():
    lm = TextLM(
        UniformLM(), tokenizer=Subwords("bytes"), predict_boundary=False, boundary=0,
        vocabulary=Vocabulary(words=Subwords("bytes").fit().words_, unknown=None,
                              boundary="Ċ"),
    ).fit(["a"])  # fmt: skip
    assert lm.text_scores(["any text", "नमस्ते"]).bits_per_byte == pytest.approx(8)


def test_unknown_tokens_are_counted():
    lm = TextLM(UniformLM(), vocabulary=Vocabulary(words=["a", "rose"])).fit(["a"])
    assert lm.text_scores(["a rose is a rose", "is it"]).n_unknown == 3


def test_scores_of_nothing_are_nan():
    scores = TextScores(1, 0, 0, 0, 0, 0, 0.0)
    assert np.isnan(
        [scores.perplexity, scores.word_perplexity, scores.bits_per_byte]
    ).all()


def test_documents_without_text_have_no_scores_of_text():
    lm = TextLM(UniformLM()).fit([["a", "rose"]])
    with pytest.raises(TypeError, match="fitted on lists of tokens or on ids"):
        lm.text_scores([["a"]])
