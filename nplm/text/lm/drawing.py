"""Sampling of next words from a predicted distribution."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from nplm.base.array_types import Floats, Ids
from nplm.base.estimators.bases import Whole
from nplm.base.exceptions import parameter_error

DRAWING: dict[str, list[object]] = {
    "n": [Whole(1), None],
    "min_words": [Whole(0)],
    "max_words": [Whole(0)],
    "temperature": [Interval(Real, 0, None, closed="neither")],
    "top_k": [Whole(1), None],
    "top_p": [Interval(Real, 0, 1, closed="right"), None],
}


def check_drawing(**params: Any) -> None:
    """Raise an error unless the parameters of `TextLM.generate` are in range."""
    validate_parameter_constraints(
        {name: DRAWING[name] for name in params}, params, "generate"
    )
    if params["min_words"] > params["max_words"]:
        raise parameter_error(
            "{min_words} is more than {max_words}: lower it, or raise "
            "{max_words:max_words}.", **params,
        )  # fmt: skip


def without(proba: Floats, excluded: Ids) -> Floats:
    """Exclude words from distributions, the rows of `proba`, and renormalise them.

    Raises ValueError if no word with a positive probability is left.
    """
    if len(excluded) == 0:
        return proba
    proba = proba.copy()
    proba[:, excluded] = 0
    total = proba.sum(axis=1, keepdims=True)
    if not total.all():
        raise ValueError(
            f"{len(excluded)} words are excluded (among them <unk>, unless "
            "unknown=True, and the end of a text, until it has min_words), and no "
            "other has any probability here: exclude fewer."
        )
    return proba / total


def most_probable(proba: NDArray[Any], k: int, excluded: Ids) -> tuple[Ids, Floats]:
    """Return the `k` most probable words, or fewer, and renormalised probabilities."""
    [proba] = without(proba.astype(np.float64, copy=False), excluded)
    best = np.argsort(-proba, kind="stable")[: min(k, len(proba) - len(excluded))]
    return best.astype(np.int32), proba[best]


def sharpened(
    proba: Floats,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Floats:
    """Apply the parameters of `TextLM.generate` to distributions, the rows of `proba`.

    Of words with equal probabilities, `top_k` keeps those with lower ids.
    """
    # Relative to the largest, so that a low temperature cannot underflow.
    proba = (proba / proba.max(axis=1, keepdims=True)) ** (1 / temperature)
    proba /= proba.sum(axis=1, keepdims=True)
    if top_k is None and top_p is None:
        return proba
    ranked = np.argsort(-proba, axis=1, kind="stable")
    kept = np.take_along_axis(proba, ranked, axis=1)
    if top_k is not None:
        kept[:, top_k:] = 0
    if top_p is not None:
        share = np.cumsum(kept / kept.sum(axis=1, keepdims=True), axis=1)
        # Keep a word while the more probable ones sum to less than top_p.
        kept[:, 1:][share[:, :-1] >= top_p] = 0
    np.put_along_axis(proba, ranked, kept, axis=1)
    return proba / proba.sum(axis=1, keepdims=True)


def drawn(proba: Floats, random: Any) -> Ids:
    """Draw a word from each distribution, a row, with one random number."""
    cdf = np.cumsum(proba, axis=1)
    # Rounding must not reach the sum: the last words may have no probability.
    quantile = random.random_sample(len(proba)) * cdf[:, -1]
    quantile = np.minimum(quantile, np.nextafter(cdf[:, -1], 0))
    return (cdf <= quantile[:, None]).sum(axis=1, dtype=np.int32)
