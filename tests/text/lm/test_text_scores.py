"""Scores that compare between models with different tokens."""

import copy
import io
import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nplm
from nplm import (
    KneserNeyLM,
    Subwords,
    TextLM,
    TextScores,
    Tokenizer,
    UniformLM,
    Vocabulary,
    limit_vocabulary,
    static_mixture,
)
from nplm.formats import estimate_binary
from nplm.text.words.known_words import UnknownSpelling

# Each has tokens of its own.
TOKENIZERS = {
    "words": "auto",
    "characters": Subwords("characters"),
    "bytes": Subwords("bytes"),
}
TEXTS = st.lists(st.text("aé \nन", max_size=9), min_size=1, max_size=4)


@cache
def uniform(kind, ends):
    lm = TextLM(UniformLM(), tokenizer=TOKENIZERS[kind], predict_boundary=ends)
    return lm.fit(["aé न a\n"])


@settings(max_examples=40)
@given(TEXTS, st.sampled_from(sorted(TOKENIZERS)), st.booleans())
def test_scores_are_those_of_the_tokens_per_unit_of_the_text(texts, kind, ends):
    lm = uniform(kind, ends)
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
    if scores.n_unknown:
        assert scores.spelling_log_prob < 0
        bits -= scores.spelling_log_prob / np.log(2)
    assert scores.bits_per_byte == pytest.approx(bits / len(file.encode()))
    if file:
        assert scores.bits_per_character == pytest.approx(bits / len(file))
    if scores.n_words:
        assert scores.word_perplexity == pytest.approx(2 ** (bits / scores.n_words))


def test_scores_of_nothing_are_nan():
    scores = TextScores(1, 0, 0, 0, 0, 0, 0.0)
    assert np.isnan(
        [scores.perplexity, scores.word_perplexity, scores.bits_per_byte]
    ).all()


def test_documents_without_text_have_no_scores_of_text():
    lm = TextLM(UniformLM()).fit([["a", "rose"]])
    with pytest.raises(TypeError, match="fitted on lists of tokens or on ids"):
        lm.text_scores([["a"]])


# Models that know how unknown words are spelled, whatever becomes of them.
TRAIN = ["the cat sat on the mat", "the dog sat on a rug", "a cat saw the dog"] * 3
TEXT = ["the cat sat on a mat", "a zebra saw the éland", "zebra zebra"]
NGRAMS = KneserNeyLM(3, discount_fallback=(0.5, 1, 1.5))


def mapped(lm, path, **options):
    estimate_binary(NGRAMS, [io.BytesIO("\n".join(TRAIN).encode())], path, **options)
    return nplm.load(path)


COPIES = {
    "fitted": lambda lm, path: lm,
    "pickled": lambda lm, path: pickle.loads(pickle.dumps(lm)),
    "copied": lambda lm, path: copy.deepcopy(lm),
    "saved": lambda lm, path: [nplm.save(lm, path), nplm.load(path)][1],
    "mapped": mapped,
    "quantized": lambda lm, path: mapped(lm, path, bits=8),
    "mapped, saved": lambda lm, path: [
        nplm.save(mapped(lm, path / "a"), path / "b"), nplm.load(path / "b")
    ][1],
    "mixed": lambda lm, path: static_mixture([lm, lm], [0.5, 0.5]).lm,
    "limited": lambda lm, path: limit_vocabulary(lm, lm.vocabulary_.words_),
    "with words": lambda lm, path: TextLM.from_model(
        lm.estimator_, lm.vocabulary_, tokenizer=lm.tokenizer_
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", COPIES)
def test_unknown_words_cost_how_they_are_spelled(how, tmp_path):
    lm = TextLM(NGRAMS, 2, tokenizer=Tokenizer(r"\S+")).fit(TRAIN)
    path = tmp_path if how == "mapped, saved" else tmp_path / "lm"
    scores = COPIES[how](lm, path).text_scores(TEXT)
    spelling = UnknownSpelling(sorted({w for text in TRAIN for w in text.split()}))
    expected = 3 * spelling.log_prob("zebra") + spelling.log_prob("éland")
    assert scores.n_unknown == 4
    assert scores.spelling_log_prob == pytest.approx(expected)
    total = scores.log_prob + expected
    n = sum(map(len, TEXT)) + 3
    assert scores.bits_per_character == pytest.approx(-total / n / np.log(2))
    assert scores.bits_per_byte == pytest.approx(-total / (n + 1) / np.log(2))
    assert scores.word_perplexity == pytest.approx(np.exp(-total / (13 + 3)))


def test_a_vocabulary_that_knows_nothing_has_no_better_score_of_the_text():
    few = TextLM(NGRAMS, 2, vocabulary=Vocabulary(max_words=3)).fit(TRAIN)
    every = TextLM(NGRAMS, 2).fit(TRAIN)
    few, every = few.text_scores(TRAIN), every.text_scores(TRAIN)
    assert few.perplexity < every.perplexity
    assert few.bits_per_character > every.bits_per_character


def test_characters_that_are_unknown_are_spelled():
    lm = TextLM(UniformLM(), tokenizer=Subwords("characters")).fit(["a rose"])
    scores = lm.text_scores(["a é"])
    expected = UnknownSpelling(list("a rose")).log_prob("é")
    assert scores.spelling_log_prob == pytest.approx(expected)


def test_the_symbol_of_a_text_costs_little_where_training_has_it():
    lm = TextLM(UniformLM(), tokenizer=Tokenizer(r"\S+")).fit(["a <unk> rose"] * 500)
    scores = lm.text_scores(["<unk> a"])
    assert scores.n_unknown == 1
    assert scores.spelling_log_prob == pytest.approx(np.log(500 / 501), rel=1e-2)


def test_models_without_spelling_have_no_bits():
    words = ["</s>", "<unk>", "a", "rose"]
    lm = TextLM(UniformLM(), vocabulary=Vocabulary(words=words)).fit(["a rose"])
    lm = TextLM.from_model(lm.estimator_, words, boundary=0)
    assert lm.text_scores(["a rose"]).bits_per_character > 0
    with pytest.warns(UserWarning, match="X has 2 unknown tokens, .* are NaN") as notes:
        scores = lm.text_scores(["a zebra", "zebra"])
    assert notes[0].filename == __file__
    values = scores.bits_per_character, scores.bits_per_byte, scores.word_perplexity
    assert np.isnan(values).all()
    assert scores.perplexity == pytest.approx(4)


def test_units_that_hide_their_text_have_no_bits():
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra subwords")
    units = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "a": 1, "rose": 2}, "[UNK]")
    )
    units.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    lm = TextLM(UniformLM(), tokenizer=units).fit(["a rose tulip"])
    with pytest.warns(UserWarning, match="if their tokenizer gives the text"):
        assert np.isnan(lm.text_scores(["a zebra"]).bits_per_character)
