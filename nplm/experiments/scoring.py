"""Scores of windows, in pieces and with progress."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nplm.base.estimators import LanguageModel
from nplm.datasets.corpus import Windows

__all__ = ["ReportStage", "log_prob", "perplexity"]

# Called as report_stage(stage, done, total, note), one stage after the other.
ReportStage = Callable[[str, float, float, str], None]
# Windows scored between two reports, and so before an interrupt.
SCORE_CHUNK = 20_000


def log_prob(
    model: LanguageModel, data: Windows, stage: str, progress: ReportStage
) -> NDArray[np.float64]:
    """Return the log-probabilities of next words, with a report after each piece."""
    X, y = data
    found = np.empty(len(y))
    for start in range(0, len(y), SCORE_CHUNK):
        progress(stage, start, len(y), "")
        rows = slice(start, start + SCORE_CHUNK)
        found[rows] = model.log_prob(X[rows], y[rows])
    progress(stage, len(y), len(y), "")
    return found


def perplexity(log_prob: NDArray[np.float64]) -> float:
    """Return the perplexity of next words with these log-probabilities."""
    with np.errstate(over="ignore"):
        return float(np.exp(-log_prob.mean()))
