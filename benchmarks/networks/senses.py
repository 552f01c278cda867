"""Do several senses of a word pay in NeuralLM (section 5.2, item 6)?

NeuralLM(n_senses=2) in MLP9's shape on Brown, beside networks of one sense with as many
features and with as many parameters; trained on drawn words, a few seeds each.
Perplexities are exact, of every fifth window. What was tried before any was built is in
inputs.py.

--rows is a folder that keeps the rows, a file each; rows that it has are not measured
again. --page writes docs/measured/senses.inc.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import paper_lm
from common.table import Rows, conditions, kept, list_table, parser, report
from nplm.datasets import Corpus, fetch_brown

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "senses.inc"
KINDS: dict[str, dict[str, Any]] = {
    "one sense, m = 30": {},
    "one sense, m = 43": {"embedding_dim": 43},
    "2 senses, m = 30": {"n_senses": 2},
}
EVERY = 5  # of the held-out windows


def measure(
    settings: dict[str, Any], seed: int, epochs: int, corpus: Corpus
) -> dict[str, Any]:
    train, *held_out = corpus.windows(4)
    lm = paper_lm(
        order=5, n_words=corpus.n_words, loss="importance", n_noise=128,
        batch_size=128, solver="adam", learning_rate="linear", learning_rate_init=2e-3,
        max_iter=epochs, random_state=seed, **settings,
    )  # fmt: skip
    trainer, rng = lm.trainer(*train), np.random.default_rng(seed)
    started = time.process_time()
    for _ in range(epochs):
        trainer.train(rng.permutation(len(train[1])))
    seconds = time.process_time() - started
    fitted = trainer.keep()
    valid, test = (fitted.perplexity(X[::EVERY], y[::EVERY]) for X, y in held_out)
    return {
        "seed": seed, "parameters": fitted.n_parameters_, "valid": valid, "test": test,
        "CPU s": seconds,
    }  # fmt: skip


def page(rows: Rows) -> str:
    lines = [
        [row["x"], str(row["seed"]), f"{row['parameters'] / 1e6:.2f} million"]
        + [f"{row[part]:.1f}" for part in ("valid", "test", "CPU s")]
        for row in rows
    ]
    header = ["x", "seed", "parameters", "valid", "test", "CPU s of training"]
    return list_table("", header, lines) + "\n" + conditions(rows) + "\n"


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--seeds", type=int, default=3, help="how many")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    args.rows.mkdir(exist_ok=True)
    corpus = fetch_brown()
    rows = [
        {"x": name} | kept(
            args.rows, f"senses, {args.epochs} epochs, {seed}, {name}",
            partial(measure, settings, seed, args.epochs, corpus),
        )
        for name, settings in KINDS.items()
        for seed in range(args.seeds)
    ]  # fmt: skip
    report("Senses of words", rows, args.json)
    if args.page:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
