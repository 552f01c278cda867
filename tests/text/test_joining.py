"""Joining: the text of tokens, which is split into the same tokens again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm import Tokenizer

# Letters with and without marks, digits, and all kinds of punctuation.
CHARACTERS = st.sampled_from("ab1 .,'\"’-/()$%:;_—“”é\u0301न\u093e\u200dм\n")
TEXTS = st.text(CHARACTERS) | st.text()


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat. It's well-known, (he said): “yes” and/or 'no'!",
        'He paid $3.50, or 10%, for "both"; 3,000 in all…',
        "¿Qué? «Oui»",
        "नमस्ते दुनिया, cafe\u0301.",
        "नमस्ते दुनिया। वह आया॥",
        "هل جاء؟ نعم، جاء؛ ثم ذهب۔",  # noqa: RUF001
        "日本語。「はい、テスト！」（終わり）",  # noqa: RUF001
        "",
    ],
)
def test_text_is_put_together_as_it_was(text):
    tokenizer = Tokenizer()
    assert tokenizer.inverse_transform(tokenizer.transform([text])) == [text]


@given(TEXTS)
def test_tokens_of_joined_tokens_are_the_same(text):
    tokenizer = Tokenizer()
    tokens = tokenizer.transform([text])
    assert tokenizer.transform(tokenizer.inverse_transform(tokens)) == tokens


@given(TEXTS)
@pytest.mark.parametrize(
    "pattern", [r"[^ \t\r\n]+", r"\S+", r"\w+", r"(?s).", r"\s+|\w+|[^\w\s]", "(a)b|c*"]
)
def test_tokens_of_other_patterns_are_the_same_again(pattern, text):
    tokenizer = Tokenizer(pattern)
    tokens = tokenizer.transform([text])
    assert tokenizer.transform(tokenizer.inverse_transform(tokens)) == tokens


def test_words_between_blanks_are_joined_by_blanks():
    tokens = ["The", "cat", ".", "It", "'s", "("]
    assert Tokenizer(r"[^ \t\r\n]+").inverse_transform([tokens]) == [" ".join(tokens)]


def test_inverse_transform_refuses_text():
    with pytest.raises(TypeError, match=r"X\[0\] is a string, 'a text'"):
        Tokenizer().inverse_transform(["a text"])
