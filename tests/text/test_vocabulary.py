"""Vocabulary: tokens are mapped to ids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from nplm import Vocabulary


def test_ids_by_falling_frequency_then_alphabet_after_the_symbols():
    vocabulary = Vocabulary().fit([["b", "c", "b", "a"], ["c", "<unk>", "</s>"]])
    assert vocabulary.words_.tolist() == ["</s>", "<unk>", "b", "c", "a"]
    assert (vocabulary.boundary_id_, vocabulary.unknown_id_) == (0, 1)
    ids = vocabulary.transform([["a", "zoo", "</s>", "<unk>"], []])
    assert [i.tolist() for i in ids] == [[4, 1, 0, 1], []]
    assert [i.dtype for i in ids] == [np.int32, np.int32]


def test_without_a_boundary_unknown_is_first():
    vocabulary = Vocabulary(boundary=None).fit([["a"]])
    assert vocabulary.words_.tolist() == ["<unk>", "a"]
    assert (vocabulary.boundary_id_, vocabulary.unknown_id_) == (None, 0)


def test_rare_words_are_unknown():
    documents = [["a"] * 4 + ["b"] * 3 + ["c"]]
    by_count = Vocabulary(min_count=3).fit(documents)
    assert by_count.words_.tolist() == ["</s>", "<unk>", "a", "b"]
    assert Vocabulary(max_words=3).fit(documents).n_words_ == 3
    assert by_count.count_unknown([*documents, ["d", "a", "d"]]).tolist() == [1, 2]


def test_added_words_get_the_next_ids():
    vocabulary = Vocabulary(min_count=2, max_words=4).fit([["a"] * 3 + ["b"] * 2])
    assert vocabulary.add_words(["c", "d"]).tolist() == [4, 5]
    assert vocabulary.words_.tolist() == ["</s>", "<unk>", "a", "b", "c", "d"]
    assert vocabulary.n_words_ == 6
    ids = vocabulary.transform([["c", "zoo", "a"]])
    assert ids[0].tolist() == [4, 1, 2]
    assert vocabulary.inverse_transform(ids) == [["c", "<unk>", "a"]]
    assert vocabulary.add_words([]).tolist() == []
    for words, message in [
        (["e", "a"], "'a' is already in the vocabulary, with the id 2: add"),
        (["<unk>"], "'<unk>' is already in the vocabulary, with the id 1"),
        (["e", "e"], "'e' is already in the list of words, with the id 6"),
    ]:
        with pytest.raises(ValueError, match=message):
            vocabulary.add_words(words)
    for words in ("word", [["e"]]):
        with pytest.raises(TypeError):
            vocabulary.add_words(words)
    assert vocabulary.n_words_ == len(vocabulary.words_) == 6
    assert vocabulary.fit([["a", "a"]]).n_words_ == 3


@given(st.lists(st.lists(st.text(min_size=1), max_size=6), min_size=1, max_size=4))
def test_known_tokens_come_back(documents):
    vocabulary = Vocabulary()
    ids = vocabulary.fit_transform(documents)
    assert vocabulary.inverse_transform(ids) == documents
    # A token spelled like the symbol is the symbol.
    spelled = sum(document.count("<unk>") for document in documents)
    assert vocabulary.count_unknown(documents).sum() == spelled


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=2, max_size=4),
    st.integers(1, 5),
)
def test_largest_id_occurs_in_training_documents(documents, min_count):
    # Else a model that infers n_words from a fold could not score the next one.
    ids = Vocabulary(min_count=min_count).fit_transform(documents)
    vocabulary = Vocabulary(min_count=min_count).fit(documents)
    if sum(map(len, ids)):
        assert max(i.max(initial=0) for i in ids) == vocabulary.n_words_ - 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"min_count": 0}, "min_count"),
        ({"min_count": 1.5}, "min_count"),
        ({"max_words": 2}, "above 2"),
        ({"unknown": "x", "boundary": "x"}, "unknown='x' must differ"),
        ({"unknown": 1}, "instance of 'str'"),
        ({"words": "abc"}, "array-like"),
        ({"words": ["a", "b", "a"]}, "'a' 2 times"),
    ],
)
def test_vocabulary_refuses_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(**params).fit([["a"]])


def test_vocabulary_refuses_what_is_not_tokens():
    with pytest.raises(TypeError, match="Split strings first"):
        Vocabulary().fit(["raw text"])
    with pytest.raises(ValueError, match=r"X\[0\] has 9 at 0, but n_words=3"):
        Vocabulary().fit([["a"]]).inverse_transform([[9]])


def test_missing_and_unhashable_tokens_are_refused():
    vocabulary = Vocabulary().fit([["a"]])
    for token in (None, float("nan"), np.float32("nan")):
        for use in (Vocabulary().fit, vocabulary.transform):
            with pytest.raises(TypeError, match="a token is missing"):
                use([["a", token]])
    for use in (Vocabulary().fit, vocabulary.transform):
        with pytest.raises(
            TypeError, match=r"hashable events, got \['a'\] of type list"
        ):
            use([[["a"], ["b"]]])
    for document in ({"a": 1}, {"a"}):
        with pytest.raises(TypeError, match=r"X\[0\] is of type"):
            vocabulary.transform([document])
    with pytest.raises(TypeError, match=r"X\[0\] is 3: a document must be a list"):
        vocabulary.transform([3])


def test_events_may_be_any_hashable():
    documents = [[("a", 1), 3, "x", 3], [("a", 1), (2, 3)]]
    vocabulary = Vocabulary().fit(documents)
    words = vocabulary.words_.tolist()
    assert words == ["</s>", "<unk>", ("a", 1), 3, (2, 3), "x"]
    assert vocabulary.inverse_transform(vocabulary.transform(documents)) == documents
    assert vocabulary.transform([[4, "3"]])[0].tolist() == [1, 1]


def test_given_words_keep_their_order():
    vocabulary = Vocabulary.from_words(["b", "<unk>", "a", "</s>"])
    assert vocabulary.words_.tolist() == ["b", "<unk>", "a", "</s>"]
    assert (vocabulary.unknown_id_, vocabulary.boundary_id_) == (1, 3)
    # Missing symbols come first.
    lacking = Vocabulary.from_words(["b", "</s>"])
    assert lacking.words_.tolist() == ["<unk>", "b", "</s>"]
    vocabulary = Vocabulary.from_words(["b", "a"], unknown=None, boundary=None)
    assert vocabulary.words_.tolist() == ["b", "a"]
    assert (vocabulary.unknown_id_, vocabulary.boundary_id_) == (None, None)
    # Neither a fit nor a clone changes the words.
    words = Vocabulary(9, words=np.array(["b", "a"]))
    assert clone(words).fit([["c"] * 10]).words_.tolist()[2:] == ["b", "a"]
    for unordered in ({"a"}, {"a": 1}):
        with pytest.raises(TypeError, match="pass a list"):
            Vocabulary.from_words(unordered)


def test_unknown_words_are_refused_without_a_symbol():
    vocabulary = Vocabulary(unknown=None).fit([["a", "b"]])
    assert vocabulary.words_.tolist() == ["</s>", "a", "b"]
    assert vocabulary.count_unknown([["a"], []]).tolist() == [0, 0]
    for use in (vocabulary.transform, vocabulary.count_unknown):
        with pytest.raises(ValueError, match="'c' is not among the 3 words"):
            use([["a", "b"], ["a", "c"]])
