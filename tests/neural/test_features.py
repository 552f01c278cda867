"""Features that are given, composed, or the output's weights too, against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nplm import available_tiers
from nplm._kernels.reference import neural as reference
from nplm.neural.features import Composed, Features, Fixed
from nplm.neural.hidden import Projected
from nplm.neural.network import Network, Parts
from nplm.neural.outputs.softmax import Softmax, TiedSoftmax
from nplm.parallel.threads import Threads
from tests.helpers import random_windows, reference_of, solver_of, weights_of, wide

SHAPES = {  # n_words, n_context, n_hidden, m, direct
    "hidden": (50, 3, 7, 4, False),
    "hidden+direct, two tiles": (300, 2, 5, 3, True),
    "direct": (23, 4, 0, 5, True),
    "smallest": (2, 1, 1, 1, True),
    "no context": (9, 0, 3, 2, True),
}
KINDS = ["fixed", "composed", "tied", "tied, composed"]
TOLERANCE = {"float64": 1e-12, "float32": 5e-5, "bfloat16": 2e-3}
each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def matrix_of(n_words, rng, n_parts=11):
    """A few parts a word, one of them everyone's; some words have none."""
    dense = rng.normal(size=(n_words, n_parts)) * (rng.random((n_words, n_parts)) < 0.2)
    dense[::7] = 0
    dense[1:, 0] = 0.5
    return csr_array(dense)


def network_of(shape, kind, precision, rng, n_threads=1, *, n_distant=0, **options):
    n_words, n_context, n_hidden, m, direct = shape
    tied = "tied" in kind
    if kind == "fixed":
        features = Fixed(m, rng.normal(size=(n_words, m)))
    elif "composed" in kind:
        features = Composed(m, tied=tied, matrix=matrix_of(n_words, rng))
    else:
        features = Features(m, tied=tied)
    output = TiedSoftmax(False) if tied else Softmax(direct)
    parts = Parts.of(n_context, features, n_hidden, output, n_distant)
    if tied:
        parts = parts._replace(hidden=Projected(n_hidden, m, direct))
    dtype = np.float64 if precision == "float64" else np.float32
    _, y = random_windows(10, n_words, 1, rng)
    parameters = parts.initial(n_words, y, np.random.RandomState(0), dtype)
    options = {"solver": solver_of()} | options
    network = Network(
        parts, parameters, precision=precision, threads=Threads(n_threads), **options
    )
    for array in weights_of(network).arrays():
        array += rng.normal(size=array.shape) / 2
    parts.features.settle(parameters)
    return network


@each_shape
@each_kind
@pytest.mark.parametrize("n_distant", [0, 9])
def test_gradients_numerically(shape, kind, n_distant):
    rng = np.random.default_rng(0)
    network = network_of(shape, kind, "float64", rng, n_distant=n_distant)
    X, y = random_windows(6, shape[0], network.parts.inputs.n_context, rng)
    weights = weights_of(network)
    _, analytic = reference.gradients(weights, X, y)
    step = 1e-5
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat
        for i in rng.choice(array.size, size=min(array.size, 40), replace=False):
            kept = flat[i]
            flat[i] = kept + step
            above = reference.log_prob(weights, X, y).sum()
            flat[i] = kept - step
            below = reference.log_prob(weights, X, y).sum()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


def check_training(shape, kind, precision, batch_size, n_threads=1, **options):
    rng = np.random.default_rng(1)
    solver = solver_of(options.pop("solver", "sgd"))
    options = {"clock": (7, 0), "solver": solver} | options
    network = network_of(shape, kind, precision, rng, n_threads, **options)
    X, y = random_windows(60, shape[0], network.parts.inputs.n_context, rng)
    index = rng.permutation(60)
    expected = wide(weights_of(network))
    rounded = reference.as_it_is
    if precision == "bfloat16" and batch_size > 1:
        rounded = reference.bfloat16
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7), rounded
    )
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()

    tolerance = dict.fromkeys(("rtol", "atol"), TOLERANCE[precision])
    assert network.loss == pytest.approx(loss, rel=TOLERANCE[precision])
    found = weights_of(network)
    for got, want in zip(found.arrays(), expected.arrays(), strict=True):
        np.testing.assert_allclose(got, want, **tolerance)
    want = reference.features(expected)
    np.testing.assert_allclose(network.parameters.C, want, **tolerance)
    return network, X, y, expected


@each_shape
@each_kind
@pytest.mark.parametrize("batch_size", [1, 5, 48])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_train_equals_reference(shape, kind, precision, solver, batch_size):
    check_training(shape, kind, precision, batch_size, solver=solver)


@each_shape
@each_kind
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_train_with_distant_words_equals_reference(shape, kind, tier, solver):
    check_training(shape, kind, "float32", 16, solver=solver, n_distant=9)


@each_shape
@each_kind
@pytest.mark.parametrize("batch_size", [1, 5])
@pytest.mark.parametrize("n_threads", [2, 7])
def test_threads_share_the_output_units(
    shape, kind, batch_size, n_threads, monkeypatch
):
    monkeypatch.setenv("NPLM_TIER", available_tiers()[0])
    runs = [
        check_training(shape, kind, "float32", batch_size, n_threads, solver="adam")[0]
        for _ in range(2)
    ]
    first, again = (run.parameters.trained() for run in runs)
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


@each_shape
@each_kind
def test_scoring_equals_reference(shape, kind, precision):
    network, X, y, weights = check_training(shape, kind, precision, 5)
    rounded = reference.as_it_is
    if precision == "bfloat16":
        rounded = reference.bfloat16
    want = reference.log_prob(weights, X, y, rounded=rounded)
    tolerance = dict.fromkeys(("rtol", "atol"), 5 * TOLERANCE[precision])
    found = network.log_prob(X, y)
    np.testing.assert_allclose(found, want, **tolerance)
    for i in (0, 31):  # in any company the same bits
        np.testing.assert_array_equal(
            network.log_prob(X[i : i + 1], y[i : i + 1]), found[i]
        )


@each_kind
def test_fixed_or_not_the_arrays_that_learn_are_those_that_say_so(kind):
    rng = np.random.default_rng(2)
    network = network_of((30, 3, 4, 3, True), kind, "float32", rng)
    X, y = random_windows(200, 30, 3, rng)
    before = {name: a.copy() for name, a in network.parameters.trained().items()}
    network.train(X, y, np.arange(200), 10)
    network.settle()
    for name, array in network.parameters.trained().items():
        stays = kind == "fixed" and name == "C"
        assert (array == before[name]).all() == stays, name
