"""Embeddings and word features in a TextLM are matched by word, not by id."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import nplm
from nplm import (
    ClassLM,
    KneserNeyLM,
    MixtureLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    WordClasses,
)
from nplm.formats import read_vectors, write_vectors
from tests.helpers import paper_lm

# Frequent words come last in the file, so no word has the same index in both.
WORDS = [f"w{i}" for i in range(12)]
VECTORS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
VECTOR = dict(zip(WORDS, VECTORS))
SHARES = np.arange(1, 13) / 78
TEXTS = [
    " ".join(np.random.default_rng(i).choice(WORDS, 8, p=SHARES)) for i in range(30)
]


class Keyed:
    """Stand-in for gensim's KeyedVectors."""

    def __init__(self, words, vectors):
        self.key_to_index = {word: i for i, word in enumerate(words)}
        self.vectors = vectors

    def __len__(self):
        return len(self.vectors)


BY_WORD = {
    "dict": VECTOR,
    "dict of lists": {word: row.tolist() for word, row in VECTOR.items()},
    "keyed vectors": Keyed(WORDS, VECTORS),
    "words and array": (WORDS, VECTORS),
    "array of words": (np.array(WORDS, dtype=object), VECTORS.tolist()),
}


def network(**parameters):
    settings = dict(n_hidden=3, embedding_dim=3, max_iter=1, random_state=0)
    return paper_lm(**settings | parameters)


def text_lm(max_words=10, **parameters):
    return TextLM(
        network(**parameters), n_context=2, vocabulary=Vocabulary(max_words=max_words)
    )


def assert_matched(lm, embeddings=None):
    found = lm.estimator_.features.embeddings if embeddings is None else embeddings
    known = lm.vocabulary_.words_[2:].tolist()
    assert known != WORDS[: len(known)]  # matching by id would fail
    expected = [VECTOR[word] for word in known]
    np.testing.assert_array_equal(found[2:], expected)


@pytest.mark.parametrize("given", BY_WORD.values(), ids=BY_WORD.keys())
def test_embeddings_are_matched_by_word(given, tmp_path):
    lm = text_lm(embeddings=given, trained=False)
    again = clone(lm)
    lm.fit(TEXTS)
    assert_matched(lm)
    np.testing.assert_array_equal(lm.estimator_.C_, lm.estimator_.features.embeddings)
    # The given estimator is unchanged, and a second fit is the same.
    assert lm.estimator.features.embeddings is given
    assert lm.get_params()["estimator__features__embeddings"] is given
    np.testing.assert_array_equal(again.fit(TEXTS).estimator_.C_, lm.estimator_.C_)
    nplm.save(lm, tmp_path / "lm")
    loaded = nplm.load(tmp_path / "lm")
    assert loaded.score(TEXTS) == lm.score(TEXTS)
    assert_matched(clone(loaded).fit(TEXTS))
    nplm.save(again, tmp_path / "unfitted")


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.gz"])
def test_embeddings_of_a_file_are_matched_by_word(tmp_path, name):
    write_vectors(tmp_path / name, WORDS, VECTORS)
    lm = text_lm(embeddings=read_vectors(tmp_path / name)).fit(TEXTS)
    assert_matched(lm)
    for path in (tmp_path / name, str(tmp_path / name)):
        with pytest.raises(ValueError, match=r"path: set .*formats\.read_vectors\('"):
            text_lm(embeddings=path).fit(TEXTS)


def test_keyed_vectors_of_gensim_are_matched_by_word(keyed_vectors):
    vectors = keyed_vectors(3)
    vectors.add_vectors(WORDS, VECTORS)
    assert_matched(text_lm(embeddings=vectors).fit(TEXTS))


def test_missing_embeddings_equal_those_of_the_vocabulary():
    few = WORDS[6:], VECTORS[6:]
    for seed in (0, 3, np.random.RandomState(3), None):
        lm = text_lm(embeddings=few, random_state=seed)
        own = clone(lm).fit(TEXTS).vocabulary_
        expected = own.embeddings(*few, random_state=clone(lm).estimator.random_state)
        if seed is None:
            expected = own.embeddings(*few, random_state=0)
        found = lm.fit(TEXTS).estimator_.features.embeddings
        np.testing.assert_array_equal(found, expected)
        again = clone(lm).fit(TEXTS).estimator_.features.embeddings
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("kind", ["dict", "array", "sparse"])
def test_features_are_matched_by_word(kind, tmp_path):
    rows = np.eye(12, 5) + np.arange(12)[:, None]
    rows[:3] = 0
    given = {
        "dict": dict(zip(WORDS[4:], rows[4:])),
        "array": (WORDS[4:], rows[4:]),
        "sparse": (WORDS[4:], csr_array(rows[4:])),
    }[kind]
    lm = text_lm(max_words=None, word_features=given).fit(TEXTS)
    found = lm.estimator_.features.word_features.toarray()
    for i, word in enumerate(lm.vocabulary_.words_):
        expected = rows[WORDS.index(word)] if word in WORDS[4:] else np.zeros(5)
        np.testing.assert_array_equal(found[i], expected)
    assert lm.estimator.features.word_features is given
    nplm.save(lm, tmp_path / "lm")
    assert nplm.load(tmp_path / "lm").score(TEXTS) == lm.score(TEXTS)


def test_spelling_features_are_those_of_the_fitted_vocabulary(tmp_path):
    lm = text_lm(word_features="spelling").fit(TEXTS)
    expected, _ = lm.vocabulary_.spelling_features()
    assert (lm.estimator_.features.word_features != expected).nnz == 0
    nplm.save(lm, tmp_path / "lm")
    assert nplm.load(tmp_path / "lm").estimator.features.word_features == "spelling"
    # Each fold has its own vocabulary and its own features.
    grid = {
        "estimator__features__word_features": [None, "spelling"],
        "estimator__features__embeddings": [None, VECTOR, (WORDS, VECTORS)],
    }
    search = GridSearchCV(text_lm(max_words=None), grid, cv=2, error_score="raise")
    assert np.isfinite(search.fit(TEXTS).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("make", "of"),
    [
        (
            lambda inner: MixtureLM([("network", inner), ("kn", KneserNeyLM())]),
            lambda fitted: fitted.estimators_[0].features.embeddings,
        ),
        (
            lambda inner: ShortlistLM(inner, UniformLM(), n_shortlist=9),
            lambda fitted: fitted.network_.features.embeddings,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_nested_networks_are_matched(make, of):
    lm = text_lm().set_params(estimator=make(network(embeddings=VECTOR))).fit(TEXTS)
    assert_matched(lm, of(lm.estimator_))


def test_a_text_lm_in_a_pipeline_matches_tokens():
    steps = Pipeline([("tokens", Tokenizer()), ("lm", text_lm(embeddings=VECTOR))])
    assert_matched(steps.fit(TEXTS)["lm"])
    # After a Vocabulary, documents are ids.
    steps.steps.insert(1, ("ids", Vocabulary()))
    with pytest.raises(ValueError, match="by word, but the documents are ids"):
        steps.set_params(lm__vocabulary="auto").fit(TEXTS)
    array = np.zeros((14, 3))
    assert (
        steps.set_params(lm__estimator__features__embeddings=array)
        .fit(TEXTS)["lm"]
        .n_words_
    )


def test_a_frozen_network_keeps_its_embeddings(tmp_path):
    first = text_lm(embeddings=VECTOR).fit(TEXTS)
    words = Vocabulary.from_words(first.vocabulary_.words_)
    frozen = FrozenEstimator(first.estimator_)
    again = TextLM(frozen, n_context=2, vocabulary=words).fit(TEXTS[:3])
    assert again.score(TEXTS) == first.score(TEXTS)
    mixture = MixtureLM([("a", frozen), ("b", UniformLM())])
    mixed = TextLM(mixture, n_context=2, vocabulary=words).fit(TEXTS[:3])
    assert_matched(mixed, mixed.estimator_.estimators_[0].features.embeddings)
    nplm.save(mixed, tmp_path / "mixed")
    assert nplm.load(tmp_path / "mixed").score(TEXTS) == mixed.score(TEXTS)


def test_a_checkpoint_is_resumed_with_drawn_embeddings(tmp_path):
    lm = text_lm(embeddings=(WORDS[6:], VECTORS[6:]), max_iter=2, random_state=None)
    first = clone(lm).fit(TEXTS, checkpoint=tmp_path)
    again = clone(lm).fit(TEXTS, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.estimator_.C_, first.estimator_.C_)


ARRAYS = [
    network(embeddings=VECTORS[:10]),
    network(embeddings=VECTORS[:10].tolist()),
    network(word_features=np.eye(10)),
    network(word_features=csr_array(np.eye(10))),
    network(output="classes", classes=[0, 1] * 5),
    network(output="tree", tree=[[0, 1]]),
    network(loss="importance", proposal=np.ones(10)),
    ClassLM(classes=[0, 1] * 5),
    MixtureLM([("one", ClassLM(classes=[0, 1] * 5))]),
]


@pytest.mark.parametrize("estimator", ARRAYS)
def test_arrays_by_id_are_refused_if_the_vocabulary_is_fitted(estimator):
    lm = TextLM(estimator, n_context=2, vocabulary=Vocabulary(max_words=10))
    with pytest.raises(ValueError, match=r"ids of words, .*Vocabulary\.from_words"):
        lm.fit(TEXTS)
    lm.set_params(vocabulary="auto")
    with pytest.raises(ValueError, match="may give words other ids"):
        lm.fit(TEXTS)


def frozen(model):
    ids = np.arange(40).reshape(20, 2) % 10
    return FrozenEstimator(model.fit(ids, ids[:, 0]))


FROZEN = [
    frozen(UniformLM(n_words=10)),
    MixtureLM([("one", frozen(UniformLM(n_words=10))), ("two", UniformLM())]),
    ShortlistLM(network(), frozen(UniformLM(n_words=10)), n_shortlist=4),
    ClassLM(
        classes=FrozenEstimator(WordClasses(3, boundary=0).fit(list(range(10)) * 3))
    ),
]


@pytest.mark.parametrize("estimator", FROZEN)
@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_frozen_parts_are_refused_if_the_vocabulary_is_fitted(estimator):
    lm = TextLM(estimator, n_context=2, vocabulary=Vocabulary(max_words=10))
    with pytest.raises(ValueError, match=r"Frozen.*ids of words, .*\.from_words"):
        lm.fit(TEXTS)
    lm.set_params(vocabulary=Vocabulary.from_words(WORDS[:8]))
    assert np.isfinite(lm.fit(TEXTS).score(TEXTS))
    lm.set_params(vocabulary=None, tokenizer=None)
    assert lm.fit([[1, 9, 3, 2] * 3]).n_words_ == 10


@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_arrays_by_id_are_kept_if_ids_are_known():
    array = np.random.default_rng(1).normal(size=(14, 3))
    given = Vocabulary.from_words(WORDS)
    lm = TextLM(network(embeddings=array), n_context=2, vocabulary=given).fit(TEXTS)
    assert lm.estimator_.features.embeddings is not None
    np.testing.assert_array_equal(lm.estimator_.features.embeddings, array)
    lm = TextLM(network(embeddings=array), n_context=2).fit([range(1, 14)] * 9)
    np.testing.assert_array_equal(lm.estimator_.features.embeddings, array)
    classes = TextLM(ClassLM(classes=WordClasses(3)), n_context=2)
    assert classes.fit(TEXTS).estimator_.n_classes_ == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(embeddings=(WORDS, VECTORS[:3])), "embeddings: .* each of the 12 words"),
        (dict(embeddings=(["w1", "w1"], VECTORS[:2])), "embeddings: .*'w1' twice"),
        (dict(embeddings={"Q": [1.0]}), r"embeddings: none of .*compare \['Q'\]"),
        (dict(embeddings=Keyed(["Q"], VECTORS)), r"none of .*compare \['Q'\]"),
        (dict(embeddings=(WORDS[:2], [[1, 2], [1]])), r"same length, got .*\(2,\)"),
        (dict(embeddings={}), "embeddings: each word must have"),
        (dict(embeddings={"w1": [1, 2], "w2": [1]}), r"same length, got .*\(1,\)"),
        (dict(embeddings={"w1": [1, np.nan]}), "embeddings: .* has nan at row 0"),
        (dict(embeddings=(WORDS, VECTORS[:, :2])), "2 columns, but embedding_dim=3"),
        (dict(word_features=(WORDS, VECTORS[:3])), "features: .* each of the 12 words"),
        (dict(word_features={"Q": [1.0]}), "word_features: none of the words"),
        (dict(word_features=(["w1", "w1"], np.eye(2))), "features: .*'w1' twice"),
        (
            dict(word_features=(WORDS, np.full((12, 2), np.nan))),
            "word_features has nan",
        ),
        (dict(word_features="shape"), "word_features='shape' must be 'spelling'"),
    ],
)
def test_unmatched_rows_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        text_lm(**parameters).fit(TEXTS)


@pytest.mark.parametrize(
    "parameters",
    [*({"embeddings": given} for given in BY_WORD.values()),
     {"word_features": VECTOR}, {"word_features": (WORDS, VECTORS)},
     {"word_features": (WORDS, csr_array(VECTORS))}, {"word_features": "spelling"}],
)  # fmt: skip
def test_network_error_names_text_lm(parameters):
    ids = np.arange(40).reshape(20, 2) % 12 + 1
    with pytest.raises(
        ValueError, match=r"by word, but NeuralLM takes arrays .*TextLM"
    ):
        network(**parameters).fit(ids, ids[:, 0])
    with pytest.raises(ValueError, match="by word, but the documents are ids"):
        text_lm(**parameters).set_params(vocabulary="auto").fit(ids)
