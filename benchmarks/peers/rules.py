"""Measure the rows of the rules of AutoLM again: nplm/models/auto/rules.py.

For a text and minutes, it tries random settings of the network with the whole time, a
run a file in --folder, and prints the best as a row of the rules:

    python benchmarks/peers/rules.py ptb 1 3 --tries 8 --folder runs
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.table import file_name, kept, parser, report
from peers.run import MODELS, TEXTS

CHOICES: dict[str, list[Any]] = {
    "embedding_dim": [96, 128, 192, 256],
    "n_hidden": [128, 192, 256, 384, 512],
    "loss__n_noise": [512, 1024],
    "learning_rate_init": [4e-3, 6e-3, 8e-3, 1.2e-2],
    "alpha": [0.03, 0.1, 0.2],
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("text", choices=list(TEXTS))
    options.add_argument("minutes", nargs="+", type=float)
    options.add_argument("--tries", type=int, default=8)
    options.add_argument("--folder", type=Path, required=True, help="a file a run")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    corpus, best = TEXTS[args.text](), []
    for minutes in args.minutes:
        rows = []
        for seed in range(args.tries):
            random = np.random.default_rng(seed)
            settings = {
                name: values[random.integers(len(values))]
                for name, values in CHOICES.items()
            }
            name = file_name(f"rules-{args.text}-{minutes:g}-{seed}")
            measure = partial(MODELS["door-network"], corpus, settings, minutes)
            found = kept(args.folder, name, measure)
            rows.append({"minutes": minutes, **settings, **_figures(found)})
        best.append(min(rows, key=lambda row: row["valid"]))
    report("Rows of the rules", best, args.json)


def _figures(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("epochs", "valid", "test")}


if __name__ == "__main__":
    main()
