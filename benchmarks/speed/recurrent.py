"""How fast does the preset "memory" train and score, beside PyTorch's LSTM?

Both train on the first words of the Penn Treebank as one text, 1,024 words an update in
32 columns, with tied output units and 1,024 noise samples, on one core. Words a second
are those of the updates, by processor time. Both then score 20,000 words of the valid
part in 16 columns by the whole softmax. With --words 0 they train for an epoch, and
score all of it: its perplexity says whether both learn alike. Needs the Penn Treebank
in NPLM_DATA, and PyTorch for its rows. ATEN_CPU_CAPABILITY limits PyTorch to a tier, as
NPLM_TIER limits nplm.

With --threads it is nplm on one thread and on two instead, with --ranks on the
processes of MPI, by the clock:

    python benchmarks/speed/recurrent.py --threads --words 300000 --repeats 2
    mpiexec -n 2 python -m mpi4py benchmarks/speed/recurrent.py --ranks --words 300000
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

from common.table import Rows, parser, report
from nplm import Importance, NeuralLM, available_tiers, windows
from nplm.datasets import fetch_ptb

try:
    from peers.torch_models import Network
except ImportError:
    Network = None

SIZES = (128, 256), (256, 256), (256, 512)  # features of a word, hidden units
N_COLUMNS = 16  # in which both score
Ids = NDArray[np.int32]


class Measured(NamedTuple):
    """Words a second in training and scoring, and the perplexity of what was scored."""

    trained: float
    scored: float
    perplexity: float


def scored(log_prob: Callable[[], NDArray[np.float64]]) -> tuple[float, float]:
    """Words a second of a function that scores them, and their perplexity."""
    begun = time.process_time()
    log_p = log_prob()
    seconds = time.process_time() - begun
    return len(log_p) / seconds, float(np.exp(-log_p.mean()))


def nplm_fit(
    m: int, h: int, precision: str, train: Ids, valid: Ids,
    fit: Callable[..., Any] = NeuralLM.fit,
    clock: Callable[[], float] = time.process_time, **params: Any,
) -> Measured:  # fmt: skip
    lm = NeuralLM.preset(
        "memory", n_words=int(max(train.max(), valid.max())) + 1, embedding_dim=m,
        n_hidden=h, precision=precision, max_iter=1, early_stopping=False,
        loss=Importance(n_noise=1024), random_state=0, **params,
    )  # fmt: skip
    updates: list[tuple[float, float]] = []

    def note(done: float, total: float, loss: float) -> None:
        updates.append((done, clock()))

    fit(lm, *windows(train, 128), progress=note)
    if not updates:  # a rank without the display
        return Measured(0.0, 0.0, np.nan)
    (first, begun), (last, ended) = updates[0], updates[-1]
    speed = (last - first) / (ended - begun)
    return Measured(
        speed, *scored(lambda: lm.log_prob_stream(valid, n_columns=N_COLUMNS))
    )


def torch_fit(
    m: int, h: int, precision: str, train: Ids, valid: Ids, epoch: bool
) -> Measured:
    settings: dict[str, Any] = dict(
        kind="lstm", features=m, hidden=h, batch=32, length=32, noise=1024,
        bfloat16=precision == "bfloat16",
    )  # fmt: skip
    n_words = int(max(train.max(), valid.max())) + 1
    seconds = 4.0
    network = Network(n_words, settings).fit(train, seconds)
    if epoch:
        seconds = len(train) * seconds / network.seen
        network = Network(n_words, settings).fit(train, seconds)
    speed = network.seen / seconds
    return Measured(speed, *scored(lambda: network.log_prob(valid, train[-1000:])))


def ways(args: Any) -> dict[str, Callable[..., Measured]]:
    """What is compared: nplm and PyTorch, or threads or ranks of nplm."""
    by_clock = partial(nplm_fit, clock=time.perf_counter)
    if args.ranks:
        from mpi4py import MPI

        from nplm import mpi

        return {f"{MPI.COMM_WORLD.size} ranks": partial(by_clock, fit=mpi.fit)}
    if args.threads:
        return {
            "1 thread": by_clock, "2, sync": partial(by_clock, n_jobs=2),
            "2, async": partial(by_clock, n_jobs=2, parallel="async"),
        }  # fmt: skip
    if Network is None:
        return {"nplm": nplm_fit}
    return {"nplm": nplm_fit, "PyTorch": partial(torch_fit, epoch=not args.words)}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--words", type=int, default=100_000, help="0 is an epoch")
    arguments.add_argument("--repeats", type=int, default=1)
    arguments.add_argument("--threads", action="store_true", help="one beside two")
    arguments.add_argument("--ranks", action="store_true", help="under mpiexec")
    args = arguments.parse_args()
    corpus, compared = fetch_ptb(), ways(args)
    train, valid = corpus.train, corpus.valid
    if args.words:
        train, valid = train[: args.words], valid[:20_000]
    precisions = ["float32", "bfloat16"]
    tiers = available_tiers("bfloat16")
    if os.environ.get("NPLM_TIER", tiers[0]) not in set(tiers) - {"plain"}:
        precisions.remove("bfloat16")
    rows: Rows = []
    for (m, h), precision in product(SIZES, precisions):
        best = dict.fromkeys(compared, Measured(0.0, 0.0, np.nan))
        for _ in range(args.repeats):  # in turn: other programs share the machine
            for name, fit in compared.items():
                one, other = best[name], fit(m, h, precision, train, valid)
                best[name] = Measured(
                    max(one.trained, other.trained), max(one.scored, other.scored),
                    other.perplexity,
                )  # fmt: skip
        row: dict[str, Any] = {"features, hidden": f"{m}, {h}", "precision": precision}
        for name, (speed, scoring, perplexity) in best.items():
            row |= {f"{name}, words/s": round(speed)}
            row |= {f"{name}, scored/s": round(scoring)}
            if not args.words:
                row |= {f"{name}, valid": perplexity}
        if "PyTorch" in best:
            row["ratio"] = best["nplm"].trained / best["PyTorch"].trained
            row["scoring"] = best["nplm"].scored / best["PyTorch"].scored
        rows.append(row)
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        report("Training and scoring of a recurrent network", rows, args.json)


if __name__ == "__main__":
    main()
