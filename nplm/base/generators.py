"""NumPy's random generators: one for each fit, and their states for files."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from nplm.base.fitted import Fitted

# scikit-learn's bit generator, and the length of its key.
BIT_GENERATOR, KEY_SIZE = "MT19937", 624


def private_generator(
    random_state: int | np.random.RandomState | None,
) -> np.random.RandomState:
    """Return the generator of a seed, or the given one; never NumPy's global one.

    Every library draws from that one: a process forked meanwhile has it locked forever.
    """
    generator = check_random_state(random_state)
    if generator is check_random_state(None):
        seed = generator.randint(2**32, size=4, dtype=np.uint32)
        return np.random.RandomState(seed)
    return generator


def plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a RandomState as numbers and ``key``, or raise TypeError."""
    if state["bit_generator"] != BIT_GENERATOR:
        raise TypeError(
            f"nplm cannot save a RandomState of {state['bit_generator']}, only one of "
            f"{BIT_GENERATOR}, which RandomState(seed) makes."
        )
    others = {name: value for name, value in state.items() if name != "state"}
    return state["state"] | others


def taken_state(fitted: Fitted) -> dict[str, object]:
    """Convert the state of `plain_state` back, or raise ValueError."""
    key = np.array(fitted.array("key", np.uint32, (KEY_SIZE,)))
    bit_generator = fitted.take("bit_generator", str)
    if bit_generator != BIT_GENERATOR:
        raise fitted.invalid_item("bit_generator", bit_generator)
    return {
        "bit_generator": bit_generator,
        "state": {"key": key, "pos": fitted.whole("pos", 0, KEY_SIZE)},
        "has_gauss": fitted.whole("has_gauss", 0, 1),
        "gauss": fitted.number("gauss"),
    }
