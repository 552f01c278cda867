"""How fast is NeuralLM, beside PyTorch and beside what the processor can do?

Trains and scores the paper's networks on random windows, one thread count after
the other, nplm and PyTorch in turn. PyTorch (if installed: pip install torch)
runs eager, with a sparse gradient for the features and the direct connections
folded into one Linear, bfloat16 by autocast. Buffers that glibc would give back
to the system at every step are kept (M_MMAP_MAX, M_TRIM_THRESHOLD): without it
PyTorch is up to twice as slow.

The share is that of what this machine was measured to do: of its arithmetic, or,
one example at a time, of its memory. GB/s are those of the output units' weights,
once a mini-batch for the logits and twice for the update. nplm scores in
mini-batches of its own, whichever K stands beside it. --tier names other kernels than
the processor's fastest; --docs goes through all tiers and writes the table and the
picture that docs/measured shows. One thread is timed by the processor time it takes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

# Before anything allocates: start again with malloc told to keep its memory.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
if __name__ == "__main__" and os.environ.get("MALLOC_MMAP_MAX_") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED})

import numpy as np

from common.networks import NETWORKS, TIMED, Shape, Windows, random_windows, trainer
from common.table import Rows, named, parser, report
from nplm import available_tiers, use_tier
from speed.limits import bandwidth, clock, gflops
from speed.neural_page import draw, limited_page, ratios_page, tiers_page

try:
    import torch
except ImportError:
    torch = None


N_WINDOWS = 200_000


def flops(shape: Shape, part: str) -> int:
    """Multiplications and additions an example: the output units, three times
    (logits, gradient, update) in training, once in scoring."""
    units = shape.n_words * shape.width
    return 2 * (units + shape.h * shape.inputs) * (3 if part == "train" else 1)


class Nplm:
    name = "nplm"

    def __init__(
        self, shape: Shape, data: Windows, precision: str, threads: int, batch: int
    ) -> None:
        self.data = data
        self.trainer = trainer(
            shape, data, precision=precision, n_jobs=threads, batch_size=batch
        )
        self.lm = self.trainer.keep()

    def train(self, n: int) -> None:
        self.trainer.train(np.arange(n))

    def score(self, n: int) -> None:
        X, y = self.data
        self.lm.log_prob(X[:n], y[:n])


class Torch:
    name = "PyTorch"

    def __init__(
        self, shape: Shape, data: Windows, precision: str, threads: int, batch: int
    ) -> None:
        self.data = data
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.C = torch.nn.Embedding(shape.n_words, shape.m, sparse=True)
        self.H = torch.nn.Linear(shape.inputs, shape.h)
        self.out = torch.nn.Linear(shape.width - 1, shape.n_words)
        self.direct, self.batch = shape.direct, batch
        self.mixed = precision == "bfloat16"
        self.sgd = torch.optim.SGD(
            [*self.C.parameters(), *self.H.parameters(), *self.out.parameters()],
            lr=1e-3,
        )

    def loss(self, X: Any, y: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.mixed):
            x = self.C(X).flatten(1)
            a = torch.tanh(self.H(x))
            z = torch.cat([a, x], dim=1) if self.direct else a
            return torch.nn.functional.cross_entropy(self.out(z), y, reduction="sum")

    def _batches(self, n: int) -> Any:
        X, y = (torch.from_numpy(own[:n].astype(np.int64)) for own in self.data)
        return zip(X.split(self.batch), y.split(self.batch), strict=True)

    def train(self, n: int) -> None:
        for Xb, yb in self._batches(n):
            self.sgd.zero_grad(set_to_none=True)
            self.loss(Xb, yb).backward()
            self.sgd.step()

    def score(self, n: int) -> None:
        with torch.inference_mode():
            for Xb, yb in self._batches(n):
                self.loss(Xb, yb)


def rate(run: Callable[[int], None], batch: int, args: argparse.Namespace) -> float:
    """Examples a second of the best of several runs that last about `args.seconds`.

    Of whole mini-batches: nplm computes a part of one as if it were full.
    """
    n, now = max(64 // batch, 1) * batch, clock(max(args.threads))
    started = now()
    run(n)
    guess = n / (now() - started)
    n = max(n, int(min(N_WINDOWS, guess * args.seconds / 4)) // batch * batch)
    best = 0.0
    for _ in range(4):
        started = now()
        run(n)
        best = max(best, n / (now() - started))
    return best


def share(mine: float, shape: Shape, part: str, row: dict[str, Any]) -> float:
    """The share of this machine's limit: of memory for one example, else arithmetic."""
    threads, size = row["threads"], shape.output_bytes()
    if row["K"] == 1 and part == "train":
        read, change = bandwidth(size, threads)
        return mine * (size / read + 2 * size / change) / 1e9
    limit = gflops(row["precision"], threads, row["tier"])
    return mine * flops(shape, part) / 1e9 / limit


def measure(
    args: argparse.Namespace, tier: str | None, beside: bool = torch is not None
) -> Iterator[dict[str, Any]]:
    for name in args.networks:
        shape = NETWORKS[name]
        data = random_windows(N_WINDOWS, shape)
        for precision, threads, batch in product(
            args.precision, args.threads, args.batch
        ):
            if precision == "bfloat16" and batch == 1:
                continue  # both wait for the float32 weights
            what = (shape, data, precision, threads, batch)
            ours, theirs = Nplm(*what), Torch(*what) if beside else None
            for part in ("train", "score"):
                row: dict[str, Any] = {
                    "network": name, "part": part, "precision": precision,
                    "tier": tier or available_tiers(precision)[0],
                    "threads": threads, "K": batch,
                }  # fmt: skip
                mine = rate(getattr(ours, part), batch, args)
                other = rate(getattr(theirs, part), batch, args) if theirs else None
                passes = 3 if part == "train" else 1
                # Scoring has its own mini-batches.
                moved = shape.output_bytes() * passes / batch if passes == 3 else None
                row |= {
                    "nplm ex/s": mine,
                    "GFLOP/s": mine * flops(shape, part) / 1e9,
                    "GB/s": mine * moved / 1e9 if moved else None,
                    "share": share(mine, shape, part, row),
                    "PyTorch ex/s": other,
                    "ratio": mine / other if other else None,
                }  # fmt: skip
                print(row, file=sys.stderr)
                yield row


def limits(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for threads in args.threads:
        for name in args.networks:
            size = NETWORKS[name].output_bytes()
            read, change = bandwidth(size, threads)
            yield {
                "threads": threads, "float32 GFLOP/s": gflops("float32", threads),
                "bfloat16 GFLOP/s": gflops("bfloat16", threads),
                "weights of": name, "MB": size / 1e6, "read GB/s": read,
                "change GB/s": change,
            }  # fmt: skip


def every_tier(args: argparse.Namespace) -> None:
    """All tiers and precisions of this processor on one thread: what docs show."""
    wanted = args.precision
    args.threads = [1]
    rows: Rows = []
    for precision in wanted:
        beside = torch is not None
        for tier in available_tiers(precision):
            if tier == "blas" or (precision, tier) == ("bfloat16", "plain"):
                continue  # for tests
            args.precision = [precision]
            with use_tier(tier):
                rows += measure(args, tier, beside)
            beside = False  # it does not depend on our kernels
    report("Every tier", rows, named(args.json, "tiers"))
    (args.docs / "tiers.inc").write_text(tiers_page(rows))
    if torch:
        (args.docs / "ratios.inc").write_text(ratios_page(rows))
        if "avx2" in available_tiers():
            (args.docs / "ratios_avx2.inc").write_text(limited_page(rows, "avx2"))
    draw(args.docs / "tiers.svg", rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="+", default=TIMED)
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--batch", nargs="+", type=int, default=[1, 16, 128, 512])
    precisions = ["float32", "bfloat16"]
    options.add_argument(
        "--precision", nargs="+", default=precisions, choices=precisions
    )
    options.add_argument("--seconds", type=float, default=4.0, help="a measurement")
    options.add_argument("--tier", help="kernels of nplm; by default the fastest")
    options.add_argument("--docs", type=Path, help="write docs/measured's files here")
    args = options.parse_args()
    if "bfloat16" in args.precision and not gflops("bfloat16"):
        args.precision.remove("bfloat16")
        print("This processor does not multiply bfloat16: float32 only.")
    if args.docs:
        every_tier(args)
        return

    asked = args.tier or os.environ.get("NPLM_TIER")
    with use_tier(args.tier) if args.tier else nullcontext():
        rows = list(measure(args, asked))
    kernels = ", ".join(
        f"{name} on {asked or available_tiers(name)[0]}" for name in args.precision
    )
    report("What this machine can do", list(limits(args)))
    report(kernels, rows, args.json)


if __name__ == "__main__":
    main()
