"""The settings with which a search of peers.py begins; --set changes them."""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

# Those of torch_models.Settings are short budgets' too.
LSTM: Settings = {"kind": "lstm"}
GPT: Settings = {"kind": "gpt", "layers": 2, "hidden": 1024, "length": 64}
# The network of `nplm compare`, with a linear path.
NETWORK: Settings = {
    "order": 6, "n_hidden": 160, "embedding_dim": 96, "n_distant": 48, "tied": True,
    "direct": True, "spelling": True, "loss": "importance", "n_noise": 512,
    "solver": "adam", "epsilon": 1e-8, "learning_rate": "linear",
    "learning_rate_init": 8e-3, "alpha": 0.3, "dropout": 0.03, "batch_size": 1024,
    "early_stopping": False, "max_iter": 2,
}  # fmt: skip

SETTINGS: dict[str, Settings] = {
    "lstm": LSTM, "gpt": GPT, "network": NETWORK, "default": {}, "kneser-ney": {},
}  # fmt: skip
