"""Text between blanks is scored by its bytes as by its words."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nplm
from nplm import KneserNeyLM, TextLM, Tokenizer, Vocabulary
from nplm.formats import save_binary
from nplm.text.codecs import codec_of
from nplm.text.lm.fitted_text import fitted_text
from nplm.text.words.splitting import BETWEEN_BLANKS

# Words of one to four bytes a letter, and the blanks that are none here.
WORDS = [
    "a",
    "rose",
    "é",
    "ह\u093f",
    "🌹",
    "x\u00a0y",
    "x\x0by",
    "\u3000",
    "\x00",
    "is",
]
TEXTS = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))] * 3
SOME_TEXT = st.lists(
    st.sampled_from(WORDS)
    | st.sampled_from(["", "tulip", "\ud800", "</s>", "<unk>"])
    | st.text(max_size=3),
    max_size=6,
)


def fitted(**options):
    return TextLM(
        KneserNeyLM(discount_fallback=(0.5, 1, 1.5)),
        2,
        tokenizer=Tokenizer(BETWEEN_BLANKS),
        **options,
    ).fit(TEXTS)


LM = fitted()


@settings(max_examples=40)
@given(SOME_TEXT, st.sampled_from([" ", "\t", "\r\n", "  "]), st.booleans())
def test_text_has_the_bits_of_its_words(words, blank, eos):
    text = blank.join(words)
    scorer = LM.scorer()
    expected = scorer.score(re.findall(BETWEEN_BLANKS, text), eos=eos)
    assert scorer.score(text, eos=eos) == expected
    assert scorer.score_many([text, text.split("\n")], eos=eos)[0] == expected
    assert LM.score_samples([text])[0] == scorer.score(text)
    assert LM.score_samples(np.array([text], dtype=object))[0] == scorer.score(text)


@settings(max_examples=40)
@given(st.lists(SOME_TEXT.map(" ".join), max_size=3))
def test_text_is_encoded_by_bytes_as_by_words(texts):
    codec = fitted_text(LM).codec
    words = [re.findall(BETWEEN_BLANKS, text) for text in texts]
    expected = LM.vocabulary_.known.encode(words)
    for found in (codec.encode(texts), codec.encode(tuple(texts))):
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.lengths, expected.lengths)
        assert found.ids.dtype == np.int32 and found.lengths.dtype == np.intp


def test_errors_of_encoded_text_name_the_document():
    with pytest.raises(TypeError, match=r"given\[8\] is of type int"):
        fitted_text(LM).codec.encode(["a", 3], "given", start=7)
    with pytest.raises(TypeError, match="given must be a list of documents"):
        fitted_text(LM).codec.encode("a rose", "given")
    with pytest.raises(TypeError, match=r"X\[1\] is of type int"):
        LM.score_samples(["a rose", 3])
    lm = fitted(vocabulary=Vocabulary(unknown=None))
    with pytest.raises(ValueError, match="'tulip' is not among the 11 words of the"):
        lm.perplexity(["a rose", "rose is tulip daisy"])


def test_steps_by_bytes_have_the_bits_of_steps_by_words(tmp_path):
    """Of so many words that some do not have the first slot of their hash."""
    words = [f"{letter}{i}" for i in range(100) for letter in "aé🌹"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 20)) for _ in range(200)]
    own = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
    lm = TextLM(own, 2, tokenizer=Tokenizer(BETWEEN_BLANKS)).fit(texts)
    known = lm.vocabulary_.words_.tolist()
    save_binary(lm.estimator_, tmp_path / "model", known)
    mapped = nplm.load(tmp_path / "model").scorer()
    other = TextLM.from_model(lm.estimator_, known, tokenizer=Tokenizer(r"\S+"))
    by_words = other.scorer()
    assert mapped.codec.word_ids is not None is by_words.codec.word_ids
    states = mapped.begin(), by_words.begin()
    others = "tulip", "\ud800", "", np.str_("a1"), 3, "</s>"
    for word in [*known[1:], *others, *known[::-1]]:
        steps = [
            own.step(state, word) for own, state in zip((mapped, by_words), states)
        ]
        assert steps[0][0] == steps[1][0], word
        states = [state for _, state in steps]
        assert states[0].words == states[1].words
    assert mapped.score(texts[0]) == by_words.score(texts[0].split())
    for word in None, float("nan"), ["a1"]:
        with pytest.raises(TypeError) as error:
            mapped.step(states[0], word)
        with pytest.raises(TypeError, match=re.escape(str(error.value))):
            by_words.step(states[1], word)


def fnv_1a(word):
    """The hash of the table of words, before its last mixing."""
    h = 14695981039346656037
    for byte in word.encode():
        h = (h ^ byte) * 1099511628211 % 2**64
    return (h ^ h >> 32) * 11400714819323198485 % 2**64


def test_a_word_that_shares_the_hash_bits_of_another_is_unknown(tmp_path):
    known, other = "1134733", "2263326"
    assert fnv_1a(known) % 2**32 == fnv_1a(other) % 2**32  # the bits of a slot
    assert fnv_1a(known) >> 56 == fnv_1a(other) >> 56  # those that choose it
    lm = TextLM(
        KneserNeyLM(discount_fallback=(0.5, 1, 1.5)),
        2,
        tokenizer=Tokenizer(BETWEEN_BLANKS),
    ).fit([f"a {known} is a {known}"] * 9)
    path = tmp_path / "model"
    save_binary(lm.estimator_, path, lm.vocabulary_.words_.tolist())
    scorer = nplm.load(path).scorer()
    _, state = scorer.step(scorer.begin(), "a")
    assert scorer.step(state, other) == scorer.step(state, "tulip")
    assert scorer.step(state, known)[0] > scorer.step(state, other)[0]
    assert scorer.score(f"a {other}") == scorer.score("a tulip")


def test_added_words_are_found():
    codec = codec_of(Tokenizer(BETWEEN_BLANKS), Vocabulary().fit([["a", "rose"]]))
    first = codec.word_ids
    assert codec.word_ids is first is not None
    codec.vocabulary.add_words(["tulip"])
    assert codec.word_ids is not first
    assert "tulip" in codec.word_ids


@pytest.mark.parametrize("words", [["a", 3], ["a", "\ud800"]])
def test_words_that_are_no_utf8_have_no_table(words):
    vocabulary = Vocabulary(unknown=None).fit([words])
    assert codec_of(Tokenizer(BETWEEN_BLANKS), vocabulary).word_ids is None


@pytest.mark.parametrize(
    "tokenizer",
    [Tokenizer(), Tokenizer(BETWEEN_BLANKS, lowercase=True), Tokenizer(r"\S+")],
)
def test_other_tokenizers_split_text_themselves(tokenizer):
    assert not tokenizer.splits_at_blanks
    lm = TextLM(KneserNeyLM(discount_fallback=(0.5, 1, 1.5)), 2, tokenizer=tokenizer)
    lm.fit(["A rose, a ROSE"] * 3)
    text = "a Rose,"
    assert lm.scorer().score(text) == lm.scorer().score(tokenizer.transform([text])[0])
