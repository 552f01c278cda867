"""How the experiments score windows: in pieces, and telling how far they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nplm.base.estimators import LanguageModel
from nplm.datasets.corpus import Windows

__all__ = ["ReportStage", "log_prob", "perplexity"]

# report_stage(stage, done, total, note); stages come one after the other.
ReportStage = Callable[[str, float, float, str], None]
# Windows scored between two reports: an interrupt waits for no more.
SCORE_CHUNK = 20_000


def log_prob(
    model: LanguageModel, data: Windows, stage: str, progress: ReportStage
) -> NDArray[np.float64]:
    """Log-probabilities of next words, a report after each piece."""
    X, y = data
    found = np.empty(len(y))
    for start in range(0, len(y), SCORE_CHUNK):
        progress(stage, start, len(y), "")
        rows = slice(start, start + SCORE_CHUNK)
        found[rows] = model.log_prob(X[rows], y[rows])
    progress(stage, len(y), len(y), "")
    return found


def perplexity(log_prob: NDArray[np.float64]) -> float:
    """Give the perplexity of next words of these log-probabilities."""
    with np.errstate(over="ignore"):
        return float(np.exp(-log_prob.mean()))
