"""Kernels of every kind for the tests that ask for them."""

import pytest
from nplm._kernels.neural._loops import available_tiers


@pytest.fixture(params=available_tiers())
def tier(request, monkeypatch):
    """Every tier of kernels that this processor can run."""
    monkeypatch.setenv("NPLM_TIER", request.param)
    return request.param


@pytest.fixture(
    params=[
        f"{precision}, {tier}"
        for precision in ("float32", "float64", "bfloat16")
        for tier in available_tiers(precision)
    ]
)
def precision(request, monkeypatch):
    """Every precision on every tier of kernels that this processor can run."""
    name, tier = request.param.split(", ")
    monkeypatch.setenv("NPLM_TIER", tier)
    return name
