"""What the kernels promise of numbers, whichever tier of them runs."""

import subprocess
import sys
from copy import deepcopy
from itertools import product

import numpy as np
import pytest

from nplm import DivergenceError, available_tiers, use_tier, windows
from tests.helpers import FULL_PRECISIONS, PRECISIONS, markov_stream, pairwise, paper_lm
from tests.helpers.networks import (
    SAMPLED,
    random_network,
    random_windows,
    sampled_loss,
    solver_of,
    there_is,
    weights_of,
    wide,
)
from tests.reference import neural as reference

SHAPE = 200, 3, 20, 6, True  # n_words, n_context, n_hidden, embedding_dim, direct
SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=1e-3, alpha=1e-3)


def short_training(batch_size, precision):
    """Return a network after a few hundred examples."""
    rng = np.random.default_rng(0)
    network = random_network(*SHAPE, precision, rng, solver=solver_of(**SCHEDULE))
    X, y = random_windows(300, SHAPE[0], SHAPE[1], rng)
    network.train(X, y, np.arange(len(y)), batch_size)
    network.settle()
    return network


def bits_of_training(precision):
    """Of one example at a time, and of many: each has loops of its own."""
    networks = [short_training(K, precision) for K in (1, 16)]
    return b"".join(a.tobytes() for n in networks for a in weights_of(n).arrays())


@pytest.mark.slow
def test_named_tier_runs(monkeypatch):
    # Each adds in an order of its own: equal bits would be the same loops.
    for precision in ("float32", "float64"):
        bits = {}
        for tier in available_tiers(precision):
            monkeypatch.setenv("NPLM_TIER", tier)
            bits[tier] = bits_of_training(precision)
            monkeypatch.setenv("NPLM_TIER", "plain")
            with use_tier(tier):  # goes before the environment
                assert bits_of_training(precision) == bits[tier]
        assert len(set(bits.values())) == len(bits)
    monkeypatch.setenv("NPLM_TIER", "sse9")
    with pytest.raises(ValueError, match=r"'sse9'.*NPLM_TIER or use_tier"):
        paper_lm(max_iter=1).fit([[0]], [1])


@pairwise(
    {
        "kind, batch_size": list(product(["softmax", *SAMPLED], [1, 16])),
        "size": [1e1, 1e3, 1e6, 1e20, 1e37],
        "tier": available_tiers(),
    }
)
def test_logits_of_any_size(kind, batch_size, size, tier):
    """In scoring, and the loss and the gradients in training."""
    rng = np.random.default_rng(1)
    # One update, so small that float32 does not overflow.
    rate = 1e-3 / size
    solver = solver_of(learning_rate_init=rate, learning_rate_decay=0.0, alpha=0.0)
    network = random_network(*SHAPE, "float32", rng, kind=kind, solver=solver)
    X, y = random_windows(64, SHAPE[0], SHAPE[1], rng)
    E = network.parameters.E
    E *= 1 / np.abs(reference.forward(weights_of(network), X)[-1]).max()
    E *= size
    start = wide(weights_of(network))
    want = reference.log_prob(start, X, y)
    tolerance = dict(rtol=1e-5, atol=1e-5 + 1e-6 * size)
    for part in (slice(None), slice(1)):  # a batch, and one alone
        got = network.log_prob(X[part], y[part])
        np.testing.assert_allclose(got, want[part], **tolerance)
    log_proba = network.predict_proba(X, logarithm=True)
    np.testing.assert_allclose(log_proba[np.arange(64), y], want, **tolerance)

    loss, slopes = reference.gradients(
        start, X[:batch_size], y[:batch_size], loss=sampled_loss(network)
    )
    network.train(X, y, np.arange(batch_size), batch_size)
    assert network.loss == pytest.approx(-loss, rel=1e-4, abs=1e-4)
    assert all(np.isfinite(array).all() for array in weights_of(network).arrays())
    if size <= 1e3:  # beyond it rounding decides which word is the likeliest
        arrays = weights_of(network).arrays(), start.arrays(), slopes.arrays()
        for got, array, gradient in zip(*arrays):
            change = rate * gradient
            atol = 1e-2 * np.abs(change).max() + 1e-6 * np.abs(array).max()
            np.testing.assert_allclose(got - array, change, atol=atol)


@pairwise(
    {
        "loss, batch_size": list(product(["exact", *SAMPLED], [1, 16])),
        "exponent": [1, 2, 8, 20, 37],
        "tier": available_tiers(),
    }
)
def test_divergence_raises_and_leaves_no_fit(loss, batch_size, exponent, tier):
    # The loss of samples may look well when the model does not.
    X, y = windows(markov_stream(3000), 2)
    settings = {} if loss == "exact" else dict(n_noise=2)
    lm = paper_lm(
        n_words=20, n_hidden=6, embedding_dim=4, max_iter=2, loss=loss, alpha=0,
        batch_size=batch_size, learning_rate_init=10.0**exponent, random_state=0,
        **settings,
    )  # fmt: skip
    when = "epoch 1 after .*" if loss == "exact" else ""
    with pytest.raises(DivergenceError, match=f"{when}lower learning_rate_init"):
        lm.fit(X, y)
    assert not hasattr(lm, "C_")


@pairwise(
    {
        "size": [1e-3, 1.0, 10.0, 20.0],
        "kind": ["energy", "energy, own weights"],
        "precision": FULL_PRECISIONS,
    }
)
def test_large_sums_of_an_energy_are_exact(size, kind, precision):
    """As long as no part of one is beyond 21: its tanh is made of two powers of e."""
    rng = np.random.default_rng(6)
    network = random_network(30, 2, 9, 5, False, precision, rng, kind=kind)
    named = network.parameters.named()
    X, y = random_windows(40, 30, 2, rng)
    for name, sums in (("H_next", named["C"] @ named["H_next"].T), ("H", None)):
        if sums is None:
            x = reference.concatenation(named["C"], X, 2)
            sums = x @ named["H"].T
        named[name] *= size / np.abs(sums).max()
    named["d"][:] = 0
    weights = wide(weights_of(network))
    want = reference.log_prob(weights, X, y)
    tolerance = 1e-4 if precision != "float64" else 1e-10
    np.testing.assert_allclose(network.log_prob(X, y), want, atol=tolerance)


@pairwise(
    {
        "kind": ["softmax", "energy", "energy, own weights"],
        "precision": PRECISIONS,
        "n": [1, 50],
    },
    where=there_is,
)
def test_nan_weight_gives_nan_scores(kind, precision, n):
    """As NumPy has it: a probability that nobody knows is not made up."""
    rng = np.random.default_rng(7)
    network = random_network(70, 2, 9, 5, True, precision, rng, kind=kind)
    X, y = random_windows(n, 70, 2, rng)
    X[:, 1] = 0
    for name, array in network.parameters.named().items():
        if array is None or name == "E":
            continue
        kept = array[:1].copy()
        array[:1] = np.nan
        assert np.isnan(network.predict_proba(X)).any(axis=1).all(), name
        assert np.isnan(network.log_prob(X, y)).all(), name
        array[:1] = kept


NAMES = ["C_", "H_", "d_", "U_", "W_", "b_"]


def with_nan(lm, name):
    """A copy of a model with one weight that is not a number."""
    model = deepcopy(lm)
    getattr(model, name)[0] = np.nan
    return model


@pytest.fixture
def fitted(precision):
    # Word 0 is in every context.
    X, y = windows(np.arange(200) % 3, 3)
    lm = paper_lm(
        n_words=70, n_hidden=5, embedding_dim=4, direct=True, max_iter=1,
        precision=precision, random_state=0, warm_start=True,
    )  # fmt: skip
    return lm.fit(X, y), X, y


@pytest.mark.parametrize("batch_size", [1, 16])
def test_training_with_nan_weight_is_refused(fitted, batch_size):
    lm, X, y = fitted
    for name in NAMES:
        model = with_nan(lm, name).set_params(batch_size=batch_size)
        with pytest.raises(DivergenceError, match="mean loss nan"):
            model.fit(X, y)


MODE = """
import os
import numpy as np

def check(_=0):
    one, tiny = np.ones(64, np.float32), np.full(64, 1e-40, np.float32)
    assert (tiny * one > 0).all(), "denormals are read as zero (DAZ)"
    assert (one * 1e-30 * np.float32(1e-10) > 0).all(), "and written as zero (FTZ)"
    half = np.float32(2.0**-24)  # of the last bit of 1: to nearest is to even
    assert (one + half == 1).all() and (-one - half == -1).all(), "rounding"

check()
from nplm import NeuralLM, available_tiers, windows
from nplm.models.neural.network.network import Network
check()

train = Network.train
def checked_train(network, *args, **kwargs):
    train(network, *args, **kwargs)
    # In this thread, and in the one that shared the work.
    network.threads.run_together(check, 2, give_up=lambda: None)
Network.train = checked_train

X, y = windows(np.arange(300) % 40, 2)
for precision in ("float32", "bfloat16"):
    for tier in available_tiers(precision):
        os.environ["NPLM_TIER"] = tier
        for K in (1, 16):
            lm = NeuralLM(n_hidden=4, embedding_dim=3, max_iter=1, batch_size=K,
                          precision=precision, n_jobs=2)
            lm.fit(X, y).predict_proba(X)
            check()
"""


@pytest.mark.slow
def test_floating_point_mode_is_unchanged():
    subprocess.run([sys.executable, "-c", MODE], check=True, timeout=120)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_weight_decay_of_dense_gradients_is_as_exact_as_the_weights(solver, tier):
    """1 - decay, rounded to float32, would take 0.9% more than it should."""
    rng = np.random.default_rng(0)
    decay = 55.5 / 2**24
    alpha = decay / (0.01 * (1 if solver == "adam" else 5))  # SGD's is an example's
    solver = solver_of(solver, learning_rate_init=0.01, alpha=alpha)
    network = random_network(
        30, 2, 200, 50, False, "float32", rng, kind="energy", solver=solver
    )
    network.parameters.named()["v"][:] = 0  # no gradient for what meets the next word
    before = network.parameters.named()["H_next"].astype(np.float64)
    network.train(*random_windows(5, 30, 2, rng), np.arange(5), 5)
    lost = 1 - network.parameters.named()["H_next"] / before
    assert lost.mean() == pytest.approx(decay, rel=2e-3)
