"""The energy: the paper's equation written out, and what its kernels promise."""

import numpy as np

from tests.helpers import FULL_PRECISIONS, pairwise
from tests.helpers.networks import random_network, random_windows, weights_of, wide
from tests.reference import neural as reference

KINDS = ["energy", "energy, own weights"]


@pairwise(
    {"size": [1e-3, 1.0, 10.0, 20.0], "kind": KINDS, "precision": FULL_PRECISIONS}
)
def test_large_sums_are_exact(size, kind, precision):
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
