"""The networks of the paper's tables, and how it trained them (section 4.2)."""

from __future__ import annotations

from typing import Any

__all__ = ["settings_of"]

# Section 2, and section 4.2: one example an update, and the schedule of its section 4.
RECIPE: dict[str, Any] = {
    "tied": False, "dropout": 0.0, "loss": "exact", "solver": "sgd", "batch_size": 1,
    "learning_rate": "invscaling", "learning_rate_init": 1e-3,
    "learning_rate_decay": 1e-8, "n_iter_no_change": 3, "tol": 1e-4,
}  # fmt: skip
BROWN = RECIPE | {"alpha": 1e-4, "max_iter": 20}
AP_NEWS = RECIPE | {"alpha": 1e-5, "max_iter": 5}


def _shape(n: int, h: int, m: int, direct: bool) -> dict[str, Any]:
    return {"order": n, "n_hidden": h, "embedding_dim": m, "direct": direct}


# Table 1's, and Table 2's one network.
NETWORKS: dict[str, dict[str, Any]] = {
    "MLP1": BROWN | _shape(5, 50, 60, True),
    "MLP3": BROWN | _shape(5, 0, 60, True),
    "MLP5": BROWN | _shape(5, 50, 30, True),
    "MLP7": BROWN | _shape(3, 50, 30, True),
    "MLP9": BROWN | _shape(5, 100, 30, False),
    "AP": AP_NEWS | _shape(6, 60, 100, True),
}
MIXTURES = {f"MLP{i + 1}": f"MLP{i}" for i in (1, 3, 5, 7, 9)}


def settings_of(name: str) -> dict[str, Any]:
    """Give an estimator's parameters by the name of a row, or raise."""
    if name in MIXTURES:
        raise ValueError(
            f"{name} is {MIXTURES[name]} mixed with the interpolated trigram, half "
            f"each: make both, and mix them with MixtureLM(weights='uniform')."
        )
    if name not in NETWORKS:
        raise ValueError(
            f"name={name!r} is no network of the paper: choose among "
            f"{', '.join(NETWORKS)}."
        )
    return NETWORKS[name]
