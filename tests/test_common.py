"""scikit-learn's own checks, and what every language model promises."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from nplm import (
    CacheLM,
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralCacheLM,
    ShortlistLM,
    UniformLM,
    windows,
)
from nplm.base import blocks
from nplm.base.estimators import checked_inputs
from nplm.models.ngrams import interpolated_trigram
from nplm.models.ngrams.trie import backoff_trie, hash_table
from tests.helpers import energy_lm, paper_lm, small_models

N_WORDS = 12


def models():
    """One small instance of each model, on a vocabulary of N_WORDS words."""
    return small_models(N_WORDS)


@pytest.mark.slow
@parametrize_with_checks(
    [
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, direct=True, batch_size=1),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, tied=True),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, tied=True, dropout=0.2),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, n_senses=2),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, output="classes"),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, output="tree"),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, loss="importance"),
        paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, loss="nce", batch_size=1),
        energy_lm(n_hidden=4, embedding_dim=3, max_iter=2),
        InterpolatedTrigram(order=2),
        KneserNeyLM(),
        KneserNeyLM(interpolate=False, min_counts=(1, 1, 2)),
        InterpolatedTrigram(order=None),
        ClassLM(),
        UniformLM(),
        UniformLM("unseen"),
        CacheLM(),
        NeuralCacheLM(
            paper_lm(2, n_hidden=4, embedding_dim=3, max_iter=1, random_state=0)
        ),
        MixtureLM([("bigram", InterpolatedTrigram(order=2)), ("kn", KneserNeyLM())]),
        ShortlistLM(
            paper_lm(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0),
            KneserNeyLM(),
            n_shortlist=2,
        ),
    ]
)
@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def stream():
    # Words 10 and 11 never occur: half-seen and unseen contexts have them.
    rng = np.random.default_rng(0)
    steps = rng.choice([1, 1, 1, 2, 3], size=600)
    return (np.cumsum(steps) % (N_WORDS - 2)).astype(np.int32)


@pytest.fixture(scope="module")
def fitted(stream):
    X, y = windows(stream[:500], 3)
    X_val, y_val = windows(stream[500:], 3, history=stream[:500])
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate"):
        return {
            name: model.fit(X, y, X_val=X_val, y_val=y_val)
            for name, model in models().items()
        }


@pytest.mark.slow
@pytest.mark.parametrize("name", models())
@settings(max_examples=25)
@given(
    context=st.lists(st.integers(0, N_WORDS - 1), min_size=3, max_size=3),
    word=st.integers(0, N_WORDS - 1),
)
def test_a_distribution_for_every_context(fitted, name, context, word):
    lm = fitted[name]
    tolerance = 1e-5 if name.startswith(("neural", "mixture", "short-list")) else 1e-6
    proba = lm.predict_proba([context])
    assert proba.shape == (1, N_WORDS)
    assert (proba > 0).all()
    assert proba.sum() == pytest.approx(1, abs=tolerance)
    log_prob = lm.log_prob([context], [word])
    assert log_prob == pytest.approx(np.log(proba[:, word]), abs=tolerance)
    np.testing.assert_allclose(
        lm.predict_log_proba([context]), np.log(proba), atol=tolerance
    )
    assert lm.predict([context]) == proba.argmax(axis=1)


@pytest.mark.parametrize("name", models())
def test_scores_agree(fitted, stream, name):
    lm = fitted[name]
    X, y = windows(stream[400:], 3)
    log_prob = lm.log_prob(X, y)
    assert log_prob.shape == y.shape
    assert log_prob.dtype == np.float64
    assert lm.score(X, y) == pytest.approx(log_prob.mean())
    assert lm.perplexity(X, y) == pytest.approx(np.exp(-log_prob.mean()))
    rows = np.arange(len(y))
    np.testing.assert_allclose(
        log_prob, np.log(lm.predict_proba(X)[rows, y]), atol=2e-6
    )
    assert lm.n_parameters_ > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", models())
@settings(max_examples=25)
@given(data=st.data(), n=st.integers(1, 4), n_candidates=st.integers(0, 5))
def test_candidates_are_columns_of_all_words(fitted, name, data, n, n_candidates):
    lm, word = fitted[name], st.integers(0, N_WORDS - 1)

    def ids(*shape):
        size = int(np.prod(shape))
        drawn = data.draw(st.lists(word, min_size=size, max_size=size))
        return np.array(drawn, dtype=np.int64).reshape(shape)

    X, own, shared = ids(n, 3), ids(n, n_candidates), ids(n_candidates)
    log_proba = lm.predict_log_proba(X)
    scored = lm.candidate_log_prob(X, own)
    assert scored.shape == (n, n_candidates)
    assert scored.dtype == np.float64
    want = np.take_along_axis(log_proba, own, axis=1)
    np.testing.assert_allclose(scored, want, atol=3e-6)
    np.testing.assert_allclose(
        lm.candidate_log_prob(X, shared.tolist()), log_proba[:, shared], atol=3e-6
    )
    # Without the normaliser each row is off by a number of its own.
    off = lm.candidate_log_prob(X, own, normalize=False) - scored
    np.testing.assert_allclose(off, np.broadcast_to(off[:, :1], off.shape), atol=3e-6)


@pytest.mark.parametrize("name", models())
def test_candidates_that_are_none(fitted, stream, name):
    lm, (X, _) = fitted[name], windows(stream[:9], 3)
    for candidates, message in [
        ([[3, 12]] * 6, "candidates has 12 at row 0, column 1, but n_words=12"),
        ([3, -1], "candidates has -1 at 1, but word ids start at 0"),
        (np.array([3, 40]), "candidates has 40 at 1, but n_words=12"),
        ([[3]] * 5, "candidates has 5 rows, but X has 6: give each context its row"),
        ([[3], [4, 5]] * 3, "candidates must have 2 dimensions, got sequences"),
        (3, r"candidates must have 2 dimensions, got an array of shape \(\)"),
        (["a"], "candidates must hold word ids"),
    ]:
        with pytest.raises(ValueError, match=message):
            lm.candidate_log_prob(X, candidates)
    with pytest.raises(NotFittedError):
        models()[name].candidate_log_prob(X, [1])


@pytest.mark.parametrize("name", models())
def test_pickle_and_clone(fitted, stream, name):
    lm = fitted[name]
    X, y = windows(stream[:100], 3)
    again = pickle.loads(pickle.dumps(lm))
    np.testing.assert_array_equal(again.log_prob(X, y), lm.log_prob(X, y))
    assert clone(lm).get_params().keys() == lm.get_params().keys()


@pytest.mark.parametrize("name", models())
@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_the_same_seed_gives_the_same_bits(fitted, stream, name):
    X, y = windows(stream[:500], 3)
    X_val, y_val = windows(stream[500:], 3, history=stream[:500])
    again = models()[name].fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(again.predict_proba(X), fitted[name].predict_proba(X))


@pytest.mark.parametrize("name", models())
class TestBadInput:
    def refuses(self, model, message, X, y=None):
        with pytest.raises(ValueError, match=message):
            model.fit(X, [1] * len(X) if y is None else y)

    def test_ids(self, name):
        model = models()[name]
        beyond = [[1, 2, 3], [12, 0, 1]]
        self.refuses(model, r"X has 12 at row 1, column 0, but n_words=12", beyond)
        self.refuses(model, r"y has 40 at 1, but n_words=12", [[1, 2, 3]] * 2, [0, 40])
        self.refuses(model, r"X has -1 at row 0, column 2", [[1, 2, -1]])
        self.refuses(model, r"X has 1.5 at row 0, column 0, which is", [[1.5, 2, 1]])
        self.refuses(model, "NaN", [[np.nan, 2, 1]])
        self.refuses(model, "0 sample", np.empty((0, 3), dtype=int))
        self.refuses(model, "inconsistent", [[1, 2, 3]], [1, 2])

    def test_words_for_ids(self, name):
        with pytest.raises(ValueError):
            models()[name].fit([["the", "cat", "sat"]], [1])

    def test_scoring(self, fitted, name):
        lm = fitted[name]
        with pytest.raises(ValueError, match="X has 99 at row 0, column 1"):
            lm.log_prob([[1, 99, 2]], [3])
        with pytest.raises(ValueError, match="y has 12 at 0, but n_words=12"):
            lm.score([[1, 1, 2]], [12])
        with pytest.raises(ValueError, match="features"):
            lm.predict_proba([[1, 2]])

    def test_half_a_held_out_set(self, name):
        with pytest.raises(ValueError, match="X_val and y_val go together"):
            models()[name].fit([[1, 2, 3]] * 9, [1] * 9, X_val=[[1, 2, 3]])


@pytest.mark.parametrize("name", models())
@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_a_refused_fit_changes_nothing(stream, name):
    X, y = windows(stream[:300], 3)
    lm = models()[name].fit(X, y)
    before = lm.predict_proba(X[:5])
    attributes = vars(lm).keys()
    if "order" in lm.get_params():
        lm.set_params(order=2)
    lm.set_params(n_words=100_000)
    with pytest.raises(ValueError, match="In X_val, y_val: y has 200000"):
        lm.fit(X, y, X_val=X[:3], y_val=[200_000] * 3)
    assert vars(lm).keys() == attributes
    np.testing.assert_array_equal(lm.predict_proba(X[:5]), before)
    with pytest.raises(ValueError, match="X has 99999"):
        lm.log_prob(np.full((5, 3), 99_999), np.full(5, 99_999))


@pytest.mark.parametrize(
    "model",
    [paper_lm(max_iter=1), energy_lm(max_iter=1), KneserNeyLM(), InterpolatedTrigram()],
)
@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_an_unseen_id_says_to_set_n_words(model, stream):
    X, y = windows(stream[:300], 3)
    lm = model.fit(X, y)
    assert lm.n_words_ == 10
    with pytest.raises(ValueError, match=r"inferred from the training windows.*set it"):
        lm.log_prob([[1, 2, 3]], [10])


@pytest.mark.parametrize(
    "model", [paper_lm(order=5), KneserNeyLM(order=5), InterpolatedTrigram(order=5)]
)
def test_contexts_too_short_for_the_order(model):
    with pytest.raises(ValueError, match=r"order=5 needs contexts of 4 words.*2 col"):
        model.fit([[1, 2]] * 20, [1] * 20)


@pytest.mark.parametrize("name", ["neural", "neural, energy", "trigram", "Kneser-Ney"])
@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_a_smaller_order_sees_the_nearest_words(stream, name):
    X, y = windows(stream, 4)
    wide = models()[name].set_params(order=3).fit(X, y)
    narrow = models()[name].set_params(order=3).fit(X[:, 2:], y)
    np.testing.assert_array_equal(wide.predict_proba(X), narrow.predict_proba(X[:, 2:]))


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_arrays_of_ids_take_no_long_checks(fitted, stream, name, dtype, monkeypatch):
    """scikit-learn's checks take longer than to score a sentence."""
    lm = fitted[name]
    X, y = (array.astype(dtype) for array in windows(stream[:60], 3))
    expected = lm.log_prob(X.tolist(), y.tolist()), lm.predict_proba(X.tolist())

    def long_check(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(checked_inputs, "validate_data", long_check)
    monkeypatch.setattr(checked_inputs, "check_is_fitted", long_check)
    np.testing.assert_array_equal(lm.log_prob(X, y), expected[0])
    np.testing.assert_array_equal(lm.predict_proba(X), expected[1])
    # A view, as of a slice of a stream.
    backwards = lm.log_prob(X[::-1], y[::-1])
    np.testing.assert_allclose(backwards[::-1], expected[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, float])
def test_arrays_of_ids_are_refused_with_the_same_words(fitted, dtype):
    lm = fitted["Kneser-Ney"]
    X, y = np.ones((4, 3), dtype), np.ones(4, dtype)
    beyond, after = X.copy(), y.copy()
    beyond[2, 1] = after[3] = 12
    with pytest.raises(ValueError, match=r"X has 12.* at row 2, column 1, but n_words"):
        lm.predict_proba(beyond)
    with pytest.raises(ValueError, match=r"y has 12.* at 3, but n_words=12"):
        lm.log_prob(X, after)
    if np.dtype(dtype).kind != "u":
        with pytest.raises(ValueError, match=r"X has -1.* at row 0, column 0"):
            lm.log_prob(-X, y)
        with pytest.raises(ValueError, match=r"y has -1.* at 0"):
            lm.log_prob(X, -y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        lm.log_prob(X, y[1:])
    with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 3"):
        lm.predict(np.ones((2, 4), dtype))
    with pytest.raises(ValueError, match="0 sample"):
        lm.log_prob(X[:0], y[:0])
    with pytest.raises(ValueError, match="2D array"):
        lm.log_prob(y, y)
    with pytest.raises(ValueError, match="1d array"):
        lm.log_prob(X, X)
    with pytest.raises(NotFittedError):
        KneserNeyLM(n_words=12).log_prob(X, y)


def test_columns_with_names_are_still_compared(stream):
    pd = pytest.importorskip("pandas")
    X, y = windows(stream[:300], 3)
    table = pd.DataFrame(X, columns=["third", "second", "first"])
    lm = InterpolatedTrigram(n_words=N_WORDS).fit(table, y)
    scored = lm.log_prob(table, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(lm.log_prob(X, y), scored)
    with pytest.raises(ValueError, match="feature names should match"):
        lm.log_prob(table[["first", "second", "third"]], y)


@pytest.mark.parametrize("name", ["Kneser-Ney", "trigram", "classes"])
def test_long_calls_are_made_in_blocks(fitted, stream, name, monkeypatch):
    """An interrupt (Ctrl-C) is heard between two calls of a kernel, not in one."""
    X, y = windows(stream, 3)
    lm = pickle.loads(pickle.dumps(fitted[name]))
    wanted = [lm.predict_proba(X), lm.predict_log_proba(X), lm.log_prob(X, y)]
    kernels = [
        (backoff_trie._backoff, "backoff_distribution"),
        (backoff_trie._backoff, "backoff_prob"),
        (hash_table._trie, "windows_log_prob"),
        (interpolated_trigram._interpolation, "context_frequencies"),
        (interpolated_trigram._interpolation, "relative_frequencies"),
        (interpolated_trigram._interpolation, "mixed_frequencies"),
    ]
    sizes = []

    def noted(kernel):
        def call(*args):
            sizes.append(len(args[-1]))
            return kernel(*args)

        return call

    for module, kernel in kernels:
        monkeypatch.setattr(module, kernel, noted(getattr(module, kernel)))
    for module in (backoff_trie, hash_table, interpolated_trigram):
        monkeypatch.setattr(module, "BLOCK_WINDOWS", 100)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 100 * N_WORDS)
    found = [lm.predict_proba(X), lm.predict_log_proba(X), lm.log_prob(X, y)]
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)
    # The model of 4 classes has rows of a third of the numbers.
    assert max(sizes) <= (300 if name == "classes" else 100)
