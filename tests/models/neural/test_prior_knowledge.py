"""NeuralLM told something of the words: where features begin, what they are made of."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, hstack
from sklearn.base import clone

from nplm import windows
from tests.helpers import changed, check_shared, paper_lm

N_WORDS, M = 20, 4
SMALL = dict(
    order=3, n_words=N_WORDS, n_hidden=6, embedding_dim=M, batch_size=8, max_iter=2,
    random_state=0,
)  # fmt: skip
START = np.random.default_rng(1).normal(size=(N_WORDS, M))
PARTS = csr_array(np.random.default_rng(2).random((N_WORDS, 7)) < 0.3, dtype=float)
KINDS = {
    "given": dict(embeddings=START),
    "fixed": dict(embeddings=START, trained=False),
    "composed": dict(word_features=PARTS),
    "tied": dict(tied=True),
    "tied, direct": dict(tied=True, direct=True),
    "tied, composed, given": dict(tied=True, word_features=PARTS, embeddings=START),
    "tied, composed, sampled": dict(
        tied=True, word_features=PARTS, loss="importance", n_noise=50
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_solver = pytest.mark.parametrize("solver", ["sgd", "adam"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ids = np.cumsum(rng.choice([1, 2, 5], 700, p=[0.7, 0.2, 0.1])) % N_WORDS
    return windows(ids.astype(np.int32), 2)


def learned(lm):
    return lm._trained.parameters.learned()


def test_features_start_at_the_given_embeddings(data):
    lm = paper_lm(**SMALL, embeddings=START.tolist()).trainer(*data).keep()
    np.testing.assert_array_equal(lm.C_, START.astype(np.float32))
    began = lm.C_.copy()
    assert (began != lm.partial_fit(*data).C_).any()
    # Also where words share some: what each has alone is the rest.
    lm = paper_lm(**SMALL, embeddings=START, word_features=PARTS).trainer(*data).keep()
    assert lm.G_.any()
    np.testing.assert_allclose(lm.C_, START, rtol=1e-5, atol=1e-6)


# -- features that start from the counts -----------------------------------------------


N_FEW = 14  # of which 2 do not occur; so few that the decomposition is exact
FEW = SMALL | dict(n_words=N_FEW)


@pytest.fixture(scope="module")
def few(data):
    X, y = data
    return X % (N_FEW - 2), y % (N_FEW - 2)


def components_of(X, y, n_words=N_FEW, m=M):
    """By a loop and NumPy's decomposition."""
    before = np.zeros((n_words, n_words))
    for context, word in zip(X, y, strict=True):
        for neighbour in context[::-1][:2]:
            before[word, neighbour] += 1
    counts = np.hstack([before, before.T])
    totals = counts.sum(axis=1, keepdims=True)
    U, S, _ = np.linalg.svd(np.sqrt(counts / np.maximum(totals, 1)))
    C = np.zeros((n_words, m))
    C[:, :n_words] = U[:, :m] * np.sqrt(S[:m])
    return 0.1 * C / np.sqrt(np.mean(C[totals[:, 0] > 0, :n_words] ** 2))


def assert_started(lm, expected):
    sign = np.sign(np.sum(lm.C_ * expected, axis=0))
    np.testing.assert_allclose(lm.C_, expected * sign, rtol=1e-3, atol=1e-5)


def began(lm, X, y):
    """The network before its first update."""
    return lm.trainer(X, y).keep()


@pytest.mark.parametrize(
    "kind", [dict(tied=True), dict(tied=True, word_features=PARTS[:N_FEW]),
             dict(embeddings="counts")],
)  # fmt: skip
def test_features_start_from_the_counts_of_neighbours(few, kind):
    X, y = few
    expected = components_of(X, y)
    lm = began(paper_lm(**FEW, **kind), X, y)
    assert_started(lm, expected)
    # In any order of the windows, with any number of threads to the same bits.
    order = np.random.default_rng(0).permutation(len(y))
    assert_started(began(clone(lm), X[order], y[order]), expected)
    for n_jobs in (2, 3):
        again = began(clone(lm).set_params(n_jobs=n_jobs), X, y)
        np.testing.assert_array_equal(again.C_, lm.C_)


@pytest.mark.parametrize(
    "kind",
    [
        dict(),
        dict(tied=True, embeddings=None),
        dict(tied=True, embeddings=START[:N_FEW]),
    ],
)
def test_features_do_not_start_from_the_counts(few, kind):
    X, y = few
    lm = began(paper_lm(**FEW, **kind), X, y)
    again = began(clone(lm), X, (y + 1) % N_FEW)
    np.testing.assert_array_equal(again.C_, lm.C_)


def test_held_out_windows_are_not_counted(few):
    X, y = few
    lm = paper_lm(**FEW, tied=True, learning_rate_init=1e-30, alpha=0)
    lm.set_params(early_stopping=True, validation_fraction=0.5).fit(X, y)
    assert_started(lm, components_of(X[: len(y) // 2], y[: len(y) // 2]))


def test_continued_training_does_not_count_again(few):
    X, y = few
    lm = paper_lm(**FEW, tied=True, learning_rate_init=1e-30, alpha=0)
    expected = components_of(X[:40], y[:40])
    assert (expected == 0).all(axis=1).sum() == 2  # of the words that do not occur
    assert_started(lm.partial_fit(X[:40], y[:40]), expected)
    assert_started(lm.partial_fit(X[40:], y[40:]), expected)
    assert_started(lm.set_params(warm_start=True).fit(X, y), expected)


def test_there_are_fewer_words_than_features():
    X, y = windows(np.random.default_rng(0).integers(0, 3, 200), 2)
    small = SMALL | dict(n_words=3)
    assert_started(began(paper_lm(**small, tied=True), X, y), components_of(X, y, 3))


def test_a_network_without_context_has_nothing_to_count(few):
    X, y = few
    small = FEW | dict(order=1)
    assert began(paper_lm(**small, tied=True), X, y).C_.all()
    with pytest.raises(ValueError, match=r"'counts'.*order=1 has none"):
        paper_lm(**small, embeddings="counts").fit(X, y)


@each_solver
def test_fixed_features_do_not_change_and_have_no_moments(data, solver):
    lm = paper_lm(**SMALL, **KINDS["fixed"], solver=solver, alpha=0.1).fit(*data)
    lm.partial_fit(*data)
    np.testing.assert_array_equal(lm.C_, START.astype(np.float32))
    assert not [name for name in lm._trained.solver_state if name.endswith("_C")]


@pytest.mark.parametrize("tied", [False, True])
def test_words_of_the_same_parts_have_the_same_neighbours(tied):
    # Word 19 does not occur; it is made as word 3 is, and has little alone.
    ids = np.arange(2000) % 10
    parts = csr_array(np.eye(10)[np.arange(N_WORDS) % 9])
    dense = parts.toarray()
    dense[19] = dense[3]
    lm = paper_lm(
        **SMALL | dict(max_iter=20), tied=tied, word_features=csr_array(dense),
        embeddings=np.full((N_WORDS, M), 1e-3), solver="adam", learning_rate_init=0.01,
    ).fit(*windows(ids, 2))  # fmt: skip
    assert lm.predict([[2, 3]]) == 4
    assert lm.predict([[2, 19]]) == 4


@each_kind
@each_solver
def test_training_continues(data, kind, solver):
    """Two epochs and a third are three of one fit, but for their order."""
    lm = paper_lm(**SMALL, **KINDS[kind], solver=solver, shuffle=False, alpha=0.01)
    whole = clone(lm).set_params(max_iter=3).fit(*data)
    lm.fit(*data).partial_fit(*data)
    for name, array in learned(whole).items():
        np.testing.assert_allclose(learned(lm)[name], array, rtol=2e-4, atol=2e-5)
    warm = clone(lm).set_params(warm_start=True).fit(*data)
    warm.set_params(max_iter=1).fit(*data)
    np.testing.assert_allclose(warm.C_, whole.C_, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_training_continues_from_set_features(data, tied):
    lm = paper_lm(**SMALL, word_features=PARTS, tied=tied, alpha=0.0).fit(*data)
    lm.C_, lm.b_ = START, np.arange(N_WORDS) / 10
    np.testing.assert_allclose(lm.C_, START, rtol=1e-6)
    lm.set_params(learning_rate_init=1e-12).partial_fit(*data)
    np.testing.assert_allclose(lm.C_, START, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lm.b_, np.arange(N_WORDS) / 10, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        lm.C_[3] = 0


def test_any_matrix_of_word_features_is_accepted(data):
    both = hstack([PARTS, csr_matrix(np.eye(N_WORDS))])
    expected = paper_lm(**SMALL, word_features=PARTS).fit(*data)
    for same in (PARTS.toarray(), PARTS.tocoo(), PARTS.tocsc(), csr_matrix(PARTS)):
        lm = paper_lm(**SMALL, word_features=same).fit(*data)
        np.testing.assert_array_equal(lm.C_, expected.C_)
    assert paper_lm(**SMALL, word_features=both).fit(*data).G_.shape == (27, M)


def with_bad_index():
    matrix = PARTS.copy()
    matrix.indices[0] = -1
    return matrix


def with_nan():
    matrix = PARTS.copy()
    matrix.data[matrix.indptr[4]] = np.nan
    return matrix


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(embeddings=START[:-1]), r"\(19, 4\), but .* has 20 words; .*n_words"),
        (dict(embeddings=START[:, 0]), r"embeddings has shape \(20,\)"),
        (dict(embeddings=START[:, :3]), "3 columns, but embedding_dim=4: set .*=3"),
        (dict(embeddings=[["a"] * M] * N_WORDS), "must be an array of numbers"),
        (dict(embeddings=START + 1j), "must be an array of numbers.*complex"),
        (dict(word_features=PARTS * 1j), "word_features must be .*complex"),
        (dict(embeddings=np.where(np.eye(N_WORDS, M)[:, ::-1], np.nan, 1)),
         "embeddings has nan at row 0, column 3"),
        (dict(trained=False), "embeddings='auto' would keep random"),
        (dict(embeddings=START, trained=False, tied=True), "output__tied trains them"),
        (dict(embeddings=START, trained=False, word_features=PARTS),
         "features__word_features trains them"),
        (dict(word_features=np.ones(N_WORDS)), r"word_features has shape \(20,\)"),
        (dict(word_features=PARTS[:-1]), r"shape \(19, .* has 20 words"),
        (dict(word_features=with_nan()), "word_features has nan at row 4, column"),
        (dict(word_features=PARTS * 1e30), r"has 1e\+30 at row 0.*: scale"),
        (dict(embeddings=START * 0 - 1e30), r"has -1e\+30 at row 0, column 0"),
        (dict(word_features=with_bad_index()), "sparse matrix.*(index|indices)"),
        (dict(word_features=PARTS * 0), r"shape \(20, 7\) has no nonzero entry"),
        (dict(word_features=np.zeros((N_WORDS, 0))), r"\(20, 0\) has no nonzero entry"),
        (dict(word_features=[["a"]] * N_WORDS), "must be a dense or sparse matrix"),
        (dict(tied=True, parallel="async"), "tied=True with parallel='async'.*'sync'"),
        (dict(tied=True, n_hidden=0), "n_hidden=0 without direct"),
        (dict(tied="yes"), "The 'tied' parameter"),
    ],
)  # fmt: skip
def test_invalid_values_are_refused(data, options, message):
    lm = paper_lm(**SMALL | options)
    with pytest.raises(ValueError, match=message):
        lm.fit(*data)
    assert not hasattr(lm, "n_words_")


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (dict(), dict(tied=True)),
        (dict(tied=True), dict(tied=False)),
        (dict(tied=True), dict(direct=True)),
        (dict(embeddings=START), dict(trained=False)),
        (KINDS["fixed"], dict(trained=True)),
        (dict(), dict(word_features=PARTS)),
        (dict(word_features=PARTS), dict(word_features=None)),
        (dict(word_features=PARTS), dict(word_features=PARTS * 2)),
        (dict(word_features=PARTS), dict(word_features=PARTS[:, :3])),
        (dict(), dict(order=2)),
        (dict(), dict(n_words=21)),
        (dict(), dict(n_hidden=7)),
        (dict(), dict(n_hidden=(6, 8))),
        (dict(), dict(embedding_dim=3)),
        (dict(), dict(direct=True)),
        (dict(), dict(n_distant=2)),
        (dict(), dict(n_senses=2)),
    ],
)
def test_continuing_with_another_architecture_is_refused(data, before, change):
    lm = paper_lm(**SMALL, **before, warm_start=True).fit(*data)
    changed(lm, **change)
    for go_on in (lm.fit, lm.partial_fit):
        with pytest.raises(ValueError, match=r"is not that of the fitted network"):
            go_on(*data)


def test_tied_output_cannot_be_shared_by_processes():
    with pytest.raises(
        ValueError, match=r"set_params\(loss='exact', output__tied=False\)"
    ):
        check_shared(paper_lm(tied=True))
    check_shared(paper_lm(word_features=PARTS))
