"""Vectors of words: aligned ones, co-occurrence counts, and features of spelling."""

import numpy as np
import pytest

from nplm import Vocabulary, cooccurrence_embeddings

VOCABULARY = Vocabulary().fit([["a", "rose", "is", "red"]])


def test_vectors_are_aligned_with_ids():
    words, vectors = ["red", "other", "a", "is"], np.arange(8.0).reshape(4, 2)
    start = VOCABULARY.embeddings(words, vectors, random_state=0)
    assert start.shape == (VOCABULARY.n_words_, 2)
    assert start.dtype == np.float32
    for word in ("red", "a", "is"):
        np.testing.assert_array_equal(
            start[VOCABULARY.ids_[word]], vectors[words.index(word)]
        )


def test_missing_vectors_are_drawn_from_the_distribution_of_others():
    words = [f"w{i}" for i in range(4000)]
    vocabulary = Vocabulary().fit([words])
    vectors = np.random.default_rng(0).normal([5, 0], [1e-3, 2], (2000, 2))
    start = vocabulary.embeddings(words[:2000], vectors, random_state=0)
    own = {vocabulary.ids_[word] for word in words[:2000]}
    drawn = start[[i for i in range(vocabulary.n_words_) if i not in own]]
    assert len(drawn) == 2002
    np.testing.assert_allclose(drawn.mean(axis=0), [5, 0], atol=0.2)
    np.testing.assert_allclose(drawn.std(axis=0), [1e-3, 2], rtol=0.1)
    again = vocabulary.embeddings(words[:2000], vectors, random_state=0)
    np.testing.assert_array_equal(again, start)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], [[1.0], [2.0]], "a row for each of the 1 words, got shape"),
        (["a"], [1.0], r"got shape \(1,\)"),
        (["a", "b", "a"], [[1.0]] * 3, "words has 'a' twice"),
        (["A", "Rose"], [[1.0]] * 2, r"none of the words .*\['A', 'Rose'\] with"),
        (["a", "b"], [[1.0], [1e99]], r"vectors has 1e\+99 at row 1, .* float32"),
        (["a", "b"], [[1.0], [np.nan]], "vectors has nan at row 1, column 0 .of 'b'"),
    ],
)
def test_invalid_vectors_are_refused(words, vectors, message):
    with pytest.raises(ValueError, match=message):
        VOCABULARY.embeddings(words, vectors)


def test_principal_components_of_the_frequencies_of_neighbours():
    """Compare with the counts of a loop and NumPy's decomposition."""
    ids = np.random.default_rng(0).integers(0, 6, 400)
    window, n_words = 2, 7  # word 6 does not occur
    before = np.zeros((n_words, n_words))
    for t, word in enumerate(ids):
        for neighbour in ids[max(0, t - window) : t]:
            before[word, neighbour] += 1
    counts = np.hstack([before, before.T])
    roots = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    U, S, _ = np.linalg.svd(roots)
    expected = U[:, :3] * np.sqrt(S[:3])
    expected *= 0.1 / np.sqrt(np.mean(expected[:6] ** 2))
    found = cooccurrence_embeddings(ids, n_words, 3, window=window, random_state=0)
    assert found.dtype == np.float32
    assert (found[6] == 0).all()
    sign = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found, expected * sign, rtol=1e-4, atol=1e-6)


def test_the_same_seed_gives_the_same_components():
    ids = np.random.default_rng(0).integers(0, 200, 5000)
    first, again = (
        cooccurrence_embeddings(ids, 200, 5, random_state=3) for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([0, 1, 9], {}, "ids has 9 at 2, but n_words=3"),
        ([0, -1], {}, "ids has -1 at 1"),
        ([0.5, 1], {}, "ids has 0.5 at 0"),
        ([], {}, "ids has 0 tokens: give a text of two words"),
        ([1], {}, "ids has 1 tokens"),
        ([[0, 1]], {}, "ids must have 1 dimension"),
        ([0, 1], {"embedding_dim": 4}, "embedding_dim=4 is more than n_words=3"),
        ([0, 1], {"embedding_dim": 0}, "embedding_dim.*must be an int in the range"),
        ([0, 1], {"window": 0}, "window.*must be an int in the range"),
    ],
)
def test_invalid_cooccurrence_parameters_are_refused(ids, options, message):
    with pytest.raises(ValueError, match=message):
        cooccurrence_embeddings(ids, 3, **({"embedding_dim": 2} | options))


# -- spelling, compared with features listed by hand ----------------------------------


def features_of(words, **options):
    vocabulary = Vocabulary().fit([words])
    features, names = vocabulary.spelling_features(**options)
    dense = features.toarray()
    return {
        word: {names[j]: dense[i, j] for j in np.flatnonzero(dense[i])}
        for i, word in enumerate(vocabulary.words_)
    }


def test_every_feature_of_a_word():
    own = features_of(["Ab1"], ngrams=(2, 3), min_words=1)["Ab1"]
    expected = {f"ngram:{n}" for n in ("<A", "Ab", "b1", "1>", "<Ab", "Ab1", "b1>")}
    assert own.keys() == expected | {"shape:capital", "shape:digit", "length:3"}
    assert list(own.values()) == pytest.approx([1 / np.sqrt(10)] * 10)


def test_a_feature_counts_once_in_a_word():
    assert features_of(["aaaa"], ngrams=(2, 2), min_words=1)["aaaa"].keys() == {
        "ngram:<a", "ngram:aa", "ngram:a>", "length:4",
    }  # fmt: skip


def test_rare_features_are_dropped():
    found = features_of(["rose", "roses", "prose", "X"], ngrams=(4, 4), min_words=2)
    kept = ("ngram:<ros", "ngram:rose", "ngram:ose>")
    assert found["rose"] == pytest.approx(dict.fromkeys(kept, 1 / np.sqrt(3)))
    assert found["X"] == {}


def test_symbols_have_no_spelling():
    found = features_of(["unk", "</s", "un", "<unk>"], min_words=1)
    assert found["<unk>"] == found["</s>"] == {}
    assert found["unk"]


def test_the_matrix_is_sparse_and_small():
    vocabulary = Vocabulary().fit([["rose", "roses", "prose"]])
    features, names = vocabulary.spelling_features(min_words=2)
    assert features.format == "csr"
    assert features.dtype == np.float32
    assert features.shape == (vocabulary.n_words_, len(names))
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngrams": (3, 2)}, r"ngrams=\(3, 2\) has its bounds reversed"),
        ({"ngrams": 3}, "ngrams must be a pair of .* letters, got 3"),
        ({"ngrams": (0, 2)}, r"ngrams\[0\].*must be an int in the range \[1, inf\)"),
        ({"ngrams": (2, 2.5)}, r"ngrams\[1\].*must be an int"),
        ({"min_words": 0}, "min_words.*must be an int"),
        ({"min_words": 10}, "no feature occurs in min_words=10 of the 4.*lower"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary().fit([["rose", "roses"]]).spelling_features(**options)
