"""How well does the sample of held-out windows show what an epoch gained?

Trains the default of NeuralLM, with fewer units, on Brown, while the learning rate
falls linearly to 0 over --epochs. After each epoch it scores all windows of the
validation part, and looks at the sample that a fit would score. A row compares an
epoch with the one before: "gain" is the fall of the held-out loss in nats a token,
"spread" the standard deviation of the gains of single windows, and "error" the standard
error of the mean gain of a sample of the size that a fit takes. "missed by" is the
difference between the gain of the fit's sample and that of all windows. "loss spread"
is the standard deviation of the losses of single windows.

    python benchmarks/networks/held_out.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.table import parser, report
from nplm import Adam, NeuralLM
from nplm.datasets import fetch_brown

N_CONTEXT = 5
N_SCORED = 50_000  # evenly spread windows, which a fit scores after an epoch


def scored(epochs: int, **settings: Any) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """Yield the loss of the sample, and all log-probabilities, after each epoch."""
    train, valid, _ = fetch_brown().windows(N_CONTEXT)
    rng = np.random.default_rng(0)
    sample = np.linspace(0, len(valid[1]), N_SCORED, endpoint=False).astype(np.intp)
    lm = NeuralLM(solver=Adam("linear"), max_iter=epochs, **settings)
    trainer = lm.trainer(*train)
    for _ in range(epochs):
        trainer.train(rng.permutation(len(train[1])))
        log_probs = trainer.keep().log_prob(*valid)
        yield -log_probs[sample].mean(), log_probs


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--hidden", type=int, default=128)
    options.add_argument("--embedding-dim", type=int, default=64)
    options.add_argument("--epochs", type=int, default=4)
    args = options.parse_args()
    settings = {"n_hidden": args.hidden, "embedding_dim": args.embedding_dim}
    found = scored(args.epochs, random_state=0, **settings)
    rows = []
    for epoch, (before, after) in enumerate(pairwise(found), start=2):
        gains = after[1] - before[1]
        rows.append({
            "epoch": epoch, "held-out loss": float(-after[1].mean()),
            "loss spread": float(after[1].std()), "gain": float(gains.mean()),
            "spread": float(gains.std()),
            "error": float(gains.std() / np.sqrt(N_SCORED)),
            "missed by": float(abs(before[0] - after[0] - gains.mean())),
        })  # fmt: skip
    report(f"Gains of an epoch, by {N_SCORED:,} held-out windows", rows, args.json)


if __name__ == "__main__":
    main()
