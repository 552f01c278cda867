"""Fixtures: the data of fits, and saves after every call."""

import numpy as np
import pytest

from nplm import windows
from nplm.models.training import checkpoint as checkpoints


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ids = np.cumsum(rng.choice([1, 2, 5], 2000, p=[0.7, 0.2, 0.1])) % 20
    X, y = windows(ids.astype(np.int32), 2)
    return dict(X=X[200:], y=y[200:], X_val=X[:200], y_val=y[:200])


@pytest.fixture(autouse=True)
def many_saves(monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS_A_SAVE", 0)
    monkeypatch.setattr("nplm.models.training.pace.SECONDS_A_CALL", 0.002)
