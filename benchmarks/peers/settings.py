"""The settings with which a search of run.py begins; --set changes them."""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

# The defaults of torch_models.Settings, also for short budgets.
LSTM: Settings = {"kind": "lstm"}
GPT: Settings = {"kind": "gpt", "layers": 2, "hidden": 1024, "length": 64}
# The preset "memory", with more noise samples; fewer features and less dropout for a
# minute, more for ten.
NETWORK: Settings = {
    "order": 2, "n_hidden": 256, "embedding_dim": 192, "n_memory": 128, "tied": True,
    "direct": True, "spelling": False, "loss": "importance", "n_noise": 1024,
    "solver": "adam", "beta_2": 0.99, "learning_rate": "linear",
    "learning_rate_init": 8e-3, "alpha": 0.1, "dropout": [0.2, 0.0, 0.1],
    "batch_size": 1024, "early_stopping": False, "max_iter": 3, "precision": "auto",
}  # fmt: skip

SETTINGS: dict[str, Settings] = {
    "lstm": LSTM, "gpt": GPT, "network": NETWORK, "default": {}, "kneser-ney": {},
    "door": {}, "door-network": {},
}  # fmt: skip
