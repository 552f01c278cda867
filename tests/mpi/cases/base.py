"""What the cases share."""

import re

import numpy as np
import pytest
from mpi4py import MPI

from nplm import NeuralLM, mpi, windows
from nplm.experiments import grouped
from nplm.models.neural.network import network as networks

comm = MPI.COMM_WORLD


PARAMETERS = ["C_", "H_", "d_", "U_", "W_", "b_", "P_", "G_", "S_", "Q_"]


SETTINGS = dict(n_hidden=6, embedding_dim=4, learning_rate_init=0.02, random_state=0)


def paper_lm(**settings):
    """Return `tests.helpers.paper_lm`, which a script cannot import."""
    recipe = dict(batch_size=32, learning_rate_init=4e-3, max_iter=12)
    recipe |= dict(early_stopping=False, order=None)
    return NeuralLM.from_paper("MLP9", **grouped(recipe | settings))


def data(n_words, n=400):
    ids = np.random.default_rng(0).zipf(1.5, n + 2) % n_words
    ids[::3] = ids[1::3][: len(ids[::3])] if n_words > 1 else 0
    return windows(ids.astype(np.int32), 2)


def differences(one, other):
    for name in PARAMETERS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            yield np.abs(a - b).max()


def share_rows():
    """Have threads and ranks share output units, also those of small networks."""
    networks.MIN_EXAMPLES_A_THREAD = 10**9


def raises_in_all(message, call, *args, **kwargs):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call(*args, **kwargs)


def refused(message, lm, *args, **kwargs):
    before = vars(lm).copy()
    raises_in_all(message, mpi.fit, lm, *args, **kwargs)
    assert vars(lm).keys() == before.keys()
