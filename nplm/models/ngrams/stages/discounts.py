"""Absolute discounts, and the tables of counts they are estimated from."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from nplm.base.array_types import Counts, Floats
from nplm.base.blocks import blocks
from nplm.base.exceptions import ParameterMessage
from nplm.base.warnings import warn

# Used if the counts of counts of an order give no discounts, as by KenLM's
# `--discount_fallback`.
FALLBACKS = {"modified": (0.5, 1.0, 1.5), "plain": (0.5, 0.5, 0.5)}
BLOCK_COUNTS = 1 << 20


def counts_of_counts(counts: Counts) -> Counts:
    """Return the numbers (6,) of n-grams of count 0, 1, 2, 3, 4, and 5 or more."""
    n = np.zeros(6, dtype=np.int64)
    for part in blocks(len(counts), BLOCK_COUNTS):
        n += np.bincount(np.minimum(counts[part], 5), minlength=6)
    return n


class NoDiscountsError(ValueError):
    """Raised if the counts of counts of an order give no discounts."""


def find_discounts(
    n: Sequence[Counts],
    kind: Literal["modified", "plain"],
    *,
    interpolate: Sequence[bool],
    fallback: tuple[float, float, float] | None = None,
    warned_from: int = 1,
) -> Floats:
    """Return the discounts (order, 3) of all orders, of their counts of counts (6,).

    An order whose counts of counts give none has those of `fallback`. None uses
    `FALLBACKS` and warns once for all orders from `warned_from` on.
    """
    default = FALLBACKS[kind]
    discounts, reasons = [], []
    for order, (of_order, is_mixed) in enumerate(zip(n, interpolate), 1):
        try:
            if kind == "plain":
                chosen = plain_discounts(of_order)
            else:
                chosen = modified_discounts(of_order, interpolate=is_mixed)
        except NoDiscountsError as error:
            chosen = default if fallback is None else fallback
            if order >= warned_from:
                reasons.append(f"the {order}-grams ({error})")
        discounts.append(chosen)
    if reasons and fallback is None:
        values: str = "{:g}, {:g} and {:g}".format(*default)
        setting: float | tuple[float, ...] = default
        if kind == "plain":
            values, setting = f"{default[0]:g}", default[0]
        message = ParameterMessage(
            "Kneser-Ney cannot estimate the discounts of {0}: it uses {1} instead. "
            "Small texts, documents that repeat or have weights, and vocabularies "
            "without rare words can cause this. To use these values without a warning, "
            "set {discount_fallback}.",
            ", ".join(reasons), values, discount_fallback=setting,
        )  # fmt: skip
        warn(message, UserWarning)
    return np.array(discounts)


def modified_discounts(
    n: Counts, *, interpolate: bool = True
) -> tuple[float, float, float]:
    """Return the three discounts of an order from its counts of counts `n` (6,).

    Equation (26) of Chen and Goodman (1999): ``Y = n1 / (n1 + 2 n2)`` and
    ``D_i = i - (i + 1) Y n_{i+1} / n_i``. If lower orders are interpolated, a discount
    may be the whole count, as D_3 is if n4 is 0. Raises NoDiscountsError if one of n1
    to n3 is 0 (or n4, without interpolation), or a discount is out of range.
    """
    if not n[1:4].all():
        raise NoDiscountsError(
            "{} of count 1, {} of count 2, {} of count 3".format(*n[1:4])
        )
    Y = n[1] / (n[1] + 2 * n[2])
    d1, d2, d3 = (float(i - (i + 1) * Y * n[i + 1] / n[i]) for i in (1, 2, 3))
    if not _in_range((d1, d2, d3), interpolate):
        raise NoDiscountsError(f"they come out as {d1:.3g}, {d2:.3g} and {d3:.3g}")
    return d1, d2, d3


def _in_range(discounts: Sequence[float], interpolate: bool) -> bool:
    """Whether discounts leave mass for unseen words, and for seen ones."""
    # Without interpolation, discounting the whole count would give seen words
    # probability 0.
    upper = (1, 2, 3) if interpolate else (1, 2, np.nextafter(3, 0))
    return all(0 < d <= highest for d, highest in zip(discounts, upper))


def plain_discounts(n: Counts) -> tuple[float, float, float]:
    """Return the single discount of an order, three times.

    ``D = n1 / (n1 + 2 n2)`` (Kneser and Ney 1995, after Ney, Essen and Kneser 1994).
    Raises NoDiscountsError if n1 or n2 is 0.
    """
    n1, n2 = int(n[1]), int(n[2])
    if not (n1 and n2):
        raise NoDiscountsError(f"{n1} of count 1, {n2} of count 2")
    discount = n1 / (n1 + 2 * n2)
    return discount, discount, discount


def check_fallback(
    fallback: Any, *, interpolate: bool
) -> tuple[float, float, float] | None:
    """Return the three discounts of `discount_fallback`, or None; raise ValueError."""
    if fallback is None:
        return None
    values = list(fallback) if np.ndim(fallback) == 1 else [fallback] * 3
    are_numbers = all(
        isinstance(d, Real) and not isinstance(d, (bool, np.bool_)) for d in values
    )
    if len(values) != 3 or not are_numbers or not _in_range(values, interpolate):
        raise ValueError(
            "discount_fallback must be None, a number above 0 and at most 1, or three "
            "numbers above 0 and at most 1, 2 and 3"
            f"{'' if interpolate else ' (below 3 without interpolation)'}, got "
            f"{fallback!r}."
        )
    d1, d2, d3 = map(float, values)
    return d1, d2, d3
