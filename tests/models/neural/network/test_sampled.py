"""Training on sampled words: draws, estimates and their gradients, and whole fits."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from nplm import Importance, windows
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural.outputs._sampler import Sampler
from nplm.models.neural.fitted_network import scoring_network
from tests.helpers import assert_same_weights, changed, energy_lm, paper_lm, text
from tests.helpers.networks import (
    SAMPLED,
    random_network,
    random_windows,
    reference_of,
    sampled_loss,
    weights_of,
    wide,
)
from tests.reference import neural as reference

SEED = [1, 2, 3, 4]


def zipf(n_words, power=1.0):
    q = 1.0 / np.arange(1, n_words + 1) ** power
    return np.random.default_rng(0).permutation(q / q.sum())


# -- draws ---------------------------------------------------------------------------


def test_the_generator_is_xoshiro256():
    # The first numbers of the authors' code for this seed.
    numbers = [11520, 0, 1509978240, 1215971899390074240]
    sampler = reference.Sampler(zipf(3), list(SEED), 1)
    assert [sampler.uniform() for _ in numbers] == [(x >> 11) / 2**53 for x in numbers]


@pytest.mark.parametrize("n", [1, 2, 7, 30, 99, 100, 1000])
@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_sampler_equals_reference(n, power):
    q = zipf(100, power)
    state = np.array(SEED, np.uint64)
    scratch = Scratch(Tier("plain", "float32"))  # the kernel points into it
    kernel = Sampler(scratch, q, state, most=n)
    twin = reference.Sampler(q, list(SEED), n)
    for _ in range(50):
        for got, want in zip(kernel.drawn(n), twin.draw()[:2], strict=True):
            np.testing.assert_array_equal(got, want)
    assert state.tolist() == twin.state


@pytest.mark.parametrize("n", [1, 20, 39, 50])
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_inclusion_frequency_equals_probability(n, power):
    q = zipf(40, power)
    sampler = reference.Sampler(q, list(SEED), n)
    order, pi = sampler.chances()
    assert pi.sum() == pytest.approx(min(n, 40))
    weighted, m = np.zeros(40), 1500
    for _ in range(m):
        words, weights, noise = sampler.draw()
        assert len(np.unique(words)) == len(words)
        assert len(words) == 40 or n < 40
        assert (noise >= 0).all()
        weighted[words] += weights
    error = weighted[order] / m - 1
    assert (np.abs(error) <= 5 * np.sqrt((1 - pi) / pi / m)).all()


# -- gradients -----------------------------------------------------------------------


def loss_of(kind, q, n):
    """The reference of a loss."""
    n = min(n, len(q))
    sampler = reference.Sampler(q, list(SEED), n)
    if kind == "importance":
        return reference.Importance(sampler, np.array([n, 0.0, 0.0]), 0, n)
    return reference.NoiseContrastive(sampler, n)


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    E, z = rng.normal(size=(30, 5)), rng.normal(size=(8, 5))
    z[:, -1] = 1
    y = rng.integers(0, 30, 8).astype(np.int32)
    return E, z, y, zipf(30)


def numeric(f, array):
    """Central differences of f for each number of an array."""
    slopes, step = np.zeros_like(array), 1e-6
    for i in np.ndindex(array.shape):
        kept = array[i]
        array[i] = kept + step
        above = f()
        array[i] = kept - step
        slopes[i] = (above - f()) / (2 * step)
        array[i] = kept
    return slopes


def test_importance_gradient_is_that_of_its_estimate(example):
    E, z, y, q = example

    def estimate():
        return loss_of("importance", q, 12)(E, z, y)

    _, dz, dE, visited = estimate()
    np.testing.assert_allclose(dE, numeric(lambda: estimate()[0], E), atol=1e-7)
    np.testing.assert_allclose(dz, numeric(lambda: estimate()[0], z), atol=1e-7)
    assert (dE[np.setdiff1d(np.arange(30), visited)] == 0).all()


@pytest.mark.parametrize(
    "kind", ["energy, importance", "energy, own weights, importance"]
)
def test_energy_gradient_is_that_of_its_estimate(kind):
    rng = np.random.default_rng(1)
    network = random_network(30, 2, 5, 3, False, "float64", rng, kind=kind, n_noise=9)
    weights, (X, y) = weights_of(network), random_windows(8, 30, 2, rng)

    def estimate():  # the same words are drawn each time
        return reference.gradients(weights, X, y, loss=sampled_loss(network))

    _, gradients = estimate()
    for array, gradient in zip(weights.arrays(), gradients.arrays(), strict=True):
        slopes = numeric(lambda: estimate()[0], array)
        np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def objective(E, z, y, q, k):
    """Noise contrast, with the expectation over all words."""
    delta = z @ E.T - np.log(k * q)
    rows = np.arange(len(y))
    noise = k * q * np.log1p(-reference.logistic(delta))
    return np.log(reference.logistic(delta[rows, y])).sum() + noise.sum()


def test_nce_gradient_is_that_of_its_objective(example):
    E, z, y, q = example
    _, dz, dE, _ = loss_of("nce", q, 30)(E, z, y)  # draws all words
    np.testing.assert_allclose(
        dE, numeric(lambda: objective(E, z, y, q, 30), E), atol=1e-7
    )
    np.testing.assert_allclose(
        dz[:, :-1], numeric(lambda: objective(E, z, y, q, 30), z)[:, :-1], atol=1e-7
    )


@pytest.mark.parametrize("n", [30, 31, 1000])
def test_sampling_all_words_gives_the_exact_gradient(example, n):
    E, z, y, q = example
    got = loss_of("importance", q, n)(E, z, y)
    for one, other in zip(got[:3], reference.exact(E, z, y)[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


# -- networks ------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 16])
def test_sampling_all_words_equals_exact_training(batch_size, tier):
    data = random_windows(60, 50, 3, np.random.default_rng(3))
    networks = []
    for kind in ("softmax", "importance"):
        network = random_network(
            *(50, 3, 7, 4, True), "float64", np.random.default_rng(2), kind=kind,
            n_noise=50,
        )  # fmt: skip
        network.train(*data, np.arange(60), batch_size)
        network.settle()
        networks.append(network)
    for got, want in zip(*(weights_of(n).arrays() for n in networks), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    assert networks[0].loss == pytest.approx(networks[1].loss)


def test_noise_samples_double_if_too_few_are_effective():
    X, y = random_windows(300, 200, 2, np.random.default_rng(5))
    loss = Importance(4, min_effective_samples=50.0)
    watched = []
    for _ in range(2):
        network = random_network(
            200, 2, 5, 3, False, "float64", np.random.default_rng(6), loss=loss
        )
        state = network.output_state
        assert network.costs()["n_noise"] == 4
        weights, twin = wide(weights_of(network)), sampled_loss(network)
        twin.least, twin.most = 50.0, 64
        solver = reference_of(network.solver)
        for _ in range(3):
            network.train(X, y, np.arange(300), 4)
            reference.train(weights, X, y, np.arange(300), 4, solver, loss=twin)
        np.testing.assert_allclose(state["watched"][0], twin.watched)
        watched.append(state["watched"])
    np.testing.assert_array_equal(*watched)
    # 225 mini-batches: doubled after each 64, but no more than 16 times.
    assert network.costs()["n_noise"] == 32
    network.train(X, y, np.resize(np.arange(300), 3000), 4)
    assert network.costs()["n_noise"] == 64


# -- fits ----------------------------------------------------------------------------

SMALL = dict(n_words=20, n_hidden=6, embedding_dim=4, random_state=0)
SMALL_SAMPLED = SMALL | dict(n_noise=8)
each_model = pytest.mark.parametrize(
    "model",
    [paper_lm, partial(energy_lm, target_weights=True)],
    ids=["softmax", "energy"],
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ids = np.cumsum(rng.choice([1, 2, 5], 4000, p=[0.7, 0.2, 0.1])) % 20
    X, y = windows(ids.astype(np.int32), 2)
    return dict(X=X[600:], y=y[600:], X_val=X[:600], y_val=y[:600])


@pytest.mark.parametrize("loss", SAMPLED)
def test_noise_samples_are_limited_to_the_vocabulary(data, loss):
    options = dict(loss=loss, max_iter=1)
    if loss == "importance":
        options["min_effective_samples"] = 1
    lm = paper_lm(**SMALL | options | {"n_noise": 2**63}).fit(**data)
    assert_same_weights(lm, paper_lm(**SMALL | options | {"n_noise": 20}).fit(**data))


@each_model
def test_nce_scores_are_nearly_normalised(data, model):
    lm = model(
        loss="nce", max_iter=15, learning_rate_init=0.05, n_noise=20, **SMALL
    ).fit(**data)
    X, y = data["X_val"], data["y_val"]
    normalizers = lm.normalizers(X)
    assert normalizers.dtype == np.float64
    assert np.abs(normalizers).mean() < 0.25
    scores = lm.log_prob(X, y, normalize=False)
    np.testing.assert_allclose(scores - normalizers, lm.log_prob(X, y), atol=1e-5)
    logits = np.log(lm.predict_proba(X)) + normalizers[:, None]
    np.testing.assert_allclose(scores, logits[np.arange(len(y)), y], atol=1e-5)
    # To the bit, in any company.
    np.testing.assert_array_equal(
        lm.log_prob(X[3:8], y[3:8], normalize=False), scores[3:8]
    )
    np.testing.assert_array_equal(
        lm.log_prob(X[3:4], y[3:4], normalize=False), scores[3:4]
    )
    again = pickle.loads(pickle.dumps(lm)).set_params(n_jobs=2)
    np.testing.assert_array_equal(again.log_prob(X, y, normalize=False), scores)


def test_unnormalised_scores_equal_the_reference(precision):
    rng = np.random.default_rng(7)
    X, y = windows(text(500), 2)
    lm = paper_lm(
        n_words=12, n_hidden=5, embedding_dim=3, direct=True, loss="nce", max_iter=1,
        precision=precision, random_state=0,
    ).fit(X, y)  # fmt: skip
    lm.U_ = rng.normal(size=lm.U_.shape)
    weights = wide(weights_of(scoring_network(lm)))
    rounds = precision == "bfloat16"  # the hidden units, not single scores
    rounded = reference.bfloat16 if rounds else reference.as_it_is
    want = reference.candidates(
        weights, X, y[:, None], normalize=False, rounded=rounded
    )[:, 0]
    tolerance = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 2e-3}[precision]
    np.testing.assert_allclose(
        lm.log_prob(X, y, normalize=False), want, rtol=tolerance, atol=tolerance
    )


@each_model
@pytest.mark.parametrize(
    "loss", [dict(loss="exact"), dict(loss="importance", n_noise=8)], ids=str
)
def test_only_nce_scores_without_normalisation(data, model, loss):
    lm = model(max_iter=1, **loss, **SMALL).fit(**data)
    with pytest.raises(ValueError, match="loss='nce', or set normalize=True"):
        lm.log_prob(data["X_val"], data["y_val"], normalize=False)
    assert lm.normalizers(data["X_val"]).shape == data["y_val"].shape


@each_model
def test_training_continues_with_another_loss(data, model):
    lm = model(warm_start=True, max_iter=2, learning_rate_init=0.02, **SMALL)
    for loss in ("importance", "exact", "nce", "exact", "importance"):
        noise = {} if loss == "exact" else dict(n_noise=8)
        changed(lm, loss=loss, **noise).fit(**data)
    assert lm.n_iter_ == 10
    assert lm.history_["val_loss"][-1] < lm.history_["val_loss"][0]
    # Of losses that have none, the figures of sampling are no numbers.
    sampled = np.isfinite(lm.history_["n_noise"])
    assert sampled.tolist() == [True] * 2 + [False] * 6 + [True] * 2


@each_model
def test_a_given_proposal(data, model):
    counts = np.bincount(data["y"], minlength=20) + 1
    lm = model(loss="importance", max_iter=1, **SMALL_SAMPLED)
    unigram = clone(lm).fit(**data)
    for proposal in (counts, list(counts * 2.0)):
        given = clone(lm).set_params(loss__proposal=proposal).fit(**data)
        assert_same_weights(given, unigram)
    other = clone(lm).set_params(loss__proposal=np.ones(20)).fit(**data)
    assert not np.array_equal(other.b_, unigram.b_)
    assert_same_weights(other, clone(lm).set_params(loss__proposal_power=0).fit(**data))


@each_model
@pytest.mark.parametrize(
    ("proposal", "match"),
    [
        (np.ones(19), r"shape \(19,\).* has 20 words.*'unigram'"),
        (np.ones((20, 1)), r"shape \(20, 1\)"),
        (["a"] * 20, "type <U1"),
        (np.r_[np.ones(19), 0], "0.0 for word 19.*never sampled.*plus one"),
        (np.r_[-1, np.ones(19)], "-1.0 for word 0"),
        (np.r_[np.ones(7), np.nan, np.ones(12)], "nan for word 7"),
        (np.r_[np.ones(7), np.inf, np.ones(12)], "inf for word 7"),
        ("bigram", "'proposal' parameter"),
    ],
)
def test_invalid_proposals_are_refused(data, model, proposal, match):
    lm = model(loss="importance", proposal=proposal, **SMALL_SAMPLED)
    with pytest.raises(ValueError, match=match):
        lm.fit(**data)
    assert not hasattr(lm, "C_")


def test_one_word_is_a_vocabulary():
    X, y = windows(np.zeros(20, np.int32), 2)
    for loss in SAMPLED:
        lm = paper_lm(n_words=1, n_hidden=2, loss=loss, max_iter=1).fit(X, y)
        assert lm.log_prob(X, y) == pytest.approx(np.zeros(len(y)))
