"""Cases of a test: precisions on each tier, and few cases of many factors."""

import tracemalloc
from collections import Counter
from itertools import combinations

import pytest

from nplm import available_tiers
from nplm.models.neural.tiers import kernel_tier

# Small texts have no valid discounts; the fall-back has tests of its own.
small_text = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")


def on_every_tier(*precisions):
    """Return the precisions, each with a tier that this processor can run."""
    return [f"{name}, {tier}" for name in precisions for tier in available_tiers(name)]


FULL_PRECISIONS = on_every_tier("float32", "float64")
PRECISIONS = on_every_tier("float32", "float64", "bfloat16")


def peak_of(*calls):
    """Return the bytes that calls allocate at most, as NumPy and Python count them."""
    tracemalloc.start()
    try:
        for call in calls:
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bfloat16_is_here():
    """Return whether the tier in use multiplies bfloat16; most processors cannot."""
    try:
        kernel_tier("bfloat16")
    except ValueError:
        return False
    return True


def pairwise(factors, where=lambda **arguments: True):
    """Return few test cases in which any two values of two arguments occur together.

    They find the faults of one value or of two together (a covering array of strength
    2, chosen greedily). `factors` has the values of each argument; those of "a, b" are
    pairs, which occur with any third value. `where` returns whether arguments are a
    valid case.
    """

    def arguments(row):
        named = {}
        for names, value in row.items():
            several = ", " in names
            named |= zip(names.split(", "), value if several else [value])
        return named

    def pairs(row):
        return combinations(row.items(), 2)

    left = {}  # an ordered set
    for (one, values), (other, others) in combinations(factors.items(), 2):
        for a in values:
            for b in others:
                if where(**arguments({one: a, other: b})):
                    left[(one, a), (other, b)] = True
    rows = []
    used = Counter()  # breaks ties between values
    while left:
        chosen = dict(next(iter(left)))
        for name, values in factors.items():
            if name in chosen:
                continue
            fitting = [v for v in values if where(**arguments(chosen | {name: v}))]
            chosen[name] = max(
                fitting,
                key=lambda v: (
                    sum(
                        ((k, a), (name, v)) in left or ((name, v), (k, a)) in left
                        for k, a in chosen.items()
                    ),
                    -sum(used[k, a, name, v] for k, a in chosen.items()),
                ),
            )
        row = {name: chosen[name] for name in factors}
        for (one, a), (other, b) in pairs(row):
            left.pop(((one, a), (other, b)), None)
            used[one, a, other, b] += 1
            used[other, b, one, a] += 1
        rows.append(arguments(row))
    return pytest.mark.parametrize(
        list(rows[0]),
        [tuple(row.values()) for row in rows],
        ids=["-".join(map(str, row.values())) for row in rows],
        indirect=[name for name in rows[0] if name in ("precision", "tier")],
    )
