"""The rules of `AutoLM`: numbers, and the measurements that they were fitted to.

``benchmarks/peers/rules.py`` measures them again.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = [
    "MAX_TYPES",
    "N_SUBWORDS",
    "Row",
    "dropout_for",
    "most_epochs",
    "nearest_row",
]

# A text with more types is split into so many subwords.
MAX_TYPES, N_SUBWORDS = 100_000, 16_000


class Row(NamedTuple):
    """A network that was the best found for a text and a time on one core.

    - `words`: words of the training text, in millions
    - `minutes`: processor time of the fit
    - `epochs`: passes over the text, which may be fewer than one
    - `perplexity`: of the validation part
    - others: parameters of `NeuralLM`
    """

    words: float
    minutes: float
    n_hidden: int
    embedding_dim: int
    order: int
    n_noise: int
    learning_rate_init: float
    alpha: float
    batch_size: int
    epochs: float
    perplexity: float

    @property
    def speed(self) -> float:
        """Words of training a second, which depends on the network and the machine."""
        return 1e6 * self.words * self.epochs / (60 * self.minutes)

    @property
    def network(self) -> dict[str, Any]:
        """Parameters of `NeuralLM`, without the dropout, which follows the epochs."""
        return {
            "order": self.order, "n_hidden": self.n_hidden,
            "embedding_dim": self.embedding_dim, "n_memory": 0, "output__tied": True,
            "loss": "importance", "loss__n_noise": self.n_noise, "solver": "adam",
            "solver__epsilon": 1e-8, "solver__learning_rate": "linear",
            "learning_rate_init": self.learning_rate_init, "alpha": self.alpha,
            "batch_size": self.batch_size,
        }  # fmt: skip


# Measured by benchmarks/peers/run.py on a core of an AMD EPYC (Zen 4, AVX-512), those
# of 30 and 60 minutes on a Zen 3: the Penn Treebank, Wiki of 2 and of 14 million words.
# The best by the validation part of up to eight settings each.
ROWS = (
    Row(0.93, 1.0, 192, 128, 3, 512, 8e-3, 0.1, 512, 2, 117.7),
    Row(0.93, 3.0, 256, 160, 4, 512, 5e-3, 0.1, 512, 4, 100.9),
    Row(0.93, 11.2, 384, 192, 4, 512, 4e-3, 0.1, 512, 10, 89.9),
    Row(0.93, 30.2, 512, 256, 4, 512, 3e-3, 0.1, 512, 13, 85.2),
    Row(2.0, 0.6, 128, 96, 4, 512, 8e-3, 0.1, 1024, 1, 189.2),
    Row(2.0, 2.1, 192, 128, 4, 512, 6e-3, 0.1, 512, 2, 160.1),
    Row(2.0, 7.7, 384, 192, 4, 512, 4e-3, 0.1, 512, 3, 145.1),
    Row(14.0, 1.0, 112, 80, 4, 512, 1e-2, 0.05, 1024, 0.33, 160.3),
    Row(14.0, 2.9, 160, 112, 4, 512, 8e-3, 0.04, 1024, 0.54, 142.0),
    Row(14.0, 9.5, 256, 160, 4, 512, 6e-3, 0.03, 1024, 1, 116.1),
    Row(14.0, 62.1, 384, 192, 4, 512, 3e-3, 0.02, 512, 3, 89.3),
)
# Dropout by passes over a text of a million words: that of the rows above, and of the
# best networks of benchmarks/peers for other budgets.
DROPOUT = (
    (1.0, 0.0), (2.0, 0.05), (4.0, 0.1), (6.0, 0.15), (10.0, 0.2), (13.0, 0.25),
    (25.0, 0.35),
)  # fmt: skip
# A text has this power of a pass for each time that it is smaller.
EPOCHS_POWER = 0.25
# A network passes over a text at most so often, in terms of `DROPOUT`.
MOST_EPOCHS = 25.0
# Mini-batches of a pass, at least, and tokens of one.
MIN_UPDATES, MIN_BATCH = 500, 64
# The share of a distance in words, beside one in minutes, in the choice of a row.
WORDS_SHARE = 0.5


def nearest_row(words: float, minutes: float) -> Row:
    """Return the row nearest to a text and a time, on the machine of the rows."""

    def distance(row: Row) -> float:
        of_words = WORDS_SHARE * math.log(words / (1e6 * row.words))
        return math.hypot(math.log(minutes / row.minutes), of_words)

    return min(ROWS, key=distance)


def _equivalent(words: float) -> float:
    """Return how many passes over a million words a pass over a text counts for."""
    return (1e6 / words) ** EPOCHS_POWER


def batch_size_for(words: float, batch_size: int) -> int:
    """Return a batch size, a power of 2, with which a small text has many updates."""
    size = 2 ** int(math.log2(max(words / MIN_UPDATES, MIN_BATCH)))
    return min(batch_size, size)


def most_epochs(words: float) -> float:
    """Return the number of passes over a text after which it teaches no more."""
    return MOST_EPOCHS / _equivalent(words)


def dropout_for(words: float, epochs: float) -> float:
    """Return the dropout of a network that passes over a text so often."""
    passes = epochs * _equivalent(words)
    (n, rate), *further = DROPOUT
    for more, higher in further:
        if passes <= more:
            share = max(0.0, passes - n) / (more - n)
            return round(rate + share * (higher - rate), 3)
        n, rate = more, higher
    return rate


def gain_of_twice(words: float, minutes: float) -> float:
    """Return by which share twice the minutes would lower the perplexity.

    It is 0 beyond the rows of the nearest text.
    """
    nearest = min(
        (row.words for row in ROWS), key=lambda n: abs(math.log(1e6 * n / words))
    )
    rows = sorted((r for r in ROWS if r.words == nearest), key=lambda row: row.minutes)
    for row, longer in pairwise(rows):
        if minutes < longer.minutes:
            doublings = math.log2(longer.minutes / row.minutes)
            return 1 - (longer.perplexity / row.perplexity) ** (1 / doublings)
    return 0.0
