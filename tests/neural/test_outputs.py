"""Outputs beside the full softmax: classes and trees."""

import numpy as np
import pytest

from nplm._kernels.reference import neural as reference
from tests.helpers import (
    random_network,
    random_windows,
    reference_of,
    solver_of,
    weights_of,
    wide,
)

SHAPES = [  # n_words, n_context, n_hidden, embedding_dim, direct
    pytest.param((50, 3, 7, 4, False), id="hidden"),
    pytest.param((130, 2, 5, 3, True), id="hidden+direct"),
    pytest.param((23, 4, 0, 5, True), id="direct"),
    pytest.param((3, 1, 20, 1, True), id="three words"),
    pytest.param((2, 1, 1, 1, True), id="two words"),
    pytest.param((1, 2, 3, 2, False), id="one word"),
    pytest.param((9, 0, 3, 2, True), id="no context"),
]
OUTPUTS = ["classes", "tree"]
TOLERANCE = {"float64": 1e-12, "float32": 3e-5}
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_output = pytest.mark.parametrize("output", OUTPUTS)


@pytest.fixture
def full_precision(precision):
    if precision == "bfloat16":
        pytest.skip("only the products of a full softmax are rounded")
    return precision


@each_shape
@each_output
def test_gradients_numerically(shape, output):
    rng = np.random.default_rng(0)
    network = random_network(*shape, "float64", rng, output=output)
    X, y = random_windows(6, shape[0], shape[1], rng)
    weights = weights_of(network)
    _, analytic = reference.gradients(weights, X, y)
    step = 1e-5
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat  # E is a view: reshape would copy
        chosen = rng.choice(array.size, size=min(array.size, 30), replace=False)
        for i in chosen:
            kept = flat[i]
            flat[i] = kept + step
            above = reference.log_prob(weights, X, y).sum()
            flat[i] = kept - step
            below = reference.log_prob(weights, X, y).sum()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


# 48 leaves a last mini-batch of 12: what it does not fill is from the one before.
@pytest.mark.parametrize("batch_size", [1, 2, 16, 48])
@pytest.mark.parametrize(
    ("solver", "alpha"), [("sgd", 0), ("sgd", 0.05), ("adam", 0.05)]
)
@each_shape
@each_output
def test_train_equals_reference(
    shape, output, full_precision, solver, alpha, batch_size
):
    rng = np.random.default_rng(1)
    solver = solver_of(solver, alpha=alpha)
    network = random_network(
        *shape, full_precision, rng, solver=solver, clock=(7, 0), output=output
    )
    X, y = random_windows(60, shape[0], shape[1], rng)
    index = rng.permutation(60)
    expected = wide(weights_of(network))
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7)
    )
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()
    tolerance = TOLERANCE[full_precision]
    assert network.loss == pytest.approx(loss, rel=tolerance, abs=tolerance)
    assert network.n_seen == 67
    for got, want in zip(weights_of(network).arrays(), expected.arrays(), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@each_shape
@each_output
def test_scoring_equals_reference(shape, output, full_precision):
    rng = np.random.default_rng(3)
    network = random_network(*shape, full_precision, rng, output=output)
    X, y = random_windows(60, shape[0], shape[1], rng)
    weights = wide(weights_of(network))
    tolerance = dict.fromkeys(("rtol", "atol"), 3 * TOLERANCE[full_precision])
    want = reference.log_prob(weights, X, y)
    np.testing.assert_allclose(network.log_prob(X, y), want, **tolerance)
    for rows in (X, X[:1], X[:19]):
        for logarithm in (False, True):
            want = reference.probabilities(weights, rows, logarithm=logarithm)
            got = network.predict_proba(rows, logarithm=logarithm)
            np.testing.assert_allclose(got, want, **tolerance)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4, 1e30])
@each_output
def test_logits_of_any_size(output, full_precision, size):
    rng = np.random.default_rng(4)
    network = random_network(200, 2, 3, 2, False, full_precision, rng, output=output)
    biases = network.parameters.b
    biases[:] = rng.uniform(-1, 1, len(biases)) * size
    X, y = random_windows(5, 200, 2, rng)
    weights = wide(weights_of(network))
    tolerance = TOLERANCE[full_precision]
    for logarithm in (False, True):
        want = reference.probabilities(weights, X, logarithm=logarithm)
        got = network.predict_proba(X, logarithm=logarithm)
        assert np.isfinite(got).all()
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=tolerance * (size if logarithm else 1)
        )
    np.testing.assert_allclose(
        network.log_prob(X, y), reference.log_prob(weights, X, y), rtol=tolerance,
        atol=tolerance * size,
    )  # fmt: skip
