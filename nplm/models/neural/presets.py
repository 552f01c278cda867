"""Parameters of networks by name: those of the paper's tables, and presets."""

from __future__ import annotations

from typing import Any

__all__ = ["CELLS", "PRESETS", "paper_network", "preset_network"]

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

# A network with LSTM cells, as the preset "memory" and the rules of `AutoLM` have it.
CELLS: dict[str, object] = {
    "order": 2, "n_memory": 128, "output__direct": True, "output__tied": True,
    "batch_size": 1024, "solver__beta_2": 0.99,
}  # fmt: skip

PRESETS: dict[str, dict[str, object]] = {
    "small": {"n_hidden": 128, "embedding_dim": 64},
    "default": {},
    "large_vocabulary": {
        "order": 6, "n_hidden": 400, "embedding_dim": 128, "output__direct": True,
        "output__tied": True, "batch_size": 512,
    },
    "distant": {
        "order": 6, "n_hidden": 400, "embedding_dim": 128, "n_distant": 128,
    },
    # The row of the rules for three minutes of the Penn Treebank.
    "memory": CELLS | {
        "n_hidden": 256, "embedding_dim": 192, "learning_rate_init": 8e-3,
        "alpha": 0.1, "dropout": (0.2, 0.0, 0.1),
    },
}  # fmt: skip


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
