"""The rules of `AutoLM`: numbers, and the measurements that they were fitted to.

``benchmarks/peers/run.py TEXT door-network MINUTES --set NAME=VALUE`` measures one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nplm.models.neural.presets import CELLS

__all__ = [
    "MAX_TYPES",
    "N_SUBWORDS",
    "Row",
    "dropout_for",
    "gain_of_twice",
    "most_epochs",
    "nearest_row",
]

# A text with more types is split into so many subwords.
MAX_TYPES, N_SUBWORDS = 100_000, 16_000


class Row(NamedTuple):
    """A network for a text and a time on one core.

    - `words`: words of the training text, in millions
    - `minutes`: time of the fit
    - `perplexity`: of the validation part
    - `epochs`: passes over the text, which may be fewer than one
    - others: parameters of `NeuralLM`
    """

    words: float
    minutes: float
    embedding_dim: int
    n_hidden: int
    n_noise: int
    learning_rate_init: float
    alpha: float
    epochs: float
    perplexity: float
    batch_size: int = 1024

    @property
    def speed(self) -> float:
        """Words of training a second, which depends on the network and the machine."""
        return 1e6 * self.words * self.epochs / (60 * self.minutes)

    @property
    def network(self) -> dict[str, Any]:
        """Parameters of `NeuralLM`, without the dropout, which follows the epochs."""
        return CELLS | {
            "n_hidden": self.n_hidden, "embedding_dim": self.embedding_dim,
            "loss": "importance", "loss__n_noise": self.n_noise, "solver": "adam",
            "solver__epsilon": 1e-8, "solver__learning_rate": "linear",
            "learning_rate_init": self.learning_rate_init, "alpha": self.alpha,
            "batch_size": self.batch_size,
        }  # fmt: skip


# The minutes are those of a core of an AMD EPYC (Zen 4) in bfloat16. Three rows of the
# Penn Treebank (0.93 million words) and the last of Wiki (14 million) were measured
# there (docs/measured/peers.json); that of 10 minutes is the best of 33 random settings
# of the same network in PyTorch, with the whole softmax, whose time was computed from
# its sizes. The other rows of Wiki are the best of 3 to 8 settings each on a Xeon with
# AMX, 16 side by side; their times are multiplied by 0.6, the ratio of both machines'
# times for one of them.
ROWS = (
    Row(0.93, 1.0, 128, 256, 1024, 1.2e-2, 0.03, 2.75, 94.6),
    Row(0.93, 3.2, 192, 256, 1024, 8e-3, 0.1, 7.0, 82.9),
    Row(0.93, 10.0, 192, 256, 1024, 1.2e-2, 0.1, 16.7, 79.4, 2048),
    Row(0.93, 25.6, 256, 384, 1024, 1.2e-2, 0.1, 36.0, 74.8, 2048),
    Row(2.0, 0.43, 96, 192, 512, 1.2e-2, 0.05, 0.95, 160.6),
    Row(2.0, 1.4, 128, 256, 1024, 1.2e-2, 0.1, 1.8, 134.9),
    Row(2.0, 2.6, 192, 256, 1024, 8e-3, 0.1, 3.0, 121.8),
    Row(14.0, 0.47, 96, 192, 512, 1.2e-2, 0.03, 0.136, 156.8),
    Row(14.0, 1.4, 128, 256, 512, 1.2e-2, 0.03, 0.307, 114.8),
    Row(14.0, 2.4, 192, 256, 1024, 1.2e-2, 0.03, 0.379, 102.0),
    Row(14.0, 10.9, 256, 384, 1024, 8e-3, 0.03, 1.0, 75.5),
)
# Dropout of the features and of the projection by passes over a text of a million
# words, of the same networks of the Penn Treebank. That of the cells is 0.
DROPOUT = (
    (1.0, 0.0, 0.0), (2.75, 0.1, 0.05), (7.0, 0.2, 0.1), (16.7, 0.4, 0.3),
    (36.0, 0.5, 0.4),
)  # fmt: skip
# A text has this power of a pass for each time that it is smaller.
EPOCHS_POWER = 0.25
# A network passes over a text at most so often, in terms of `DROPOUT`.
MOST_EPOCHS = 36.0
# A text has features of spelling above so many types for each root of a word. After 4
# or 5 epochs of Brown (18) the network has 160.1 with them, and 176.2 without (valid);
# on the Penn Treebank (10) they cost 2 to 4%.
SPELLING_TYPES = 13
# Mini-batches of a pass, at least, and tokens of one.
MIN_UPDATES, MIN_BATCH = 400, 64
# The logarithm of what a text may be larger or smaller than one of the rows, and the
# ratio of a time to those of the rows, to say what more time gives.
SAME_TEXT, MARGIN = 0.25, 1.3
# The share of a distance in words, beside one in minutes, in the choice of a row.
WORDS_SHARE = 1.0


def nearest_row(words: float, minutes: float, rows: Sequence[Row] = ROWS) -> Row:
    """Return the row nearest to a text and a time, on the machine of the rows."""

    def distance(row: Row) -> float:
        of_words = WORDS_SHARE * math.log(words / (1e6 * row.words))
        return math.hypot(math.log(minutes / row.minutes), of_words)

    return min(rows, key=distance)


def _equivalent(words: float) -> float:
    """Return how many passes over a million words a pass over a text counts for."""
    return (1e6 / words) ** EPOCHS_POWER


def has_rare_words(words: float, n_types: int) -> bool:
    """Return whether features of spelling pay: many words of a text are rare."""
    return n_types > SPELLING_TYPES * math.sqrt(words)


def batch_size_for(words: float, most: int) -> int:
    """Return a batch size, a power of 2, with which a small text has many updates."""
    size: int = 2 ** int(math.log2(max(words / MIN_UPDATES, MIN_BATCH)))
    return min(most, size)


def most_epochs(words: float) -> float:
    """Return the number of passes over a text after which it teaches no more."""
    return MOST_EPOCHS / _equivalent(words)


def dropout_for(words: float, epochs: float) -> tuple[float, float, float]:
    """Return the dropout of a network that passes over a text so often."""
    passes, inputs, projection = np.array(DROPOUT).T
    n = epochs * _equivalent(words)
    rates = [np.interp(n, passes, column) for column in (inputs, projection)]
    return round(float(rates[0]), 3), 0.0, round(float(rates[1]), 3)


def gain_of_twice(
    words: float, n_types: int, seen: float, network: Mapping[str, object]
) -> float:
    """Return by which share twice the training would lower a network's perplexity.

    It is 0 where the rows do not tell: of other texts, networks and times. A mixture
    gains as much times the weight of the network.

    - `words`, `n_types`: of the text
    - `seen`: words of training, over all passes
    """
    sizes = [network[name] for name in ("n_hidden", "embedding_dim")]
    same = [row for row in ROWS if [row.n_hidden, row.embedding_dim] == sizes]
    rows = [row for row in ROWS if abs(math.log(words / row.words / 1e6)) < SAME_TEXT]
    if not same or not rows or has_rare_words(words, n_types):
        return 0.0
    measured = min(same, key=lambda row: abs(math.log(words / row.words / 1e6)))
    minutes = seen / measured.speed / 60  # on the machine of the rows
    times = [row.minutes for row in rows]
    if not times[0] / MARGIN <= minutes <= times[-1] / 2 * MARGIN:
        return 0.0
    minutes = max(minutes, times[0])
    at = np.log([minutes, min(2 * minutes, times[-1])])
    now, then = np.interp(at, np.log(times), np.log([row.perplexity for row in rows]))
    return float(1 - np.exp(then - now))
