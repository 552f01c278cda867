"""A vocabulary of encoded words is one of strings, which it makes when asked."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nplm
from nplm import KneserNeyLM, TextLM, Vocabulary, windows
from nplm.base.encoded_words import EncodedWords
from nplm.formats import save_binary

WORDS = ["</s>", "<unk>", "a", "rose", "is", "é"]
TOKENS = [["a", "rose", "tulip", ("a",), 3], [], ["</s>", "é", "\ud800", "<unk>"]]
USES = {
    "transform": lambda own: own.transform(TOKENS),
    "count_unknown": lambda own: own.count_unknown(TOKENS),
    "inverse_transform": lambda own: own.inverse_transform([[0, 5], [], [2, 3, 4]]),
    "symbols": lambda own: (own.n_words_, own.boundary_id_, own.unknown_id_),
    "clone": lambda own: clone(own).fit().transform(TOKENS),
    "deepcopy": lambda own: copy.deepcopy(own).transform(TOKENS),
    "pickle": lambda own: pickle.loads(pickle.dumps(own)).transform(TOKENS),
}
USES_OF_STRINGS = {
    "words": lambda own: own.words_.tolist(),
    "ids": lambda own: own.ids_,
    "embeddings": lambda own: own.embeddings(["a", "x"], [[1], [2]], random_state=0),
    "spelling": lambda own: own.spelling_features(min_words=1)[1],
}


@pytest.fixture
def encoded():
    return Vocabulary.from_words(EncodedWords.of(WORDS))


def assert_same(a, b):
    if isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            assert_same(one, other)
    else:
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("name", USES)
def test_encoded_words_are_used_without_strings(encoded, name):
    assert_same(USES[name](encoded), USES[name](Vocabulary.from_words(WORDS)))
    assert {"array", "ids"}.isdisjoint(vars(encoded.known))


@pytest.mark.parametrize("name", USES_OF_STRINGS)
def test_strings_are_made_when_they_are_asked_for(encoded, name):
    expected = USES_OF_STRINGS[name](Vocabulary.from_words(WORDS))
    assert_same(USES_OF_STRINGS[name](encoded), expected)
    assert not {"array", "ids"}.isdisjoint(vars(encoded.known))


def test_words_are_added_to_encoded_ones(encoded):
    assert encoded.add_words(["tulip"]).tolist() == [6]
    assert encoded.words_.tolist() == [*WORDS, "tulip"]
    assert encoded.transform([["tulip", "a", "daisy"]])[0].tolist() == [6, 2, 1]
    with pytest.raises(ValueError, match="'a' is already in the vocabulary"):
        encoded.add_words(["a"])
    # A further fit has the words of the parameter.
    assert encoded.fit().n_words_ == 6
    assert encoded.transform([["tulip"]])[0].tolist() == [1]
    encoded.set_params(words=None).fit([["b"]])
    assert encoded.words_.tolist() == ["</s>", "<unk>", "b"]


def test_missing_symbols_come_first():
    vocabulary = Vocabulary.from_words(EncodedWords.of(["a", "<unk>"]))
    assert vocabulary.words_.tolist() == ["</s>", "a", "<unk>"]
    assert vocabulary.unknown_id_ == 2


def test_vocabulary_has_no_words_before_its_fit():
    vocabulary = Vocabulary(words=EncodedWords.of(WORDS))
    assert not hasattr(vocabulary, "words_") and not hasattr(vocabulary, "ids_")
    with pytest.raises(NotFittedError):
        vocabulary.spelling_features()


@pytest.mark.parametrize("form", [{}, {"bits": 4}], ids=str)
def test_model_of_a_mapped_file_is_saved_with_its_words(tmp_path, form):
    X, y = windows(np.random.default_rng(0).integers(0, 6, 500), 2, boundary=0)
    model = KneserNeyLM(boundary=0, discount_fallback=(0.5, 1, 1.5)).fit(X, y)
    save_binary(model, tmp_path / "mapped", WORDS, **form)
    lm = nplm.load(tmp_path / "mapped")
    nplm.save(lm, tmp_path / "saved")
    again = nplm.load(tmp_path / "saved")
    texts = ["a rose", "is é tulip"]
    expected = TextLM.from_model(lm.estimator_, WORDS).score_samples(texts)
    for own in (lm, again, pickle.loads(pickle.dumps(lm)), clone(lm).fit(texts)):
        np.testing.assert_array_equal(own.score_samples(texts), expected)
        assert own.next_words("a rose", k=2)[0] == lm.next_words("a rose", k=2)[0]
    nplm.save(again, tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "saved").read_bytes()


def test_invalid_words_of_a_file_are_said_to_be_damaged_once(tmp_path):
    X, y = windows(np.random.default_rng(0).integers(0, 6, 500), 2, boundary=0)
    model = KneserNeyLM(boundary=0, discount_fallback=(0.5, 1, 1.5)).fit(X, y)
    path = tmp_path / "mapped"
    save_binary(model, path, WORDS)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"</s>\n<unk>", b"\xff/s>\n<unk>"))
    with pytest.raises(ValueError, match="is damaged: its words are invalid") as error:
        nplm.load(path)
    assert str(error.value).count("is damaged") == 1
    assert str(error.value).count("copy or save it again") == 1
