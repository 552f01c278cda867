"""Values of options: how they are written, and the error of a wrong one."""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from nplm.base.system import MIN_MEMORY_BYTES, memory_in_bytes
from nplm.cli._options import option
from nplm.models.ngrams.stages.discounts import check_fallback

# Longer n-grams do not repeat in a text; they only take memory and time.
MAX_ORDER = 32
POSITIVE, WHOLE = click.IntRange(min=1), click.IntRange(min=0)


class Real(click.FloatRange):
    """A number in a range. NaN, which click takes to be in every range, is in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert text to a number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail("NaN is not a number: give one.", param, ctx)
        return number


NOT_NEGATIVE = Real(min=0)
ABOVE_ZERO = Real(min=0, min_open=True)
SHARE = Real(0, 1, min_open=True)


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that `parse` reads from text; an error says what is `wanted`."""

    def __init__(self, name: str, parse: Callable[[str], object], wanted: str) -> None:
        self.name, self._parse, self._wanted = name, parse, wanted

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Convert text; a default is a value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError:
            self.fail(f"{value!r} must be {self._wanted}")


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def _share(text: str) -> float | tuple[float, ...]:
    shares = _numbers(text)
    if len(shares) not in (1, 3) or not all(0 <= share < 1 for share in shares):
        raise ValueError
    return shares[0] if len(shares) == 1 else tuple(shares)


def _decay(text: str) -> float | str:
    if text != "auto" and not 0 <= float(text) < np.inf:
        raise ValueError
    return text if text == "auto" else float(text)


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(map(int, text.split(",")))
    if min(counts) < 1:
        raise ValueError
    return counts


def _discounts(text: str) -> tuple[float, float, float] | None:
    numbers = _numbers(text)
    value = numbers if len(numbers) > 1 else numbers[0]
    return check_fallback(value, interpolate=True)


def _n_jobs(text: str) -> int:
    n = int(text)
    if n == 0:
        raise ValueError
    return n


def _units(text: str) -> int | tuple[int, ...]:
    # Imported here: the networks would slow the start of the commands.
    from nplm.models.neural.network.hidden import checked_sizes

    return checked_sizes([int(number) for number in text.split(",")])


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


DECAY = Parsed("float|auto", _decay, "a number from 0 on, or auto.")
SHARES = Parsed(
    "share",
    _share,
    "a number from 0 to below 1, or three, separated by commas, such as 0.1,0.2,0.1.",
)
SIZES = Parsed(
    "integer",
    _units,
    "a whole number from 0 on, or the numbers of hidden units and of those of each "
    "residual block, from 1 on, separated by commas, such as 400,800,800.",
)
COUNTS = Parsed(
    "counts",
    _counts,
    "whole numbers from 1 on, one per order, separated by commas, such as 1,1,2.",
)
DISCOUNTS = Parsed(
    "discounts",
    _discounts,
    "one number above 0 and at most 1, or three, above 0 and at most 1, 2 and 3, "
    "separated by commas, such as 0.5,1,1.5.",
)
MEMORY = Parsed(
    "size",
    memory_in_bytes,
    f"a number of bytes, at least {MIN_MEMORY_BYTES}, or a size such as 500M or 2G.",
)
N_JOBS = Parsed("integer", _n_jobs, "1 or more, or -1 for all cores.")
SETTING = Parsed("name=value", _setting, "NAME=VALUE, such as n_hidden=512.")


def weights_of(argument: str) -> Parsed:
    """Return the type of weights, one for each `argument`."""
    return Parsed(
        "w1,w2,...",
        _numbers,
        f"a number for each {argument}, separated by commas, such as 0.7,0.3.",
    )


def threads_option(default: int) -> click.Option:
    """Return the option of a command that trains with threads."""
    return option("--jobs n_jobs", N_JOBS, default, "Threads; -1 is all cores.")


SEED = option("--seed random_state", WHOLE, 0, "Random seed.")
AVAILABLE = (
    "three quarters of the memory that is available (of half of all memory where the "
    "system does not tell, as macOS)"
)


def memory_option(purpose: str, default: str = AVAILABLE) -> click.Option:
    """Return the option of a command that needs memory for a purpose."""
    return option("--memory", MEMORY, None,
        f"Memory to {purpose} (500M, 2G); the rest is done on disk. By default "
        f"{default}.")  # fmt: skip
