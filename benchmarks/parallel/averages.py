"""What do processes that average their networks now and then lose to those that do not?

Each of two processes trains on mini-batches of its own, and after ``average_every`` of
them both take the mean of their networks (`nplm.mpi.fit`); 0 is the default, in which
they share each mini-batch. The network is the default but for its hidden units, and its
learning rate falls to 0 over the epochs. The perplexities are of the held-out part.

    mpiexec -n 2 python benchmarks/parallel/averages.py --every 0 8 32
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.table import Rows, parser, report
from nplm import Adam, NeuralLM, mpi
from nplm.datasets import fetch_brown, fetch_ptb

CORPORA = {"PTB": fetch_ptb, "Brown": fetch_brown}
N_CONTEXT = 5


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--corpora", nargs="+", choices=CORPORA, default=["PTB"])
    options.add_argument("--every", nargs="+", type=int, default=[0, 8, 32])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--hidden", type=int, default=128)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--tokens", type=int, help="of the training part, all if left")
    args = options.parse_args()
    rows: Rows = []
    for name in args.corpora:
        corpus = CORPORA[name]()
        (X, y), (X_val, y_val), _ = corpus.windows(N_CONTEXT)
        X, y = X[: args.tokens], y[: args.tokens]
        for every in args.every:
            found, began = [], time.perf_counter()
            for seed in args.seeds:
                lm = NeuralLM(
                    n_words=corpus.n_words, n_hidden=args.hidden, solver=Adam("linear"),
                    max_iter=args.epochs, early_stopping=False, random_state=seed,
                )  # fmt: skip
                lm = mpi.fit(lm, X, y, average_every=every or None)
                found.append(float(lm.perplexity(X_val, y_val)))
                if mpi.rank() == 0:
                    print(name, every, seed, found[-1], flush=True)
            rows.append({
                "corpus": name, "average_every": every,
                "perplexity": float(np.mean(found)), "least": min(found),
                "most": max(found), "minutes": (time.perf_counter() - began) / 60,
            })  # fmt: skip
    if mpi.rank() == 0:
        report("Two processes that average their networks", rows, args.json)


if __name__ == "__main__":
    main()
