"""NumPy's random generators as files have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nplm.base.fitted import Fitted

__all__ = ["plain_state", "taken_state"]

# The one that scikit-learn makes; the numbers of its state.
KIND, N_NUMBERS = "MT19937", 624


def plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Give the state of a RandomState as an array, ``key``, and plain numbers.

    Raises
    ------
    TypeError
        If it is of another kind than scikit-learn makes.
    """
    if state["bit_generator"] != KIND:
        raise TypeError(
            f"nplm saves no RandomState of {state['bit_generator']}, only of {KIND}, "
            "which RandomState(seed) has."
        )
    others = {name: value for name, value in state.items() if name != "state"}
    return state["state"] | others


def taken_state(fitted: Fitted) -> dict[str, Any]:
    """Take what `plain_state` gave, for ``RandomState.set_state``.

    Raises
    ------
    ValueError
        If no generator has such a state.
    """
    key = np.array(fitted.array("key", np.uint32, (N_NUMBERS,)))
    kind = fitted.take("bit_generator", str)
    if kind != KIND:
        raise fitted.unfit("bit_generator", kind)
    return {
        "bit_generator": kind,
        "state": {"key": key, "pos": fitted.whole("pos", 0, N_NUMBERS)},
        "has_gauss": fitted.whole("has_gauss", 0, 1),
        "gauss": fitted.number("gauss"),
    }
