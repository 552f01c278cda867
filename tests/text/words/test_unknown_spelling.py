"""UnknownSpelling: probabilities of how unknown words are spelled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nplm import Vocabulary
from nplm.text.words import known_words
from nplm.text.words.known_words import UnknownSpelling

WORDS = st.lists(st.text("ab é\ud800", max_size=5), min_size=1, max_size=4)
END = 256


def symbols(word):
    return [END, *word.encode("utf-8", "surrogatepass"), END]


def prob(words, context, symbol):
    """Witten and Bell's definition: the share of unseen symbols goes one order down."""
    lower = prob(words, context[1:], symbol) if context else 1 / 257
    n = len(context)
    after = [
        own[i + n]
        for own in map(symbols, words)
        for i in range(len(own) - n)
        if own[i : i + n] == context and i + n > 0
    ]
    seen = len(set(after))
    return (
        (after.count(symbol) + seen * lower) / (len(after) + seen) if after else lower
    )


@given(WORDS, st.text("abc é\ud800", max_size=7))
def test_the_probability_is_that_of_the_definition(words, word):
    own = symbols(word)
    steps = [prob(words, own[max(0, i - 4) : i], own[i]) for i in range(1, len(own))]
    found = UnknownSpelling(words).log_prob(word)
    assert found == pytest.approx(sum(map(math.log, steps)))


def test_words_of_any_number_are_counted():
    """Those of a training text fill thousands of slots."""
    words = [f"{i * i:x}" for i in range(600)]
    own = symbols("1f40")
    steps = [prob(words, own[max(0, i - 4) : i], own[i]) for i in range(1, len(own))]
    found = UnknownSpelling(words).log_prob("1f40")
    assert found == pytest.approx(sum(map(math.log, steps)))


@given(st.lists(st.text("ab", max_size=3), unique=True, max_size=8))
def test_strings_are_no_more_probable_together_than_one(words):
    spelling = UnknownSpelling(["ab", "b", "<unk>"], "<unk>", 0.25)
    probs = [math.exp(spelling.log_prob(word)) for word in [*words, "<unk>"]]
    assert sum(probs) < 1


def test_the_symbol_has_its_share_beside_words():
    alone = UnknownSpelling(["ab", "b"])
    both = UnknownSpelling(["ab", "b"], "<unk>", 0.25)
    assert both.log_prob("ab") == pytest.approx(alone.log_prob("ab") + math.log(0.75))
    expected = 0.25 + 0.75 * math.exp(alone.log_prob("<unk>"))
    assert both.log_prob("<unk>") == pytest.approx(math.log(expected))


def test_it_is_learned_from_the_rarest_words(monkeypatch):
    monkeypatch.setattr(known_words, "MAX_WORDS", 3)
    texts = [["often"] * 9, ["two"] * 2, ["two", "one", "<unk>", "un"], ["ein", "uno"]]
    vocabulary = Vocabulary(min_count=3).fit(texts)
    own = vocabulary.known.spelling
    assert own.words == ["ein", "un"]  # every second of the four that occur once
    assert own.symbol == "<unk>"
    # One of its own, four words that the vocabulary lacks, and one more.
    assert own.share == 1 / (1 + 4 + 1)


def test_events_and_vocabularies_without_unknown_words_have_none():
    assert Vocabulary().fit([[1, (2, 3)]]).known.spelling is None
    assert Vocabulary(unknown=None).fit([["a"]]).known.spelling is None
    assert Vocabulary.from_words(["a"]).known.spelling is None
    assert Vocabulary(words=["a"]).fit([["a"]]).known.spelling is None


@pytest.mark.parametrize("params", [
    None, [], {}, {"words": ["a"]}, {"words": ["a"], "share": 1.0},
    {"words": ["a"], "share": -0.1}, {"words": ["a"], "share": math.nan},
    {"words": [1], "share": 0.0}, {"words": "a", "share": 0.0},
    {"words": ["a"], "share": 0}, {"words": [], "share": 0.0, "more": 1},
])  # fmt: skip
def test_invalid_parameters_of_a_file_are_refused(params):
    with pytest.raises(ValueError, match="its spelling of unknown words is"):
        UnknownSpelling.of_params(params, "<unk>")
