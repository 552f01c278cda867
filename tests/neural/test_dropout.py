"""Dropout: its masks, its kernels against plain NumPy, and its fits."""

import numpy as np
import pytest
from sklearn.base import clone

from nplm import NeuralLM, windows
from nplm._kernels.reference import neural as reference
from nplm.neural.dropout import Dropout
from nplm.neural.features import Features
from nplm.neural.hidden import Projected
from nplm.neural.network import Network, Parts
from nplm.neural.outputs.softmax import Softmax, TiedSoftmax
from nplm.parallel.threads import Threads
from tests.helpers import (
    random_windows,
    reference_of,
    solver_of,
    text,
    weights_of,
    wide,
)

RATES = (0.3, 0.5, 0.2)
SHAPES = {  # n_words, n_context, n_hidden, m, direct
    "hidden": (50, 3, 7, 4, False),
    "hidden+direct": (300, 2, 5, 3, True),
    "direct": (23, 4, 0, 5, True),
    "no context": (9, 0, 3, 2, True),
}
TOLERANCE = {"float64": 1e-12, "float32": 5e-5, "bfloat16": 2e-3}
each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
each_output = pytest.mark.parametrize("tied", [False, True], ids=["own", "tied"])


def dropout_of(rates=RATES, n_workers=1):
    return Dropout.of(rates).begun(np.random.RandomState(3), n_workers)


def network_of(shape, tied, precision, rng, n_threads=1, *, n_distant=0, **options):
    n_words, n_context, n_hidden, m, direct = shape
    output = TiedSoftmax(False) if tied else Softmax(direct)
    parts = Parts.of(n_context, Features(m, None, tied), n_hidden, output, n_distant)
    if tied:
        parts = parts._replace(hidden=Projected(n_hidden, m, direct))
    dtype = np.float64 if precision == "float64" else np.float32
    _, y = random_windows(10, n_words, 1, rng)
    parameters = parts.initial(n_words, y, np.random.RandomState(0), dtype)
    options = {"solver": solver_of(), "dropout": dropout_of()} | options
    network = Network(
        parts, parameters, precision=precision, threads=Threads(n_threads), **options
    )
    for array in weights_of(network).arrays():
        array += rng.normal(size=array.shape) / 2
    return network


# -- masks --------------------------------------------------------------------------


def test_the_generator_is_splitmix64():
    # The first numbers of Vigna's splitmix64.c from 1234567, 16 bits at a time.
    drawn = [6457827717110365317, 3203168211198807973]
    bits = [(z >> 16 * j) & 0xFFFF for z in drawn for j in range(4)]
    for rate in (0.25, 0.5, 0.9):
        kept = np.array(bits) >= round(rate * 65536)
        for found in (
            reference.mask(1234567, 0, 1, 8, rate)[0],
            reference.mask(1234567, 0, 2, 3, rate)[:, :3].ravel(),
        ):
            places = np.arange(8) if len(found) == 8 else [0, 1, 2, 4, 5, 6]
            np.testing.assert_array_equal(found > 0, kept[places])


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.999])
def test_what_is_kept_grows_by_what_is_left_out(rate):
    factors = reference.mask(7, 1000, 500, 101, rate)
    n, kept = factors.size, (factors > 0).mean()
    assert len(np.unique(factors)) <= 2
    assert factors.max() * (1 - rate) == pytest.approx(1, rel=2 * 2**-16 / (1 - rate))
    assert abs(kept - (1 - rate)) <= 5 * np.sqrt(rate * (1 - rate) / n)
    # No two examples, and no two numbers, go together.
    if rate == 0.5:
        for rows in (factors, factors.T):
            together = np.corrcoef(rows)
            np.fill_diagonal(together, 0)
            assert np.abs(together).max() < 6 / np.sqrt(rows.shape[1])


def test_an_example_has_its_mask_in_any_mini_batch():
    whole = reference.mask(7, 20, 9, 5, 0.4)
    np.testing.assert_array_equal(whole[4:], reference.mask(7, 24, 5, 5, 0.4))


# -- the network -----------------------------------------------------------------------


@each_shape
@each_output
@pytest.mark.parametrize("n_distant", [0, 9])
def test_gradients_numerically(shape, tied, n_distant):
    rng = np.random.default_rng(0)
    network = network_of(shape, tied, "float64", rng, n_distant=n_distant)
    X, y = random_windows(6, shape[0], network.parts.inputs.n_context, rng)
    weights = weights_of(network)
    rates = reference.Dropout(RATES, dropout_of().seeds[0])
    masks = rates.masks(weights, 11, len(y))
    _, analytic = reference.gradients(weights, X, y, masks=masks)

    def likelihood():
        logits = reference.forward(weights, X, masks=masks)[-1]
        return reference.log_softmax(logits)[np.arange(len(y)), y].sum()

    step = 1e-5
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat
        for i in rng.choice(array.size, size=min(array.size, 30), replace=False):
            kept = flat[i]
            flat[i] = kept + step
            above = likelihood()
            flat[i] = kept - step
            below = likelihood()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            assert gradient.reshape(-1)[i] == pytest.approx(numeric, abs=2e-8, rel=1e-6)


def check_training(shape, tied, precision, batch_size, n_threads=1, **options):
    rng = np.random.default_rng(1)
    solver, rates = solver_of(options.pop("solver", "sgd")), options.pop("rates", RATES)
    options = {
        "clock": (7, 0),
        "solver": solver,
        "dropout": dropout_of(rates),
    } | options
    network = network_of(shape, tied, precision, rng, n_threads, **options)
    X, y = random_windows(60, shape[0], network.parts.inputs.n_context, rng)
    index = rng.permutation(60)
    expected = wide(weights_of(network))
    rounds = precision == "bfloat16" and batch_size > 1
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7),
        reference.bfloat16 if rounds else reference.as_it_is,
        dropout=reference.Dropout(rates, network.dropout.seeds[0]),
    )  # fmt: skip
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()

    tolerance = TOLERANCE[precision]
    assert network.loss == pytest.approx(loss, rel=tolerance)
    for got, want in zip(weights_of(network).arrays(), expected.arrays(), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return network


@each_shape
@each_output
@pytest.mark.parametrize(("batch_size", "solver"), [(1, "sgd"), (48, "adam")])
def test_train_equals_reference(shape, tied, precision, solver, batch_size):
    check_training(shape, tied, precision, batch_size, solver=solver)


@each_output
@pytest.mark.parametrize("rates", [(0.9, 0, 0), (0, 0.9, 0), (0, 0, 0.9)], ids=str)
def test_each_place_by_itself(tied, rates):
    shape = SHAPES["hidden+direct"]
    check_training(shape, tied, "float64", 7, rates=rates, n_distant=9)


@each_output
def test_threads_that_share_the_rows_have_one_mask(tied):
    check_training(SHAPES["hidden+direct"], tied, "float64", 7, n_threads=3)


@pytest.mark.parametrize("batch_size", [1, 5])
def test_threads_with_examples_of_their_own(batch_size):
    rng = np.random.default_rng(2)
    X, y = random_windows(60, 50, 3, rng)
    networks = []
    for parallel, n_threads in (("rows", 1), ("async", 1), ("async", 3)):
        network = network_of(
            SHAPES["hidden"], False, "float64", np.random.default_rng(7), n_threads,
            parallel=parallel, dropout=dropout_of(n_workers=n_threads),
        )  # fmt: skip
        network.train(X, y, np.arange(60), batch_size)
        network.settle()
        networks.append(network)
    one, alone, several = networks
    for got, want in zip(weights_of(alone).arrays(), weights_of(one).arrays()):
        np.testing.assert_array_equal(got, want)
    assert several.n_seen == 60
    assert len(np.unique(several.dropout.seeds)) == 9
    assert all(np.isfinite(array).all() for array in weights_of(several).arrays())


# -- the estimator ---------------------------------------------------------------------

SETTINGS = dict(n_hidden=6, embedding_dim=4, n_words=12, max_iter=2, random_state=0)


@pytest.fixture(scope="module")
def data():
    return windows(text(303), 3)


def equal(one, other):
    for name in ("C_", "H_", "d_", "b_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    "kind",
    [
        {},
        dict(direct=True, batch_size=1),
        dict(tied=True, direct=True, solver="adam"),
        dict(loss="importance", n_samples=5),
        dict(output="classes"),
        dict(output="tree", n_distant=3, order=3),
    ],
    ids=str,
)
def test_fits(data, kind):
    lm = NeuralLM(dropout=0.3, **SETTINGS | kind).fit(*data)
    equal(clone(lm).fit(*data), lm)  # the same seed
    other = NeuralLM(**SETTINGS | kind).fit(*data)
    assert np.abs(lm.b_ - other.b_).max() > 0  # something was left out
    np.testing.assert_array_equal(lm.log_prob(*data), lm.log_prob(*data))


def test_one_share_is_that_of_all_places(data):
    lm = NeuralLM(dropout=(0.25, 0.25, 0.25), tied=True, **SETTINGS).fit(*data)
    equal(NeuralLM(dropout=0.25, tied=True, **SETTINGS).fit(*data), lm)


def test_none_is_the_fit_without(data):
    for none in (0, [0.0, 0, 0]):
        lm = NeuralLM(dropout=none, **SETTINGS).fit(*data)
        equal(lm, NeuralLM(**SETTINGS).fit(*data))


def test_every_epoch_leaves_out_others(data):
    # Of no step: what changes is the mask.
    X, y = data
    lm = NeuralLM(
        dropout=0.5, learning_rate_init=1e-12, shuffle=False, **SETTINGS
    ).fit(X, y)  # fmt: skip
    lm.set_params(learning_rate_init=0.1).partial_fit(X, y)
    lm.set_params(learning_rate_init=1e-12, max_iter=3, warm_start=True).fit(X, y)
    assert len(set(lm.history_["loss"][-3:])) == 3


@pytest.mark.parametrize(
    ("dropout", "message"),
    [
        (1.0, "a share of 1.0 cannot"),
        (-0.1, "a share of -0.1 cannot"),
        (np.nan, "a share of nan cannot"),
        ((0.1, 0.2), "give one share, or three"),
        ([[0.1, 0.2, 0.3]], "give one share, or three"),
        ((0.1, 2, 0.3), "a share of 2.0 cannot"),
    ],
)
def test_what_is_refused(data, dropout, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM(dropout=dropout, **SETTINGS).fit(*data)
