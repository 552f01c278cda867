"""Tokenizer: documents are split into tokens, which are joined to the same text."""

import pickle
import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from nplm import InterpolatedTrigram, TextLM, Tokenizer


def test_tokens_are_words_with_decimals_and_apostrophes_or_single_marks():
    words, empty, blank = Tokenizer().transform(["Don’t pay 3,000.50 ($1.)!", "", " "])
    assert " ".join(words) == "Don’t pay 3,000.50 ( $ 1 . ) !"
    assert empty == blank == []


def test_combining_marks_belong_to_their_letters():
    texts = [
        "नमस्ते दुनिया।",
        "cafe\u0301, e\u0301té",
        "می\u200cکنم",
        "❤\ufe0f!",
        "\u0301a",
    ]
    assert Tokenizer().transform(texts) == [
        ["नमस्ते", "दुनिया", "।"],
        ["cafe\u0301", ",", "e\u0301té"],
        ["می\u200cکنم"],
        ["❤\ufe0f", "!"],
        ["\u0301", "a"],
    ]


@given(st.text(st.characters(exclude_categories=["Mn", "Mc", "Me", "Cf"])))
def test_text_without_marks_has_the_tokens_of_the_plain_pattern(text):
    plain = Tokenizer(r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]")
    assert Tokenizer().transform([text]) == plain.transform([text])


@given(st.text())
def test_no_token_begins_with_a_mark_after_a_letter(text):
    for token, after in pairwise(Tokenizer().transform([f"a{text}"])[0]):
        if unicodedata.category(after[0])[0] == "M":
            assert f"{token}{after}" not in f"a{text}"


def test_preprocessing_of_the_papers_ap_news():
    tokenizer = Tokenizer(lowercase=True, number="<NUM>", proper_noun="<NAME>")
    text = 'Ann met Bob in 1995. "I’m," he said. "So Is NATO, I think?" (Yes) Carl 90s.'
    expected = (
        'ann met <NAME> in <NUM> . " i’m , " he said . " so <NAME> <NAME> , i think'
        ' ? " ( yes ) <NAME> 90s .'
    )
    assert tokenizer.transform([text]) == [expected.split()]


def test_tokens_of_logs_are_masked():
    """Lines of public samples of HDFS and BGL logs."""
    logs = Tokenizer.for_logs()
    for line, tokens in {
        "PacketResponder 1 for block blk_-68 terminating":
            "PacketResponder <num> for block <id> terminating",
        "blockMap updated: 10.251.73.220:50010 is added, size 67108864":
            "blockMap updated : <id> is added , size <num>",
        "from 172.16.96.116 by v1.2.3 in 0.5 s": "from <id> by <id> in <num> s",
        "2005-06-03-15.42.50.675872 R02-M1-N0-C:J12-U11 RAS KERNEL INFO":
            "<id> <id> RAS KERNEL INFO",
        "dfs.DataNode$PacketResponder: lr=0x1f, uid=0 rhost=a.org":
            "dfs.DataNode$PacketResponder : lr = <id> , uid = <num> rhost = a.org",
        "Jan  1 11:00:50 LabSZ sshd[25]: up": "<id> <id> LabSZ sshd [ <num> ] : up",
        "[Sun Dec 04 04:47:44 2005] ok": "[ <id> <id> <num> ] ok",
        "Sun, 04 Dec 2005 is on 4 Mar 2006": "<id> <num> is on <id> <num>",
        "Sun may set, 10 Marks, May 2005": "Sun may set , <num> Marks , May <num>",
        "1.2.3.4": "<id>",
        "3.5% of 2,000": "<num> % of <num> , <num>",
    }.items():  # fmt: skip
        assert logs.transform([line]) == [tokens.split()]
    upper = Tokenizer.for_logs(lowercase=True, number=None, identifier="<ID>")
    assert upper.transform(["ERROR 12 at X9"]) == [["error", "<ID>", "at", "<ID>"]]
    assert upper.get_params()["lowercase"]


def test_own_pattern_with_groups_and_empty_matches():
    assert Tokenizer(r"(a)b|c*").transform(["ab cc"]) == [["ab", "cc"]]


@given(st.lists(st.text(), max_size=4))
def test_tokens_are_row_preserving_and_in_the_text(texts):
    documents = Tokenizer().transform(texts)
    assert len(documents) == len(texts)
    for text, tokens in zip(texts, documents):
        assert "".join(tokens) == "".join(text.split())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a text", "single document in a list"),
        ([b"bytes"], r"X\[0\] is of type bytes: .* a string; decode it first"),
        (["text", ["tokens"]], r"X\[1\] is of type list: .* must be a string\.$"),
        (3, "list of documents"),
    ],
)
def test_tokenizer_refuses_what_is_not_documents(X, message):
    with pytest.raises(TypeError, match=message):
        Tokenizer().transform(X)


def test_pickles_of_tokenizers_without_symbols_for_identifiers_split_text():
    tokenizer = Tokenizer(number="<num>")
    del vars(tokenizer)["identifier"]  # as 0.1 pickled it
    restored = pickle.loads(pickle.dumps(tokenizer))
    assert restored.transform(["a 3"]) == [["a", "<num>"]]
    assert clone(restored).identifier is None


@pytest.mark.parametrize("params", [{"pattern": 3}, {"lowercase": "x"}, {"number": 1}])
def test_tokenizer_refuses_parameters(params):
    tokenizer = Tokenizer(**params)
    lm = TextLM(InterpolatedTrigram(), tokenizer=tokenizer)
    for use in (tokenizer.fit, tokenizer.transform, lm.fit):
        with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
            use(["a text"])


def test_tokenizer_names_a_wrong_pattern():
    with pytest.raises(ValueError, match=r"pattern '\(' is not a regular expression"):
        Tokenizer("(").transform(["text"])


def test_tokenizer_refuses_a_long_pattern_before_it_is_compiled():
    pattern = "(?i:" + "[!-\U0010fff0]" * 12_000 + ")"  # compiles in a minute
    with pytest.raises(ValueError, match=r"has 60005 characters, and at most 5000 are"):
        Tokenizer(pattern).transform(["text"])
    with pytest.raises(ValueError, match=r"has 5001 characters"):
        Tokenizer(re.compile("a" * 5001)).transform(["text"])
    assert Tokenizer("a" * 5000).transform(["text"]) == [[]]
    with pytest.raises(ValueError, match=r"is not a regular expression: .*recursion"):
        Tokenizer("(?:" * 1200 + ")" * 1200).transform(["text"])


# -- joining -------------------------------------------------------------------------

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
