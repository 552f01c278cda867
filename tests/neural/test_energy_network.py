"""The energy's kernels against plain NumPy, and its gradients numerically."""

import numpy as np
import pytest

from nplm._kernels.reference import neural as reference
from nplm.neural.outputs.energy import Energy
from nplm.parallel.threads import Threads
from tests.helpers import (
    random_network,
    random_windows,
    reference_of,
    solver_of,
    weights_of,
    wide,
)

SHAPES = [  # n_words, n_context, n_hidden, embedding_dim: no multiples of any
    pytest.param((50, 3, 7, 4), id="small"),
    pytest.param((150, 2, 37, 11), id="three tiles"),
    pytest.param((2, 1, 1, 1), id="smallest"),
    pytest.param((9, 0, 16, 2), id="no context"),
]
TOLERANCE = {"float64": 1e-12, "float32": 3e-5}
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_kind = pytest.mark.parametrize("own", [False, True], ids=["one v", "v of words"])


def random_energies(shape, own, precision, rng, *args, **options):
    output = Energy(target_weights=own)
    return random_network(
        *shape, False, precision, rng, *args, output=output, **options
    )


@each_shape
@each_kind
@pytest.mark.parametrize("n_distant", [0, 9])
def test_gradients_numerically(shape, own, n_distant):
    rng = np.random.default_rng(0)
    network = random_energies(shape, own, "float64", rng, n_distant=n_distant)
    X, y = random_windows(6, shape[0], network.parts.inputs.n_context, rng)
    weights = weights_of(network)
    _, analytic = reference.gradients(weights, X, y)
    step = 1e-5
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat  # E is a view: reshape would copy
        chosen = rng.choice(array.size, size=min(array.size, 60), replace=False)
        for i in chosen:
            kept = flat[i]
            flat[i] = kept + step
            above = reference.log_prob(weights, X, y).sum()
            flat[i] = kept - step
            below = reference.log_prob(weights, X, y).sum()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


def test_the_paper_s_equation_written_out():
    """E = v . tanh(d + Hx) + b, one word at a time; x begins with the next word's."""
    rng = np.random.default_rng(1)
    network = random_energies((9, 3, 5, 2), False, "float64", rng)
    named = network.parameters.named()
    C, d, v, b = (named[name] for name in ("C", "d", "v", "b"))
    H = np.hstack([named["H_next"], named["H"]])
    context = [5, 2, 8]  # in the order of the text: the nearest stands last
    E = np.empty(9)
    for w in range(9):
        x = np.concatenate([C[w], *(C[i] for i in reversed(context))])
        E[w] = v @ np.tanh(d + H @ x) + b[w]
    want = np.exp(-E) / np.exp(-E).sum()
    got = network.predict_proba(np.array([context], np.int32))[0]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def check_training(
    shape, own, precision, batch_size, n_threads=1, *, solver="sgd", n_distant=0,
    **schedule,
):  # fmt: skip
    rng = np.random.default_rng(1)
    # Small steps: larger ones would make more of a difference in the last digit.
    solver = solver_of(solver, **({"learning_rate_init": 3e-3} | schedule))
    network = random_energies(
        shape, own, precision, rng, n_threads, n_distant=n_distant, solver=solver,
        clock=(7, 0),
    )  # fmt: skip
    X, y = random_windows(60, shape[0], network.parts.inputs.n_context, rng)
    index = rng.permutation(60)
    expected = wide(weights_of(network))
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7)
    )
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()

    tolerance = TOLERANCE[precision]
    assert network.loss == pytest.approx(loss, rel=tolerance)
    for got, want in zip(weights_of(network).arrays(), expected.arrays(), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return network


# 48 leaves a last mini-batch of 12: what it does not fill is from the one before.
@pytest.mark.parametrize("batch_size", [1, 5, 48])
@pytest.mark.parametrize(("solver", "n_distant"), [("sgd", 0), ("adam", 9)])
@each_shape
@each_kind
def test_train_equals_reference(
    shape, own, full_precision, solver, n_distant, batch_size
):
    check_training(
        shape, own, full_precision, batch_size, solver=solver, n_distant=n_distant
    )


@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_weight_decay_equals_reference(solver, alpha):
    check_training((50, 3, 7, 4), True, "float64", 5, solver=solver, alpha=alpha)


@pytest.mark.parametrize("n_threads", [3, 7])
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize(("solver", "n_distant"), [("sgd", 0), ("adam", 9)])
@each_shape
@each_kind
def test_threads_share_the_words(shape, own, solver, n_distant, batch_size, n_threads):
    first, again = (
        check_training(
            shape, own, "float32", batch_size, n_threads, solver=solver,
            n_distant=n_distant,
        )
        for _ in range(2)
    )  # fmt: skip
    for got, want in zip(weights_of(first).arrays(), weights_of(again).arrays()):
        np.testing.assert_array_equal(got, want)


@each_shape
@each_kind
def test_scoring_equals_reference(shape, own, full_precision):
    rng = np.random.default_rng(3)
    network = random_energies(shape, own, full_precision, rng)
    X, y = random_windows(300, shape[0], shape[1], rng)
    weights = wide(weights_of(network))
    tolerance = dict.fromkeys(("rtol", "atol"), 3 * TOLERANCE[full_precision])
    want = reference.log_prob(weights, X, y)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    for rows in (X, X[:1], X[:19]):
        for logarithm in (False, True):
            want = reference.probabilities(weights, rows, logarithm=logarithm)
            got = network.predict_proba(rows, logarithm=logarithm)
            np.testing.assert_allclose(got, want, **tolerance)
        for normalize in (False, True):
            words = rng.integers(0, shape[0], (len(rows), 5)).astype(np.int32)
            want = reference.candidates(weights, rows, words, normalize=normalize)
            got = network.candidates(rows, words, normalize=normalize)
            np.testing.assert_allclose(got, want, **tolerance)


@each_shape
@each_kind
def test_a_row_depends_on_itself_only(shape, own, full_precision):
    rng = np.random.default_rng(5)
    network = random_energies(shape, own, full_precision, rng)
    X, y = random_windows(543, shape[0], shape[1], rng)
    proba, log_prob = network.predict_proba(X), network.log_prob(X, y)
    for n in (1, 2, 15, 17, 41, 531):
        for start in (0, 7, len(X) - n):
            rows = slice(start, start + n)
            np.testing.assert_array_equal(network.predict_proba(X[rows]), proba[rows])
            got = network.log_prob(X[rows], y[rows])
            np.testing.assert_array_equal(got, log_prob[rows])
    for n_threads in (2, 3):
        network.threads = Threads(n_threads)
        np.testing.assert_array_equal(network.predict_proba(X), proba)


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 20.0])
@each_kind
def test_sums_of_any_size(size, own, full_precision):
    """As long as no part of one is beyond 21: its tanh is made of two powers of e."""
    rng = np.random.default_rng(6)
    network = random_energies((30, 2, 9, 5), own, full_precision, rng)
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
    tolerance = 1e-4 if full_precision != "float64" else 1e-10
    np.testing.assert_allclose(network.log_prob(X, y), want, atol=tolerance)


@pytest.mark.parametrize("name", ["C", "H_next", "v", "b"])
def test_a_nan_among_the_weights_is_one_in_the_scores(name, full_precision):
    rng = np.random.default_rng(7)
    network = random_energies((30, 2, 9, 5), False, full_precision, rng)
    network.parameters.named()[name][0] = np.nan
    X, y = random_windows(20, 30, 2, rng)
    for n in (1, 20):
        assert np.isnan(network.predict_proba(X[:n])).any(axis=1).all()
        assert np.isnan(network.log_prob(X[:n], y[:n])).all()
