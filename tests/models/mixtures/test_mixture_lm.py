"""MixtureLM: its three weightings, compared with explicit sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    TextLM,
    UniformLM,
    windows,
)
from nplm.models.neural.network.network import Network
from tests.helpers import energy_lm, paper_lm, text

# Discounts cannot be estimated from a text of few words.
pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 12
WEIGHTS = ["uniform", "learned", "context", [0.7, 0.2, 0.1]]


def members():
    return [("kn", KneserNeyLM()), ("trigram", InterpolatedTrigram())]


def chain(n, seed):
    """Return text in which each word depends on the previous one."""
    return np.cumsum(text(n, seed)) % N_WORDS


@pytest.fixture(scope="module")
def parts():
    return windows(chain(900, 0), 3), windows(chain(400, 1), 3)


def mixture(weights, models=None, **parameters):
    models = members() if models is None else models
    return MixtureLM(
        models, weights, n_words=N_WORDS, include_uniform=True, **parameters
    )


@pytest.fixture(scope="module")
def fitted(parts):
    """Fit a mixture of members that are fitted once."""
    (X, y), (X_val, y_val) = parts
    held_out = {"X_val": X_val, "y_val": y_val}
    models = mixture("learned").fit(X, y, **held_out).named_estimators_
    frozen = [(name, FrozenEstimator(models[name])) for name, _ in members()]

    def fit(weights, **parameters):
        return mixture(weights, frozen, **parameters).fit(X, y, **held_out)

    return fit


def member_probs(model, X, y):
    return np.exp(np.stack([m.log_prob(X, y) for m in model.estimators_], axis=1))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_probabilities_are_the_weighted_sum(parts, fitted, weights):
    X, y = parts[1]
    model = fitted(weights)
    row_weights = model.weights_
    if weights == "context":
        seen = model._contexts.frequency(X[:, -2:])
        q = np.ceil(-np.log((1 + seen) / len(parts[0][1]))).astype(int)
        row_weights = model.weights_[np.searchsorted(model.bins_, q)]
    expected = (row_weights * member_probs(model, X, y)).sum(axis=1)
    assert_allclose(np.exp(model.log_prob(X, y)), expected)
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert_allclose(proba[np.arange(len(y)), y], expected, rtol=1e-6)
    assert_allclose(model.weights_.sum(axis=-1), 1)
    n_free = {"learned": 2, "context": 2 * len(np.atleast_2d(model.weights_))}
    n = sum(member.n_parameters_ for member in model.estimators_)
    assert model.n_parameters_ == n + n_free.get(str(weights), 0)
    if weights == "uniform":
        assert_array_equal(model.weights_, np.full(3, 1 / 3))


def test_learned_weights_are_a_fixed_point_of_em(parts, fitted):
    X, y = parts[1]
    model = fitted("learned", tol=0, max_iter=5000)
    joint = model.weights_ * member_probs(model, X, y)
    step = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    assert_allclose(model.weights_, step, atol=1e-4)
    # Nearby weights are worse on the held-out windows.
    for direction in np.eye(3):
        near = 0.95 * model.weights_ + 0.05 * direction
        assert fitted(near).score(X, y) <= model.score(X, y) + 1e-7


@pytest.mark.parametrize("weights", ["learned", "context"])
def test_no_em_step_lowers_the_held_out_likelihood(parts, fitted, weights):
    scores = [fitted(weights, max_iter=n, tol=0).score(*parts[1]) for n in range(6)]
    assert max(scores) > scores[0]
    if weights == "learned":  # those of contexts also follow their priors
        assert (np.diff(scores) >= -1e-12).all()
    assert scores[0] == pytest.approx(fitted("uniform").score(*parts[1]))
    assert fitted(weights, max_iter=4, tol=0).n_iter_ == 4
    assert fitted("uniform").n_iter_ == 0


def relative_frequency(order, X, y):
    """Return p_k of section 4.1: an interpolated model with all weight on it."""
    model = InterpolatedTrigram(order, n_words=N_WORDS).fit(X, y)
    model.weights_ = np.zeros_like(model.weights_)
    model.weights_[:, -1] = 1
    return FrozenEstimator(model)


def test_context_weights_are_those_of_the_interpolated_trigram():
    """A mixture by context of the trigram's members is the trigram."""
    X, y = windows(text(900), 2)
    X_val, y_val = windows(text(400, seed=1), 2)
    trigram = InterpolatedTrigram(n_words=N_WORDS).fit(X, y, X_val=X_val, y_val=y_val)
    alone = [(f"p{k}", relative_frequency(k, X, y)) for k in (1, 2, 3)]
    mix = MixtureLM(alone, "context", include_uniform=True)
    mix.fit(X, y, X_val=X_val, y_val=y_val)
    assert_array_equal(mix.bins_, trigram.bins_)
    assert_allclose(mix.weights_[:, [3, 0, 1, 2]], trigram.weights_, atol=1e-3)
    assert_allclose(mix.log_prob(X_val, y_val), trigram.log_prob(X_val, y_val))


def test_frozen_members_and_nesting(parts):
    (X, y), (X_val, y_val) = parts
    narrow = KneserNeyLM(n_words=N_WORDS).fit(X[:, 1:], y)
    inner = MixtureLM(members(), "learned", include_uniform=True)
    outer = MixtureLM(
        [("frozen", FrozenEstimator(narrow)), ("inner", inner), ("c", ClassLM(3))],
        "context",
        n_words=N_WORDS,
    ).fit(X, y, X_val=X_val, y_val=y_val)
    assert outer.named_estimators_["inner"].weights_.shape == (3,)
    assert_array_equal(
        outer.estimators_[0].log_prob(X[:, 1:], y), narrow.log_prob(X[:, 1:], y)
    )
    assert_allclose(outer.predict_proba(X_val).sum(axis=1), 1, atol=1e-6)
    # Contexts are counted even if all members are frozen.
    alone = MixtureLM([("frozen", FrozenEstimator(narrow))], "context")
    alone.fit(X, y, X_val=X_val, y_val=y_val)
    assert_allclose(alone.log_prob(X, y), narrow.log_prob(X[:, 1:], y))


def test_grid_search_learns_the_weights_of_each_fold(parts):
    (X, y), (X_val, y_val) = parts
    search = GridSearchCV(
        mixture("learned", max_iter=1000), {"kn__order": [2, 3]}, cv=3
    )
    search.fit(X, y, X_val=X_val, y_val=y_val)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("weights", ["learned", "context"])
def test_weight_of_uniform_member_on_unseen_words(weights):
    """Unseen words and contexts give the uniform member all weight."""
    X, y = windows(text(500, n_words=6), 2)
    X_val, y_val = windows(6 + text(200, n_words=6), 2)
    kn = [("kn", KneserNeyLM(n_words=N_WORDS))]
    model = MixtureLM(kn, weights, include_uniform=True, max_iter=1000, tol=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert_allclose(np.atleast_2d(model.weights_)[:, -1], 1, atol=0.01)
    # Without it, such words have probability 0 under every member:
    nothing = ClassLM(n_words=N_WORDS, classes=[0] * N_WORDS, uniform_weight=0)
    with pytest.raises(ValueError, match="none of the 198 held-out samples"):
        MixtureLM([("c", nothing)], weights).fit(X, y, X_val=X_val, y_val=y_val)


def test_default_weights_are_learned_on_held_out_windows(parts):
    model = MixtureLM(members(), n_words=N_WORDS)
    (X, y), (X_val, y_val) = parts
    held_out = {"X_val": X_val, "y_val": y_val}
    learned = clone(model).set_params(weights="learned").fit(X, y, **held_out)
    members_alone = sum(member.n_parameters_ for member in learned.estimators_)
    model.fit(X, y, **held_out)
    assert_array_equal(model.weights_, learned.weights_)
    assert not np.allclose(model.weights_, 1 / len(model.weights_))
    assert model.n_iter_ > 0
    assert model.n_parameters_ == members_alone + len(model.weights_) - 1
    model.fit(X, y)
    assert_array_equal(model.weights_, np.full(len(members()), 1 / len(members())))
    assert model.n_iter_ == 0
    assert model.n_parameters_ == members_alone


@pytest.mark.parametrize("weights", ["learned", "context"])
def test_learning_needs_held_out_windows(parts, weights):
    (X, y), (X_val, y_val) = parts
    with pytest.raises(ValueError, match=f"weights='{weights}' are learned on held"):
        mixture(weights).fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        mixture(weights).fit(X, y, X_val=X_val[:0], y_val=y_val[:0])
    with pytest.raises(ValueError, match="go together"):
        mixture(weights).fit(X, y, X_val=X_val)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"weights": "best"},
            'weights must be "auto", "uniform", "learned".* got \'best\'',
        ),
        ({"weights": [0.5, 0.5]}, "one for each model, of which there are 3"),
        ({"weights": [0.5, 0.6, -0.1]}, "must be numbers, 0 or more, that sum to 1"),
        ({"weights": [0.5, 0.5, 0.1]}, r"weights=.*, 0 or more, that sum to 1"),
        ({"max_iter": -1}, "'max_iter' .* Got -1"),
        ({"tol": float("nan")}, "'tol' .* Got nan"),
        ({"estimators": []}, "estimators is empty"),
        ({"estimators": [KneserNeyLM()]}, "must be a list of .* pairs"),
        ({"estimators": {"kn": KneserNeyLM()}}, "must be a list of .* pairs"),
        ({"estimators": [("uniform", KneserNeyLM())]}, "not unique"),
        ({"kn__n_words": 40}, "disagree on the vocabulary"),
    ],
)
def test_bad_parameters(parts, parameters, message):
    with pytest.raises(ValueError, match=message):
        mixture("uniform").set_params(**parameters).fit(*parts[0])


def test_member_fitted_on_wider_windows(parts):
    X, y = parts[0]
    wide = KneserNeyLM(n_words=N_WORDS).fit(X, y)
    with pytest.raises(ValueError, match="member 'wide' was fitted on 3 words"):
        MixtureLM([("wide", FrozenEstimator(wide))]).fit(X[:, 1:], y)


def test_member_with_added_words_is_refused(parts):
    X, y = parts[0]
    energy = energy_lm(n_words=N_WORDS, n_hidden=2, embedding_dim=2, max_iter=1)
    frozen = FrozenEstimator(energy.fit(X, y))
    model = MixtureLM([("energy", frozen)], "uniform").fit(X, y)
    energy.add_words(X[:1], [N_WORDS])
    message = "a member of this MixtureLM has 13 words, .* fitted with n_words=12"
    for scored in (
        lambda: model.predict_proba(X),
        lambda: model.log_prob(X, y),
        lambda: model.candidate_log_prob(X, [1]),
    ):
        with pytest.raises(ValueError, match=message):
            scored()
    assert model.fit(X, np.r_[y[1:], N_WORDS]).n_words_ == N_WORDS + 1


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


def test_an_interrupted_refit_leaves_the_mixture_as_it_was(parts, monkeypatch):
    X, y = parts[0]
    network = paper_lm(n_hidden=2, embedding_dim=2, max_iter=1, random_state=0)
    inner = MixtureLM([("network", network)])
    model = MixtureLM([("inner", inner), ("kn", KneserNeyLM())], n_words=N_WORDS)
    model.fit(X, y)
    before, proba = vars(model).copy(), model.predict_proba(X)
    monkeypatch.setattr(Network, "train", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(RuntimeWarning, match="NeuralLM: interrupted"),
        pytest.warns(RuntimeWarning, match="interrupted while 'inner' was fitted"),
    ):
        model.set_params(n_words=N_WORDS + 1).fit(X[:, 1:], y)
    model.set_params(n_words=N_WORDS)
    assert {name: id(value) for name, value in vars(model).items()} == {
        name: id(value) for name, value in before.items()
    }
    assert_array_equal(model.predict_proba(X), proba)


def test_interrupted_text_model_is_unchanged_if_its_estimator_is(monkeypatch):
    model = TextLM(KneserNeyLM(), n_context=2).fit([[1, 2, 3] * 9])
    before = vars(model).copy()
    monkeypatch.setattr(KneserNeyLM, "_start_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit([[1, 2, 3, 4] * 9])
    assert vars(model) == before


def test_fit_parameters_of_a_member(parts, tmp_path):
    (X, y), _ = parts
    network = paper_lm(n_hidden=2, embedding_dim=2, max_iter=1, random_state=0)
    mixture = MixtureLM([("net", network), ("tri", InterpolatedTrigram())])
    told = []
    folder = tmp_path / "kept"
    mixture.fit(
        X,
        y,
        net__checkpoint=folder,
        net__progress=lambda *figures: told.append(figures),
    )
    assert told
    assert (folder / "latest.json").exists()
    lm = TextLM(mixture, n_context=2)
    lm.fit(["a rose is a rose"] * 20, net__checkpoint=tmp_path / "of text")
    assert (tmp_path / "of text" / "latest.json").exists()
    for wrong in ("checkpoint", "net", "net__", "other__checkpoint"):
        with pytest.raises(ValueError, match=f"got {wrong}.*members are net, tri"):
            mixture.fit(X, y, **{wrong: 1})


def test_members_are_dropped_by_name(parts):
    (X, y), _ = parts
    members = [
        ("uniform", UniformLM()),
        ("kn", InterpolatedTrigram()),
        ("two", InterpolatedTrigram(2)),
    ]
    whole = MixtureLM(members, [0.5, 0.3, 0.2], n_words=N_WORDS)
    one = clone(whole).set_params(uniform="drop").fit(X, y)
    two = MixtureLM(members[1:], [0.6, 0.4], n_words=N_WORDS).fit(X, y)
    assert_array_equal(one.predict_proba(X[:9]), two.predict_proba(X[:9]))
    assert list(one.named_estimators_) == ["kn", "two"]
    equal = clone(whole).set_params(weights="uniform", kn="drop").fit(X, y)
    assert equal.weights_.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="keep at least one"):
        clone(whole).set_params(uniform="drop", kn="drop", two="drop").fit(X, y)
    with pytest.raises(ValueError, match="are 0 for all members"):
        clone(whole).set_params(weights=[1, 0, 0], uniform="drop").fit(X, y)
