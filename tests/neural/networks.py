"""Random networks and windows, and a network's weights as the reference has them."""

import numpy as np

from nplm._kernels.reference import neural as reference
from nplm.neural.network import Network, Parts
from nplm.neural.parameters import Parameters
from nplm.neural.solvers import SGD, Adam, Schedule
from nplm.parallel.threads import Threads

SCHEDULE = dict(learning_rate_init=0.01, learning_rate_decay=0.02, alpha=0.05)
MOMENTS = dict(beta_1=0.8, beta_2=0.95, epsilon=1e-3)


def solver_of(name="sgd", **schedule):
    schedule = Schedule(**(SCHEDULE | schedule))
    return Adam(schedule, **MOMENTS) if name == "adam" else SGD(schedule)


def reference_of(solver, n_seen=0):
    """The reference of a solver."""
    schedule = vars(solver.schedule) | dict(n_seen=n_seen)
    if isinstance(solver, Adam):
        return reference.Adam(**schedule, **MOMENTS)
    return reference.SGD(**schedule)


def random_network(
    n_words, n_context, n_hidden, embedding_dim, direct, precision, rng, n_threads=1,
    *, n_distant=0, solver=None, **options,
):  # fmt: skip
    parts = Parts.of(n_context, embedding_dim, n_hidden, direct, n_distant)
    n_inputs = parts.inputs.n_inputs
    dtype = np.float64 if precision == "float64" else np.float32
    P = parts.inputs.initial_weights(dtype)
    weights = Parameters.of(
        C=rng.normal(size=(n_words, embedding_dim)).astype(dtype),
        H=rng.normal(size=(n_hidden, n_inputs)),
        d=rng.normal(size=n_hidden),
        U=rng.normal(size=(n_words, n_hidden)),
        W=rng.normal(size=(n_words, n_inputs)) if direct else None,
        b=rng.normal(size=n_words),
        P=None if P is None else P + rng.normal(size=P.shape) / P.size,
    )
    return Network(
        parts, weights, precision=precision, threads=Threads(n_threads),
        solver=solver_of() if solver is None else solver, **options,
    )  # fmt: skip


def random_windows(n, n_words, n_context, rng):
    X = rng.integers(0, n_words, (n, n_context)).astype(np.int32)
    return X, rng.integers(0, n_words, n).astype(np.int32)


def weights_of(network):
    """Views: what fills up the rows of E to whole vectors is left out."""
    own = network.parameters
    n_outputs = own.U.shape[1] + (0 if own.W is None else own.W.shape[1]) + 1
    inputs = network.parts.inputs
    return reference.Weights(
        own.C, own.H, own.d, own.E[:, :n_outputs], own.P, inputs.n_window
    )


def wide(weights):
    """A copy in float64."""
    arrays = [None if a is None else a.astype(np.float64) for a in weights[:5]]
    return reference.Weights(*arrays, weights.n_window)
