"""The probabilities of a window depend on that window only, to the last bit."""

import numpy as np
import pytest

from nplm.models.training.parallel.threads import Threads
from tests.helpers import PRECISIONS, pairwise
from tests.helpers.networks import EXACT, random_network, random_windows, there_is

SHAPES = {  # n_words, n_context, n_hidden, embedding_dim, direct: no multiples of any
    "hidden": (389, 3, 37, 11, False),
    "hidden+direct": (207, 2, 19, 23, True),
    "direct": (193, 5, 0, 7, True),
    "small": (29, 1, 1, 1, True),
    "no context": (11, 0, 5, 3, False),
}
# How many of the 543 windows, and from which on.
SLICES = [
    (1, 0), (1, 7), (1, 542), (2, 7), (3, 540), (15, 0), (17, 7), (41, 502), (531, 7),
]  # fmt: skip


def scores(network, X, y):
    found = [
        network.predict_proba(X),
        network.predict_proba(X, logarithm=True),
        network.log_prob(X, y),
    ]
    if network.parts.output.logits_are_single:
        found.append(network.candidates(X, y[:, None], normalize=True))
        found.append(network.candidates(X, y[:, None], normalize=False))
    return found


def assert_same(got, want):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


def test_blas_accepts_empty_contexts(precision, capfd):
    rng = np.random.default_rng(6)
    network = random_network(*(11, 0, 5, 3, False), precision, rng)
    X, y = random_windows(20, 11, 0, rng)
    for batch_size in (1, 4):
        network.train(X, y, np.arange(20), batch_size)
    for n in (1, 20):
        scores(network, X[:n], y[:n])
    out, err = capfd.readouterr()
    assert "illegal" not in out + err


# To score, kinds that sample are those that do not.
@pytest.mark.slow
@pairwise(
    {
        "kind": EXACT,
        "precision": PRECISIONS,
        "shape": SHAPES,
        "n_senses": [1, 2],
        "widths": [(), (9, 40)],
    },
    where=there_is,
)
def test_scores_of_a_row_depend_on_that_row_only(
    kind, precision, shape, n_senses, widths
):
    rng = np.random.default_rng(5)
    network = random_network(
        *SHAPES[shape], precision, rng, kind=kind, n_senses=n_senses, widths=widths
    )
    X, y = random_windows(543, *SHAPES[shape][:2], rng)
    whole = scores(network, X, y)
    mixed = rng.permutation(len(X))
    assert_same(scores(network, X[mixed], y[mixed]), [part[mixed] for part in whole])
    for n, start in SLICES:
        rows = slice(start, start + n)
        assert_same(scores(network, X[rows], y[rows]), [a[rows] for a in whole])
    for n_threads in (2, 3, 5):
        network.threads = Threads(n_threads)
        rows = slice(9 if n_threads == 2 else None)
        assert_same(scores(network, X[rows], y[rows]), [a[rows] for a in whole])
