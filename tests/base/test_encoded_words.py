"""Words in arrays are a sequence of strings, and have their ids."""

import copy
import pickle
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nplm._kernels.ngrams.decoding._word_ids import DictIds, WordIds, sizes_of, words_at
from nplm.base.encoded_words import WORD_ARRAYS, EncodedWords

SPELLED = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
SOME = st.lists(SPELLED, min_size=1, max_size=9, unique=True)
NO_TEXT = st.sampled_from(["\ud800", None, 3, ("a", "b"), b"a"])
OTHERS = st.lists(SPELLED | NO_TEXT, max_size=6)


def arrays_of(words):
    return {name: own.copy() for name, own in EncodedWords.of(words).arrays.items()}


@given(st.lists(st.text("aé\ud800 \t\n\x1c\xa0\u3000n\0")))
def test_words_and_sizes_of_texts_are_those_of_python(texts):
    n_bytes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    n_words = sum(len(text.split()) for text in texts)
    expected = n_words, sum(map(len, texts)), sum(n_bytes)
    assert sizes_of(texts) == sizes_of(map(np.str_, texts)) == expected
    words = [re.findall(r"[^ \t\r\n]+", text) for text in texts]
    places = [(i, j) for i, own in enumerate(words) for j in range(len(own))]
    for some in (places, places[::-1], places[::2]):
        row, i = np.array(some, np.int64).reshape(-1, 2).T.copy()
        assert words_at(texts, row, i) == [words[i][j] for i, j in some]


@pytest.mark.parametrize("row, i", [(1, 0), (-1, 0), (0, 2), (0, -1)])
def test_words_outside_of_texts_are_refused(row, i):
    with pytest.raises(IndexError, match=f"no word {i} in text {row}"):
        words_at(["a b"], np.array([row]), np.array([i]))
    with pytest.raises(ValueError, match="1 texts of 2 words"):
        words_at(["a b"], np.array([row]), np.array([i, i]))


@given(SOME, OTHERS)
@example(["a\n", "\n", "b"], ["a", "\n\n"])
def test_encoded_words_are_a_sequence_of_strings_with_ids(words, others):
    encoded = EncodedWords.of(words)
    expected = {word: i for i, word in enumerate(words)}
    for ids in (encoded.ids, pickle.loads(pickle.dumps(encoded.ids))):
        assert len(ids) == len(encoded) == len(words)
        for word in [*words, *others]:
            assert ids.get(word, -7) == expected.get(word, -7)
            assert (word in encoded) == (word in expected) == (word in ids)
    assert encoded.index(words[-1]) == len(words) - 1
    assert copy.deepcopy(encoded) is encoded
    if any("\n" in word for word in words):  # of these only the ids are right
        return
    encoded.check()
    assert [encoded[i] for i in range(-1, len(words))] == [words[-1], *words]
    assert list(encoded) == encoded.tolist() == encoded[:] == words
    again = pickle.loads(pickle.dumps(encoded))
    assert again.tolist() == words and again.ids.get(words[0]) == 0


def test_words_that_are_equal_are_refused_where_all_are_read():
    words = EncodedWords(**arrays_of(["a", "b", "c", "b"]), name="model")
    assert words[3] == "b"
    for read in (words.tolist, lambda: list(words)):
        with pytest.raises(ValueError, match=r"model is damaged: .*it has 'b' twice"):
            read()


def test_ids_of_many_words_are_found():
    words = [f"w{i}" for i in range(50_000)]
    ids = EncodedWords.of(words).ids
    assert [ids.get(word) for word in words] == list(range(len(words)))
    assert not any(f"v{i}" in ids for i in range(1000))


def test_unhashable_words_are_refused_as_by_a_dictionary():
    for ids in (EncodedWords.of(["a"]).ids, DictIds({"a": 0})):
        with pytest.raises(TypeError, match=r"hashable events, got \['a'\] of type"):
            ids.get(["a"])


def test_words_that_are_not_there_have_no_index():
    words = EncodedWords.of(["a", "b"])
    for word in ("c", 3):
        with pytest.raises(ValueError, match="is not among the 2 words"):
            words.index(word)
    with pytest.raises(IndexError):
        words[2]


@pytest.mark.parametrize("name", WORD_ARRAYS)
@pytest.mark.parametrize("number", range(20))
def test_damaged_arrays_give_ids_below_the_number_of_words_or_errors(name, number):
    """Sanitizers see what is read outside of the arrays."""
    words = ["</s>", "<unk>", *(f"wörd{i}" for i in range(40))]
    arrays, rng = arrays_of(words), np.random.default_rng(number)
    own = arrays[name].view(np.uint8)
    if number % 2:
        own[rng.integers(0, len(own), 3)] ^= rng.integers(1, 256, 3, dtype=np.uint8)
    else:
        own[:] = rng.choice([0, 1, 127, 128, 255], len(own))
    damaged = EncodedWords(**arrays, name="model.nplm")
    found = [damaged.ids.get(word, 0) for word in [*words, "", "none", "w" * 99]]
    assert all(0 <= i < len(words) for i in found)
    for ask in (damaged.tolist, *(lambda i=i: damaged[i] for i in range(len(words)))):
        try:
            assert isinstance(ask(), (str, list))
        except ValueError as error:
            assert str(error).startswith("model.nplm is damaged: its words are invalid")
    if name != "vocabulary":
        with pytest.raises(ValueError, match=f"{name} does not match its vocabulary"):
            damaged.check()


def test_search_in_a_full_table_ends():
    arrays = arrays_of(["a", "b", "c"])
    arrays["word_slots"][:] = 1
    assert EncodedWords(**arrays).ids.get("a") is None


@pytest.mark.parametrize("name", ["word_start", "word_slots"])
def test_arrays_of_other_sizes_are_refused(name):
    arrays = arrays_of(["a", "b", "c"])
    for other in (arrays[name][:-1], np.append(arrays[name], arrays[name][-1:])):
        with pytest.raises(ValueError, match="do not fit together"):
            EncodedWords(**arrays | {name: other})
    with pytest.raises(ValueError, match="its words have no table"):
        WordIds(arrays["vocabulary"], arrays["word_start"][:1], arrays["word_slots"])


def test_text_of_another_number_of_words_is_refused():
    arrays = arrays_of(["a", "b"]) | {"vocabulary": np.frombuffer(b"a_b", np.uint8)}
    with pytest.raises(ValueError, match="it has 1 words, not 2"):
        EncodedWords(**arrays).check()


def test_ids_of_texts_need_room():
    ids = EncodedWords.of(["a", "b"]).ids
    out, lengths = np.empty(3, np.int32), np.empty(2, np.int64)
    assert ids.fill_ids(["b a", "c"], -1, out, lengths) == 3
    assert out.tolist() == [1, 0, -1] and lengths.tolist() == [2, 1]
    with pytest.raises(ValueError, match="no room for more than 3 words"):
        ids.fill_ids(["b a", "c a"], -1, out, lengths)


def test_repeated_words_are_found_and_have_no_slots():
    words = ["a", "b", *["b", "a", "c"] * 100]
    encoded = EncodedWords.of_lines(np.frombuffer("\n".join(words).encode(), "u1"), "")
    assert encoded.repeated == 2
    assert [encoded.ids.get(word) for word in "abc"] == [0, 1, 4]
    assert np.count_nonzero(encoded.arrays["word_slots"]) == 3
    assert EncodedWords.of_lines(np.frombuffer(b"a\nb", "u1"), "").repeated is None
