"""The rules of `AutoLM`: which of the measured networks a text and a time have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nplm.models.neural.presets import ROWS, Row, equivalent

# A text with more types is split into so many subwords.
MAX_TYPES, N_SUBWORDS = 100_000, 16_000
# A network passes over a text at most so often, in terms of `DROPOUT`.
MOST_EPOCHS = 36.0
# A text has features of spelling above so many types for each root of a word. After 4
# or 5 epochs of Brown (18) the network has 160.1 with them, and 176.2 without (valid);
# on the Penn Treebank (10) they cost 2 to 4%.
SPELLING_TYPES = 13
# Mini-batches of a pass, at least, and tokens of one.
MIN_UPDATES, MIN_BATCH = 400, 64
# The logarithm of what a text may be larger or smaller than those of the rows, and the
# ratio of a time to those of the rows, to say what more time gives.
SAME_TEXT, MARGIN = 0.25, 1.3


def nearest_row(words: float, minutes: float, rows: Sequence[Row] = ROWS) -> Row:
    """Return the row nearest to a text and a time, on the machine of the rows."""

    def distance(row: Row) -> float:
        of_words = math.log(words / (1e6 * row.words))
        return math.hypot(math.log(minutes / row.minutes), of_words)

    return min(rows, key=distance)


def network_of_row(row: Row) -> dict[str, Any]:
    """Return parameters of `NeuralLM`, without the dropout, which follows the epochs.

    The schedule is that of the time.
    """
    return row.network | {
        "loss": "importance", "loss__n_noise": row.n_noise, "solver": "adam",
        "solver__epsilon": 1e-8, "solver__learning_rate": "linear",
    }  # fmt: skip


def has_rare_words(words: float, n_types: int) -> bool:
    """Return whether features of spelling pay: many words of a text are rare."""
    return n_types > SPELLING_TYPES * math.sqrt(words)


def batch_size_for(words: float, most: int) -> int:
    """Return a batch size, a power of 2, with which a small text has many updates."""
    size: int = 2 ** int(math.log2(max(words / MIN_UPDATES, MIN_BATCH)))
    return min(most, size)


def most_epochs(words: float) -> float:
    """Return the number of passes over a text after which it teaches no more."""
    return MOST_EPOCHS / equivalent(words)


def gain_of_twice(
    words: float, n_types: int, seen: float, network: Mapping[str, object]
) -> float | None:
    """Return by which share twice the training would lower a network's perplexity.

    It is that of the rows of smaller and of larger texts, interpolated. None where the
    rows do not tell: of texts with many rare words, smaller and larger texts than
    theirs, other networks and longer times. A mixture gains as much times the weight of
    the network.

    - `words`, `n_types`: of the text
    - `seen`: words of training, over all passes
    """
    sizes = [network[name] for name in ("n_hidden", "embedding_dim")]
    same = [row for row in ROWS if [row.n_hidden, row.embedding_dim] == sizes]
    if not same or has_rare_words(words, n_types):
        return None
    size = math.log(words / 1e6)
    measured = min(same, key=lambda row: abs(size - math.log(row.words)))
    minutes = seen / measured.speed / 60  # on the machine of the rows
    gains: dict[float, float] = {}  # the logarithm of the words: that of the perplexity
    for text in sorted({row.words for row in ROWS}):
        rows = [row for row in ROWS if row.words == text]
        times = [row.minutes for row in rows]
        if times[0] / MARGIN <= minutes <= times[-1] / 2 * MARGIN:
            at = np.log([max(minutes, times[0]), min(2 * minutes, times[-1])])
            losses = np.log([row.perplexity for row in rows])
            now, then = np.interp(at, np.log(times), losses)
            gains[math.log(text)] = (now - then) * math.log(2) / (at[1] - at[0])
    if not gains or not min(gains) - SAME_TEXT <= size <= max(gains) + SAME_TEXT:
        return None
    return float(1 - np.exp(-np.interp(size, list(gains), list(gains.values()))))
