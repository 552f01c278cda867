"""How do memory and time grow with the vocabulary and the network?

The paper's parameters grow linearly with |V| and with n (section 2), and so should
the memory of a fit and the time of an example. Each figure of memory is that of a
fresh process: what a fit has freed may stay with the process.
"""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import NETWORKS, Shape, random_windows, trainer
from common.process import fresh, resident, serve
from common.table import Rows, named, parser, report

MEGA = 1e6

# MLP9 of Table 1 with a vocabulary of 100,000, and what is changed of it.
BASE, BATCH = replace(NETWORKS["MLP9"], n_words=100_000), 32
CHANGES: list[dict[str, Any]] = [
    {},
    *({"n_words": v} for v in (10_000, 30_000, 300_000, 1_000_000)),
    *({"h": h} for h in (50, 200, 400)),
    *({"m": m} for m in (60, 120)),
    *({"direct": True, "n": n} for n in (3, 5, 9)),
    *({"K": K} for K in (1, 128, 512)),
    {"K": 128, "n_jobs": 2},
    {"K": 128, "n_jobs": 2, "parallel": "async"},
    {"held_out": True},
]
VOCABULARIES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


# -- memory ----------------------------------------------------------------------


def padded(n: int) -> int:
    """Numbers of a row of n, which fills whole vectors."""
    return -(-n // 16) * 16


def predicted(
    shape: Shape, K: int, n_jobs: int = 1, parallel: str = "sync",
    held_out: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """Bytes of the weights, a second time with held-out data, and of the scratch."""
    outputs = shape.n_words * padded(shape.width)
    weights = 4 * (outputs + shape.n_words * shape.m + shape.h * (shape.inputs + 1))
    scratch = 4 * shape.n_words * (1 if K == 1 else padded(K))
    # Threads that share the output units share the scratch too.
    return weights * (1 + held_out), scratch * (n_jobs if parallel == "async" else 1)


def peak_of_a_fit(
    shape: dict[str, Any], K: int, n_jobs: int = 1, parallel: str = "sync",
    held_out: bool = False,
) -> dict[str, Any]:  # fmt: skip
    large = Shape(**shape)
    small = replace(large, n_words=1000)
    X, y = random_windows(2 * K * n_jobs, small)
    val = dict(X_val=X[:50], y_val=y[:50]) if held_out else {}
    settings = dict(
        batch_size=K, n_jobs=n_jobs, parallel=parallel, max_iter=3 if held_out else 1
    )
    # A first fit loads modules, whose memory is not to count for the second.
    small.estimator(**settings).fit(X, y, **val)
    before = resident("VmRSS")
    large.estimator(**settings).fit(X, y, **val)
    return {"peak": resident("VmHWM") - before}


def memory() -> Rows:
    rows = []
    for change in CHANGES:
        shape = {k: change.get(k, v) for k, v in asdict(BASE).items()}
        settings = {k: v for k, v in change.items() if k not in shape}
        settings = {"K": BATCH} | settings
        weights, scratch = predicted(Shape(**shape), **settings)
        peak = fresh(__file__, "peak_of_a_fit", shape=shape, **settings)["peak"]
        rows.append({
            "changed": ", ".join(f"{k}={v:,}" if type(v) is int else f"{k}={v}"
                                 for k, v in change.items()) or "(MLP9)",
            "weights MB": weights / MEGA, "scratch MB": scratch / MEGA,
            "peak MB": peak / MEGA, "ratio": peak / (weights + scratch),
        })  # fmt: skip
        print(rows[-1], file=sys.stderr)
    return rows


# -- time ------------------------------------------------------------------------


def times(batch: int, seconds: float, rounds: int) -> Rows:
    """Time an example; the vocabularies in turn, the best of several rounds."""
    best: dict[int, float] = {}
    for _ in range(rounds):
        for n_words in VOCABULARIES:
            shape = replace(BASE, n_words=n_words)
            data = random_windows(64 * batch, shape)
            training = trainer(shape, data, batch_size=batch)
            training.train(range(batch))
            before = time.perf_counter()
            while time.perf_counter() - before < seconds:
                started = time.perf_counter()
                training.train(range(batch))
                took = (time.perf_counter() - started) / batch
                best[n_words] = min(took, best.get(n_words, np.inf))
            print(n_words, best[n_words], file=sys.stderr)
    # The line through the origin with the least relative error.
    slope = np.mean([took / n_words for n_words, took in best.items()])
    return [
        {
            "|V|": n_words, "ms an example": 1e3 * took,
            "ns a word": 1e9 * took / n_words, "of the line": took / (slope * n_words),
        }
        for n_words, took in best.items()
    ]  # fmt: skip


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--skip", nargs="+", default=[], metavar="PART",
                         choices=["memory", "time"])  # fmt: skip
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--seconds", type=float, default=2.0, help="a measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--child", help="of the script itself")
    args = options.parse_args()
    if args.child:
        serve(args.child, {"peak_of_a_fit": peak_of_a_fit})
        return
    if "memory" not in args.skip:
        report("Memory of a fit beyond the process's own", memory(),
               named(args.json, "memory"))  # fmt: skip
    if "time" not in args.skip:
        rows = times(args.batch, args.seconds, args.rounds)
        report(f"Training MLP9, K = {args.batch}, one thread", rows,
               named(args.json, "time"))  # fmt: skip


if __name__ == "__main__":
    main()
