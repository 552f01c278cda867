"""Networks of the paper's tables, those that were measured, and presets of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nplm.models.neural.network.solver_updates import AUTO_EPOCHS

# Sections 2 and 4.2: one example per update, and the schedule of section 4.
AS_IN_PAPER: dict[str, object] = {
    "dropout": 0.0, "loss": "exact", "solver": "sgd", "batch_size": 1,
    "solver__learning_rate": "invscaling", "learning_rate_init": 1e-3,
    "solver__learning_rate_decay": 1e-8, "n_iter_no_change": 3, "tol": 1e-4,
    "precision": "float32",
}  # fmt: skip
BROWN = AS_IN_PAPER | {"alpha": 1e-4, "max_iter": 20}
AP_NEWS = AS_IN_PAPER | {"alpha": 1e-5, "max_iter": 5}


def _shape(n: int, h: int, m: int, direct: bool) -> dict[str, object]:
    return {
        "order": n, "n_hidden": h, "embedding_dim": m, "output__direct": direct,
    }  # fmt: skip


# The networks of Table 1, and the one of Table 2.
NETWORKS: dict[str, dict[str, object]] = {
    "MLP1": BROWN | _shape(5, 50, 60, True),
    "MLP3": BROWN | _shape(5, 0, 60, True),
    "MLP5": BROWN | _shape(5, 50, 30, True),
    "MLP7": BROWN | _shape(3, 50, 30, True),
    "MLP9": BROWN | _shape(5, 100, 30, False),
    "AP": AP_NEWS | _shape(6, 60, 100, True),
}
MIXTURES = {f"MLP{i + 1}": f"MLP{i}" for i in (1, 3, 5, 7, 9)}

# A network with LSTM cells.
CELLS: dict[str, object] = {
    "order": 2, "n_memory": 128, "output__direct": True, "output__tied": True,
    "solver__beta_2": 0.99,
}  # fmt: skip


class Row(NamedTuple):
    """A network for a text and a time on one core."""

    words: float  # of the training text, in millions
    minutes: float  # of the fit
    embedding_dim: int
    n_hidden: int
    n_noise: int
    learning_rate_init: float
    alpha: float
    epochs: float  # passes over the text, which may be fewer than one
    perplexity: float  # of the validation part
    batch_size: int

    @property
    def speed(self) -> float:
        """Words of training a second, which depends on the network and the machine."""
        return 1e6 * self.words * self.epochs / (60 * self.minutes)

    @property
    def network(self) -> dict[str, Any]:
        """Parameters of `NeuralLM`, without dropout, loss, and schedule."""
        return CELLS | {
            "n_hidden": self.n_hidden, "embedding_dim": self.embedding_dim,
            "learning_rate_init": self.learning_rate_init, "alpha": self.alpha,
            "batch_size": self.batch_size,
        }  # fmt: skip

    @property
    def preset(self) -> dict[str, object]:
        """Parameters with the dropout and at least the default's epochs."""
        dropout = dropout_for(1e6 * self.words, self.epochs)
        return self.network | {
            "dropout": tuple(round(rate, 2) for rate in dropout),
            "solver__learning_rate": "linear",
            "max_iter": max(AUTO_EPOCHS, round(self.epochs)),
        }


# The rows that `AutoLM` chooses by, which ``benchmarks/peers/rules.py`` fits again to
# more measurements. The minutes are those of a core of an AMD EPYC (Zen 4) in bfloat16.
# The rows of the Penn Treebank (0.93 million words) from 3 minutes on and the last of
# Wiki (14 million) were measured there (docs/measured/peers.json,
# docs/built/decisions.rst). A Zen 3 (AVX2, float32) measured the shorter ones of the
# Penn Treebank: their times are multiplied by 0.72, the ratio of both machines' times
# for the network of 192 units. The other rows of Wiki are the best of 3 to 8 settings
# each on a Xeon with AMX, 16 side by side; their times are multiplied by 0.6.
TABLE = Path(__file__).with_name("rows.csv")
ROWS = [
    Row(*map(json.loads, line.split(",")))
    for line in TABLE.read_text("ascii").splitlines()[1:]
]
# Dropout of the features and of the projection by passes over a text of a million
# words, of the same networks of the Penn Treebank. That of the cells is 0.
DROPOUT = (
    (1.0, 0.0, 0.0), (2.75, 0.1, 0.05), (7.0, 0.2, 0.1), (16.7, 0.4, 0.3),
    (36.0, 0.5, 0.4),
)  # fmt: skip
# A text has this power of a pass for each time that it is smaller.
EPOCHS_POWER = 0.25


def equivalent(words: float) -> float:
    """Return how many passes over a million words a pass over a text counts for."""
    return (1e6 / words) ** EPOCHS_POWER


def dropout_for(words: float, epochs: float) -> tuple[float, float, float]:
    """Return the dropout of a network that passes over a text so often."""
    passes, inputs, projection = np.array(DROPOUT).T
    n = epochs * equivalent(words)
    rates = [np.interp(n, passes, column) for column in (inputs, projection)]
    return round(float(rates[0]), 3), 0.0, round(float(rates[1]), 3)


def _row(words: float, minutes: float) -> Row:
    return next(row for row in ROWS if (row.words, row.minutes) == (words, minutes))


PRESETS: dict[str, dict[str, object]] = {
    "default": {},
    # On 86 thousand words of Python's documentation it has 121.2 after 3.4 s, the
    # default 125.5 after 4.0, and a row of 256 units 131.1 after 7.6.
    "small": {
        "n_hidden": _row(2.0, 0.43).n_hidden,
        "embedding_dim": _row(2.0, 0.43).embedding_dim,
    },
    "memory": _row(0.93, 3.2).preset,
    "large_vocabulary": ROWS[-1].preset,
    "distant": {"order": 6, "n_distant": 128},
}


def paper_network(name: str) -> dict[str, Any]:
    """Return the parameters of a row of the tables, or raise ValueError."""
    if name in MIXTURES:
        raise ValueError(
            f"{name} is a mixture of {MIXTURES[name]} and the interpolated trigram "
            "with equal weights; fit both, and mix them with "
            "MixtureLM(weights='uniform')."
        )
    if name not in NETWORKS:
        raise ValueError(
            f"name={name!r} is not a network of the paper; choose among "
            f"{', '.join(NETWORKS)}."
        )
    return NETWORKS[name]


def preset_network(name: str) -> dict[str, object]:
    """Return the parameters of a preset, or raise ValueError."""
    if name not in PRESETS:
        raise ValueError(
            f"name={name!r} is not a preset; choose among {', '.join(PRESETS)}."
        )
    return PRESETS[name]
