"""Scores of texts by any model, by functions that need no scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nplm.base.array_types import Floats
from nplm.base.atomic import read_at_once
from nplm.base.blocks import BLOCK_WINDOWS, Texts, blocks
from nplm.base.progress import bar


def perplexity(log_prob: float, n: int) -> float:
    """Return the perplexity of `n` tokens of a natural-log probability; NaN of none."""
    return float(perplexities(log_prob, n))


def perplexities(log_prob: ArrayLike, n: ArrayLike) -> Floats:
    """Return `perplexity` of each of some texts."""
    with np.errstate(over="ignore"):
        each: Floats = np.exp(np.negative(log_prob) / np.where(n, n, np.nan))
    return each


def reads_texts(estimator: object) -> bool:
    """Return whether a state of an estimator, not frozen, goes on within a text."""
    # A frozen one has the attributes of the estimator in it, but its class has not.
    if not hasattr(type(estimator), "reads_texts"):
        return False
    return getattr(estimator, "reads_texts", False)


def context_of_texts(model: Any, least: int = 1) -> int:
    """Return the words of context before the first token of a text to be scored."""
    if hasattr(model, "n_context_of_texts"):
        return max(model.n_context_of_texts(), least)
    return model.n_features_in_


def shown_blocks(name: str, scores: Floats, size: int) -> Iterator[slice]:
    """Yield blocks of scores to be filled in; the stage of a fit shows how many are."""
    with bar(0, name, "{:.2f} nats".format) as shown:
        for part in blocks(len(scores), size):
            yield part
            if shown is not None:
                shown(part.stop, len(scores), -float(scores[: part.stop].mean()))


def texts_log_prob(model: Any, texts: Texts) -> Floats:
    """Return the log-probability of the tokens of texts by any model of windows."""
    if hasattr(model, "log_prob_of_texts"):
        return _texts_log_prob(model, texts)
    out, X, y = np.empty(len(texts)), texts.X, texts.y
    X = X[:, X.shape[1] - model.n_features_in_ :]
    for tokens in shown_blocks(type(model).__name__, out, BLOCK_WINDOWS):
        rows = texts.rows(tokens)
        out[tokens] = model.log_prob(X[rows], y[rows])
    return out


@read_at_once
def _texts_log_prob(model: Any, texts: Texts) -> Floats:
    return model.log_prob_of_texts(texts)
