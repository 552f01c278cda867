"""The energy: the paper's equation written out, and what its kernels promise."""

import numpy as np

from tests.helpers import FULL_PRECISIONS, pairwise
from tests.helpers.networks import random_network, random_windows, weights_of, wide
from tests.reference import neural as reference

KINDS = ["energy", "energy, own weights"]


def test_the_paper_s_equation_written_out():
    """E = v . tanh(d + Hx) + b, one word at a time; x begins with the next word's."""
    rng = np.random.default_rng(1)
    network = random_network(9, 3, 5, 2, False, "float64", rng, kind="energy")
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


@pairwise({"name": ["C", "H_next", "v", "b"], "precision": FULL_PRECISIONS})
def test_nan_weight_gives_nan_scores(name, precision):
    rng = np.random.default_rng(7)
    network = random_network(30, 2, 9, 5, False, precision, rng, kind="energy")
    network.parameters.named()[name][0] = np.nan
    X, y = random_windows(20, 30, 2, rng)
    for n in (1, 20):
        assert np.isnan(network.predict_proba(X[:n])).any(axis=1).all()
        assert np.isnan(network.log_prob(X[:n], y[:n])).all()
