"""Kernels of every kind for the tests that ask for them."""

import pytest
from nplm._kernels.neural._loops import available_tiers


@pytest.fixture(params=available_tiers())
def tier(request, monkeypatch):
    """Every tier of kernels that this processor can run."""
    monkeypatch.setenv("NPLM_TIER", request.param)
    return request.param


def on_every_tier(*precisions):
    return [f"{name}, {tier}" for name in precisions for tier in available_tiers(name)]


@pytest.fixture(params=on_every_tier("float32", "float64"))
def full_precision(request, monkeypatch):
    """Every precision but bfloat16, on every tier."""
    name, tier = request.param.split(", ")
    monkeypatch.setenv("NPLM_TIER", tier)
    return name


@pytest.fixture(params=on_every_tier("float32", "float64", "bfloat16"))
def precision(request, monkeypatch):
    """Every precision on every tier of kernels that this processor can run."""
    name, tier = request.param.split(", ")
    monkeypatch.setenv("NPLM_TIER", tier)
    return name
