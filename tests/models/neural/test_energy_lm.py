"""EnergyLM: what it adds to a network's estimator, and new words."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from nplm import EnergyLM, NeuralLM, TextLM, Vocabulary, windows
from tests.helpers import check_shared, energy_lm, text

V = 12


@pytest.fixture
def data():
    return windows(text(600, n_words=V), 3)


@pytest.fixture(params=[False, True], ids=["one v", "v of words"])
def lm(request, data):
    small = dict(n_words=V, n_hidden=6, embedding_dim=4, max_iter=2, random_state=0)
    small |= dict(target_weights=request.param, precision="float64")
    return energy_lm(**small).fit(*data)


def test_probabilities_from_the_attributes(lm, data):
    X, _ = data
    x = lm.C_[X[:, ::-1]].reshape(len(X), -1)
    H = np.hstack([lm.H_next_, lm.H_])
    E = np.empty((len(X), V))
    for w in range(V):
        whole = np.hstack([np.tile(lm.C_[w], (len(X), 1)), x])
        v = lm.v_ if lm.v_.ndim == 1 else lm.v_[w]
        E[:, w] = np.tanh(lm.d_ + whole @ H.T) @ v + lm.b_[w]
    want = np.exp(-E) / np.exp(-E).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(lm.predict_proba(X), want, rtol=1e-10)
    h, m, n = 6, 4, 4
    own = h if lm.target_weights else 0
    count = V * (1 + m + own) + h * ((1 if own else 2) + n * m)
    assert lm.n_parameters_ == count
    assert lm.C_.size + H.size + lm.d_.size + lm.v_.size + lm.b_.size == count


def test_errors_about_the_output_weights_name_them(lm):
    with pytest.raises(AttributeError, match="EnergyLM has no v_ before it is fitted"):
        clone(lm).v_  # noqa: B018
    with pytest.raises(NotFittedError):
        clone(lm).v_ = 0
    with pytest.raises(ValueError, match=r"v_ has shape .* array of shape \(3,\)"):
        lm.v_ = np.zeros(3)


def test_attributes_can_be_set(lm, data):
    X, y = data
    before = lm.log_prob(X, y)
    lm.v_ = 0 * lm.v_
    unigram = lm.predict_proba(X[:2])
    np.testing.assert_allclose(unigram[0], unigram[1], rtol=1e-6)
    assert not np.allclose(lm.log_prob(X, y), before)
    with pytest.raises(ValueError, match=r"has shape \(6, 4\)"):
        lm.H_next_ = lm.H_next_[:1]


def test_order_1_is_the_unigram(data):
    X, y = data
    lm = energy_lm(order=1, n_words=V, n_hidden=4, max_iter=1, random_state=0).fit(X, y)
    proba = lm.predict_proba(X[:2])
    np.testing.assert_array_equal(proba[0], proba[1])
    assert proba.sum() == pytest.approx(2)


def test_energy_has_no_shards():
    with pytest.raises(ValueError, match="set keep='all'"):
        check_shared(EnergyLM())


# -- new words -------------------------------------------------------------------


def test_features_of_new_word_are_the_expected_mean(lm, data):
    X, _ = data
    before = {name: getattr(lm, name).copy() for name in ("C_", "v_", "b_", "d_")}
    known = lm.predict_proba(X)
    contexts, words = X[[5, 9, 40]], [V, V + 1, V]
    assert lm.add_words(contexts, words) is lm
    assert (lm.n_words_, lm.n_added_) == (V + 2, 2)
    assert lm.classes_.tolist() == list(range(V + 2))
    proba = known[[5, 9, 40]]
    for name in ["C_", "v_"] if lm.target_weights else ["C_"]:
        guessed = proba @ before[name]
        want = [(guessed[0] + guessed[2]) / 2, guessed[1]]
        np.testing.assert_allclose(getattr(lm, name)[V:], want, rtol=1e-5)
        np.testing.assert_array_equal(getattr(lm, name)[:V], before[name])
    np.testing.assert_array_equal(lm.d_, before["d_"])
    np.testing.assert_array_equal(lm.b_[:V], before["b_"])
    # A renormalisation: known words keep their proportions.
    proba = lm.predict_proba(X)
    assert (proba[:, V:] > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    rest = proba[:, :V].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba[:, :V], known * rest, rtol=1e-4)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_new_words_occur_in_contexts_and_are_trained(data, solver):
    X, y = data
    lm = energy_lm(
        n_words=V, n_hidden=6, embedding_dim=4, solver=solver, max_iter=2,
        random_state=0, warm_start=True,
    )  # fmt: skip
    lm.fit(X, y).add_words(X[:2], [V, V + 1])
    X_new, y_new = windows(text(300, seed=1, n_words=V + 2), 3)
    before, C = lm.perplexity(X_new, y_new), lm.C_.copy()
    lm.partial_fit(X_new, y_new)
    assert lm.perplexity(X_new, y_new) < before
    assert (lm.C_[V:] != C[V:]).any(axis=1).all()
    assert lm.fit(X_new, y_new).n_words_ == V + 2
    # Anew, it has the words that it was asked for.
    lm.set_params(warm_start=False)
    with pytest.raises(ValueError, match="n_words=12"):
        lm.fit(X_new, y_new)
    assert lm.fit(X, y).n_words_ == V
    assert (lm.n_added_, clone(lm).n_words) == (0, V)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, 2, 3]], [V - 1], "y has 11 at 0, which is not a new word.*12"),
        ([[1, 2, 3]], [V + 1], "y has 13, but not 12; .*without a gap"),
        ([[1, 2, 3]], [2**31 - 2], "y has 2147483646, but not 12"),
        ([[1, 2, V]], [V], "X has 12 at row 0, column 2, but n_words=12"),
        ([[1, 2, 3]] * 2, [V], "X has 2 contexts, but y has 1 words; give one context"),
        ([], [], "X has 0 contexts, but y has 0 words"),
        ([[1, 2]], [V], "features"),
        ([[1, 2, 3]], [-1], "y has -1"),
        (np.empty((0, 3), int), np.empty(0, int), "X has 0 contexts"),
    ],
)
def test_refused_words_leave_the_model_unchanged(lm, data, X, y, message):
    before = lm.predict_proba(data[0])
    with pytest.raises(ValueError, match=message):
        lm.add_words(X, y)
    np.testing.assert_array_equal(lm.predict_proba(data[0]), before)


def test_add_words_requires_a_fit():
    with pytest.raises(NotFittedError):
        EnergyLM().add_words([[1, 2]], [3])


# -- from text -------------------------------------------------------------------


def fitted_text():
    tokens = [[f"w{i}" for i in ids] for ids in text(400).reshape(-1, 10)]
    vocabulary = Vocabulary().fit(tokens)
    estimator = energy_lm(n_hidden=4, embedding_dim=3, max_iter=1, random_state=0)
    lm = TextLM(estimator, n_context=2).fit(vocabulary.transform(tokens))
    return vocabulary, lm


def test_new_words_from_text():
    vocabulary, lm = fitted_text()
    n = vocabulary.n_words_
    tokens = [["w1", "ada", "w2", "bob", "ada", "cy"], ["w3", "ada"]]
    assert vocabulary.count_unknown(tokens).sum() == 5
    vocabulary.add_words(["ada", "bob", "cy"])
    documents = vocabulary.transform(tokens)
    lm.add_words(documents)
    assert lm.n_words_ == vocabulary.n_words_ == n + 3
    assert np.isfinite(lm.score(documents))
    # One after the other, by hand: "cy" stands after two of them.
    _, want = fitted_text()
    w1, w2, w3 = (vocabulary.ids_[w] for w in ("w1", "w2", "w3"))
    want.estimator_.add_words([[0, w1], [0, w3]], [n, n])
    want.estimator_.add_words([[n, w2]], [n + 1])
    want.estimator_.add_words([[n + 1, n]], [n + 2])
    np.testing.assert_allclose(
        lm.estimator_.C_, want.estimator_.C_, rtol=1e-6, atol=1e-7
    )


def test_unsuitable_text_adds_no_words():
    vocabulary, lm = fitted_text()
    n = vocabulary.n_words_
    before = lm.estimator_.C_.copy()
    with pytest.raises(ValueError, match=f"{n} has no context of smaller ids"):
        lm.add_words([[2, n + 1, n]])
    with pytest.raises(ValueError, match=f"2147483646, but {n + 1} has no context"):
        lm.add_words([[2, n, 2**31 - 2]])
    assert lm.n_words_ == n
    np.testing.assert_array_equal(lm.estimator_.C_, before)
    network = NeuralLM(max_iter=1, early_stopping=False)
    other = TextLM(network, n_context=2).fit([[1, 2, 3]])
    with pytest.raises(TypeError, match="NeuralLM cannot take new words"):
        other.add_words([[1, 4]])
