"""Networks of every kind against plain NumPy, and its gradients numerically."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from nplm import available_tiers
from nplm._kernels.neural import _caches
from nplm.models.neural.fitting.sharded import ShardedNetwork
from nplm.models.neural.network import network as networks
from nplm.models.neural.network.network import Examples
from nplm.models.training.parallel.threads import Threads
from tests.helpers import PRECISIONS, pairwise
from tests.helpers.networks import (
    EXACT,
    KINDS,
    SHAPES,
    dropout_of,
    random_network,
    random_windows,
    reference_of,
    sampled_loss,
    solver_of,
    text_windows,
    there_is,
    weights_of,
    wide,
)
from tests.reference import neural as reference

ROUNDING = {"bfloat16": reference.bfloat16}
# Two numbers that nearly tie may round to neighbours, 1 in 2^8 apart.
TOLERANCE = {"float64": 1e-12, "float32": 5e-5, "bfloat16": 2e-3}
# Those whose output units threads share.
SHARED = [kind for kind in EXACT if kind not in ("classes", "tree")]
FASTEST = [
    f"{name}, {available_tiers(name)[0]}" for name in ("float32", "float64", "bfloat16")
]
SOLVERS = ["sgd", "adam"]
# Words that are averaged: none, fewer than the window's, more, and in four averages.
DISTANT = [0, 2, 9, 130]
# Feature vectors of a word: the paper's one, and mixtures.
SENSES = [1, 2, 3]
# Units of residual blocks.
WIDTHS = [(), (6,), (19, 1)]
# Words of a window that hidden units remember.
MEMORY = [0, 6, 13]
N_RUNS = 3  # that leave their memory to the next mini-batch
# Shares of x, a and what is projected that are left out.
DROPOUT = [(0, 0, 0), (0.3, 0.5, 0.2), (0.6, 0, 0), (0, 0.7, 0), (0, 0, 0.7)]


@pytest.mark.slow
@pairwise(
    {
        "kind": EXACT,
        "shape": SHAPES,
        "n_distant": DISTANT[:3],
        "n_senses": SENSES,
        "rates": DROPOUT,
        "widths": WIDTHS,
        "n_memory": MEMORY,
    },
    where=there_is,
)
def test_gradients_numerically(
    kind, shape, n_distant, n_senses, rates, widths, n_memory
):
    # Central differences in float64 of the reference, for every parameter.
    rng = np.random.default_rng(0)
    network = random_network(
        *SHAPES[shape], "float64", rng, kind=kind, n_distant=n_distant,
        n_senses=n_senses, widths=widths, n_memory=n_memory,
    )  # fmt: skip
    X, y = random_windows(6, network.n_words, network.parts.inputs.n_context, rng)
    weights = weights_of(network)
    masks = reference.Dropout(rates, dropout_of(rates).seeds[0]).masks(weights, 7, X)
    memory = None
    if n_memory:  # of two runs, of which one goes on
        left = rng.uniform(-1, 1, (2, weights.n_hidden))
        memory = reference.Memory(np.arange(6), {0: None, 4: left})
    _, analytic = reference.gradients(weights, X, y, masks=masks, memory=memory)

    def likelihood():
        logits = reference.forward(weights, X, masks=masks, memory=memory)[-1]
        return weights.output.log_p(logits)[np.arange(6), y].sum()

    step = 1e-5
    # Of likelihoods, over the step: larger ones come through a memory and a norm.
    rounding = 5e-8 if n_memory else 2e-8
    for array, gradient in zip(weights.arrays(), analytic.arrays(), strict=True):
        flat = array.flat  # E is a view: reshape would copy
        chosen = rng.choice(array.size, size=min(array.size, 60), replace=False)
        for i in chosen:
            kept = flat[i]
            flat[i] = kept + step
            above = likelihood()
            flat[i] = kept - step
            below = likelihood()
            flat[i] = kept
            numeric = (above - below) / (2 * step)
            near = pytest.approx(numeric, abs=rounding, rel=1e-6)
            assert gradient.reshape(-1)[i] == near


# One example alone has kernels of its own, and so has each kind of E for each solver.
@pytest.mark.slow
@pairwise(
    {
        "kind, solver, alone": list(product(KINDS, SOLVERS, [True, False])),
        "precision": PRECISIONS,
        "shape": SHAPES,
        # 48 leaves a last mini-batch of 12: the rest of it is from the one before.
        "batch_size": [2, 5, 16, 48, 100],
        "n_distant": DISTANT,
        "n_senses": SENSES,
        "alpha": [0.0, 0.05],
        "n_noise": [1, 20, 400],
        "rates": DROPOUT,
        # Of a step that falls to 0: before the last of the examples, or after them.
        "span": [np.inf, 40, 200],
        "widths": WIDTHS,
        "n_memory": MEMORY,
    },
    where=there_is,
)
def test_train_equals_reference(
    kind, solver, alone, precision, shape, batch_size, n_distant, n_senses, alpha,
    n_noise, rates, span, widths, n_memory,
):  # fmt: skip
    check_training(
        SHAPES[shape], precision, 1 if alone else batch_size, kind=kind,
        solver=solver, n_distant=n_distant, n_senses=n_senses, alpha=alpha,
        n_noise=n_noise, rates=rates, begun=3, span=span, widths=widths,
        n_memory=n_memory,
    )  # fmt: skip


# The few inputs that are left are ten times as large, and rounding grows with them
# from update to update: in float32 beyond TOLERANCE, so that DROPOUT stops at 0.7. In
# float64 there is room for it with these steps (2e-14); with one of 0.03 it comes to
# 1e-12 and more, by how a compiler orders sums.
@pytest.mark.parametrize(("n_distant", "learning_rate_init"), [(9, 1e-3), (0, 0.01)])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["softmax", "tied, composed"])
def test_high_dropout_equals_reference(kind, solver, n_distant, learning_rate_init):
    check_training(
        SHAPES["wider than vectors"], "float64", 5, kind=kind, solver=solver,
        n_distant=n_distant, rates=(0.9, 0, 0), learning_rate_init=learning_rate_init,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_products_in_many_blocks(precision, solver, monkeypatch):
    # Deeper than a block (256), more examples than are added up at once (128), tiles
    # of one chunk, and rows of H that are no whole vectors.
    monkeypatch.setattr(_caches, "found", lambda: _caches.Caches(1, 1, 1))
    check_training((200, 3, 37, 91, True), precision, 150, n=200, solver=solver)


def check_training(
    shape, precision, batch_size, n_threads=1, *, n=60, kind="softmax", solver="sgd",
    n_distant=0, n_senses=1, n_noise=20, rates=(0, 0, 0), widths=(), n_memory=0,
    alone=None, **schedule,
):  # fmt: skip
    rng = np.random.default_rng(1)
    # Larger steps would make more of a difference in the last digit: so much so where
    # few inputs are left, and larger, that two numbers part company.
    if n_distant > 100:
        schedule = {"learning_rate_init": 3e-4} | schedule
    elif kind.startswith("energy") or any(rates):
        schedule = {"learning_rate_init": 1e-3} | schedule
    if widths:  # gradients through blocks with such weights are large
        schedule["learning_rate_init"] = 3e-5 if n_distant > 100 else 1e-4
    solver = solver_of(solver, **schedule)
    network = random_network(
        *shape, precision, rng, n_threads, kind=kind, n_distant=n_distant,
        n_senses=n_senses, n_noise=n_noise, solver=solver, clock=(7, 0),
        dropout=dropout_of(rates), widths=widths, n_memory=n_memory, n_runs=N_RUNS,
    )  # fmt: skip
    if n_memory:  # runs of any length
        X, y = text_windows(n, shape[0], n_memory, rng)
        runs = np.array_split(np.arange(n), n // 7)
        index = np.concatenate([runs[i] for i in rng.permutation(len(runs))])
    else:
        X, y = random_windows(n, shape[0], network.parts.inputs.n_context, rng)
        index = rng.permutation(n)
    expected, sampled = wide(weights_of(network)), sampled_loss(network)
    # One example alone, of a thread, is not rounded.
    alone = batch_size == 1 if alone is None else alone
    rounded = reference.as_it_is if alone else ROUNDING.get(precision)
    loss = reference.train(
        expected, X, y, index, batch_size, reference_of(solver, n_seen=7),
        rounded or reference.as_it_is, sampled,
        reference.Dropout(
            rates, dropout_of(rates).seeds[0], network.run_length(batch_size)
        ),
        N_RUNS,
    )  # fmt: skip

    # In two calls, as the epoch loop makes them.
    cut = batch_size * max(1, 20 // batch_size)
    network.train(X, y, index[:cut], batch_size)
    network.train(X, y, index[cut:], batch_size)
    network.settle()

    tolerance = dict.fromkeys(("rtol", "atol"), TOLERANCE[precision])
    assert_close = partial(np.testing.assert_allclose, **tolerance)
    assert_close(network.loss, loss)
    assert network.n_seen == 7 + n
    for got, want in zip(weights_of(network).arrays(), expected.arrays(), strict=True):
        assert_close(got, want)
    # Sums of features that were compared above, each with its own last digit.
    sums = dict.fromkeys(("rtol", "atol"), 10 * TOLERANCE[precision])
    np.testing.assert_allclose(
        network.parameters.C, reference.features(expected), **sums
    )
    if sampled is not None:
        state = network.output_state
        assert state["generators"][0].tolist() == sampled.sampler.state
    if kind.endswith("importance"):
        assert_close(state["watched"][0], sampled.watched)
    return network


# Also more threads than words, and than this machine has cores.
@pytest.mark.slow
@pairwise(
    {
        "kind, alone": list(product(SHARED, [True, False])),
        "precision": FASTEST,
        "shape": SHAPES,
        "n_threads": [2, 3, 7],
        "solver, n_distant": [("sgd", 0), ("adam", 9)],
        "n_senses": SENSES,
        "rates": DROPOUT[:2],
        "widths": WIDTHS,
        "n_memory": MEMORY,
    },
    where=there_is,
)
def test_threads_share_the_output_units(
    kind, alone, precision, shape, n_threads, solver, n_distant, n_senses, rates,
    widths, n_memory,
):  # fmt: skip
    first, again = (
        check_training(
            SHAPES[shape], precision, 1 if alone else 5, n_threads, kind=kind,
            solver=solver, n_distant=n_distant, n_senses=n_senses, rates=rates,
            widths=widths, n_memory=n_memory,
        )
        for _ in range(2)
    )  # fmt: skip
    for got, want in zip(weights_of(first).arrays(), weights_of(again).arrays()):
        np.testing.assert_array_equal(got, want)


# Also more threads than examples.
@pytest.mark.slow
@pairwise(
    {
        "kind": KINDS,
        "precision": FASTEST,
        "shape": SHAPES,
        "batch_size": [1, 2, 16, 48],
        "n_threads": [2, 3, 7],
        "solver": SOLVERS,
        "n_distant": DISTANT,
        "n_senses": SENSES,
        "alpha": [0.0, 0.05],
        "n_noise": [1, 20],
        "rates": DROPOUT,
        "widths": WIDTHS,
    },
    where=there_is,
)
def test_threads_share_the_examples(
    kind, precision, shape, batch_size, n_threads, solver, n_distant, n_senses, alpha,
    n_noise, rates, widths, monkeypatch,
):  # fmt: skip
    monkeypatch.setattr(networks, "sharing_of", lambda *_: (Examples, n_threads))
    first, again = (
        check_training(
            SHAPES[shape], precision, batch_size, n_threads, kind=kind, solver=solver,
            n_distant=n_distant, n_senses=n_senses, alpha=alpha, n_noise=n_noise,
            rates=rates, begun=3, span=200, learning_rate_init=1e-3, widths=widths,
            alone=batch_size <= n_threads,
        )
        for _ in range(2)
    )  # fmt: skip
    for got, want in zip(weights_of(first).arrays(), weights_of(again).arrays()):
        np.testing.assert_array_equal(got, want)


def test_one_example_is_the_algorithm_of_section_3_2():
    """Its steps written out for one processor, loops and all."""
    rng = np.random.default_rng(2)
    V, n, h, m, rate, alpha = 9, 4, 3, 2, 0.1, 0.01
    solver = solver_of(learning_rate_init=rate, learning_rate_decay=0.0, alpha=alpha)
    network = random_network(V, n - 1, h, m, True, "float64", rng, solver=solver)
    C, H, d, E = (a.copy() for a in weights_of(network).arrays())
    U, W, b = E[:, :h].copy(), E[:, h:-1].copy(), E[:, -1].copy()
    context, target = [5, 2, 5], 7  # text order: w_{t-1} = 5 stands last

    # 1. forward: (a) features, nearest word first, (b) hidden, (c) output units
    x = np.concatenate([C[w] for w in reversed(context)])
    a = np.tanh(d + H @ x)
    p = np.empty(V)
    for j in range(V):
        p[j] = np.exp(b[j] + a @ U[j] + x @ W[j])
    p /= p.sum()
    # 2. backward and update: (a) output units
    da, dx = np.zeros(h), np.zeros((n - 1) * m)
    for j in range(V):
        dy = float(j == target) - p[j]
        b[j] += rate * dy
        dx += dy * W[j]
        da += dy * U[j]
        W[j] += rate * dy * x - rate * alpha * W[j]
        U[j] += rate * dy * a - rate * alpha * U[j]
    # (c) hidden layer
    do = (1 - a**2) * da
    dx += H.T @ do
    d += rate * do
    H += rate * np.outer(do, x) - rate * alpha * H
    # (d) features, where weight decay touches every word
    C *= 1 - rate * alpha
    for k, w in enumerate(reversed(context)):
        C[w] += rate * dx[k * m : (k + 1) * m]

    network.train(
        np.array([context], np.int32), np.array([target], np.int32), np.arange(1), 1
    )
    network.settle()
    assert network.loss == pytest.approx(-np.log(p[target]), rel=1e-12)
    for name, want in dict(C=C, H=H, d=d, U=U, W=W, b=b).items():
        np.testing.assert_allclose(network.parameters.named()[name], want, rtol=1e-12)


@pairwise(
    {
        "kind": EXACT,
        "precision": PRECISIONS,
        "shape": SHAPES,
        "n_distant": DISTANT,
        "n_senses": SENSES,
        "widths": WIDTHS,
        "n_memory": MEMORY,
    },
    where=there_is,
)
def test_scoring_equals_reference(
    kind, precision, shape, n_distant, n_senses, widths, n_memory
):
    rng = np.random.default_rng(3)
    network = random_network(
        *SHAPES[shape], precision, rng, kind=kind, n_distant=n_distant,
        n_senses=n_senses, widths=widths, n_memory=n_memory,
    )  # fmt: skip
    n_words, n_context = network.n_words, network.parts.n_columns
    make = text_windows if n_memory else random_windows
    X, y = make(100, n_words, n_context, rng)
    weights = wide(weights_of(network))
    rounded = ROUNDING.get(precision, reference.as_it_is)
    tolerance = dict.fromkeys(("rtol", "atol"), 3 * TOLERANCE[precision])
    assert_close = partial(np.testing.assert_allclose, **tolerance)
    want = reference.log_prob(weights, X, y, rounded=rounded)
    assert_close(network.log_prob(X, y), want)
    assert_close(network.log_prob(X[:1], y[:1]), want[:1])
    network.threads = Threads(3)
    assert_close(network.log_prob(X, y), want)
    for rows in (X, X[:1], X[:19]):  # one window, and a batch not full
        for logarithm in (False, True):
            options = dict(logarithm=logarithm)
            want = reference.probabilities(weights, rows, rounded=rounded, **options)
            assert_close(network.predict_proba(rows, **options), want)
        if not network.parts.output.logits_are_single:
            continue
        # Output units in full precision: no normaliser is made of bfloat16's logits.
        for normalize in (False,) if precision == "bfloat16" else (False, True):
            words = rng.integers(0, n_words, (len(rows), 5)).astype(np.int32)
            options = dict(normalize=normalize)
            want = reference.candidates(
                weights, rows, words, rounded=rounded, **options
            )
            assert_close(network.candidates(rows, words, **options), want)


@pairwise(
    {
        "kind": ["softmax", "classes", "tree"],
        "size": [1.0, 30.0, 1e4, 1e36],
        "precision": PRECISIONS,
    },
    where=there_is,
)
def test_logits_of_any_size(kind, size, precision):
    rng = np.random.default_rng(4)
    network = random_network(1000, 2, 3, 2, False, precision, rng, kind=kind)
    biases = network.parameters.b
    biases[:] = rng.uniform(-1, 1, len(biases)) * size
    X, y = random_windows(5, 1000, 2, rng)
    weights = wide(weights_of(network))
    rounded = ROUNDING.get(precision, reference.as_it_is)
    tolerance = TOLERANCE[precision]
    for logarithm in (False, True):
        want = reference.probabilities(weights, X, logarithm=logarithm, rounded=rounded)
        got = network.predict_proba(X, logarithm=logarithm)
        assert np.isfinite(got).all()
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=tolerance * (size if logarithm else 1)
        )
    np.testing.assert_allclose(
        network.log_prob(X, y), reference.log_prob(weights, X, y, rounded=rounded),
        rtol=tolerance, atol=tolerance * size,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_only_learned_arrays_change(kind):
    rng = np.random.default_rng(2)
    network = random_network(30, 3, 4, 3, True, "float32", rng, kind=kind)
    X, y = random_windows(200, 30, 3, rng)
    before = {name: a.copy() for name, a in network.parameters.trained().items()}
    network.train(X, y, np.arange(200), 10)
    network.settle()
    for name, array in network.parameters.trained().items():
        stays = kind == "fixed" and name == "C"
        assert (array == before[name]).all() == stays, name


class Part:
    """One process of several, as far as a network asks before it trains."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [1, 3, 4])
def test_shards_have_the_rows_of_the_whole(size):
    rng = np.random.default_rng(9)
    network = random_network(50, 3, 7, 4, True, "float64", rng)
    X, y = random_windows(30, 50, 3, rng)
    weights = weights_of(network)
    for rank in range(size):
        first, stop = (min(50, i * -(-50 // size)) for i in (rank, rank + 1))
        part = weights._replace(E=weights.E[first:stop])
        want = reference.score(part, X, y, first=first)
        shard = ShardedNetwork(
            network.parts, network.parameters.copy(slice(first, stop)),
            processes=Part(rank, size), precision="float64",
        )  # fmt: skip
        np.testing.assert_allclose(shard._totals(X, y), want, rtol=1e-12)
