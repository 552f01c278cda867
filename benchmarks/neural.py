"""How fast is NeuralLM, beside PyTorch and beside what the processor can do?

Trains and scores the paper's networks on random windows, one thread count after
the other, nplm and PyTorch in turn. PyTorch (if installed: pip install torch)
runs eager, with a sparse gradient for the features and the direct connections
folded into one Linear. Buffers that glibc would give back to the system at every
step are kept (M_MMAP_MAX, M_TRIM_THRESHOLD): without it PyTorch is up to twice
as slow.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

# Before anything allocates: start again with malloc told to keep its memory.
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
if __name__ == "__main__" and os.environ.get("MALLOC_MMAP_MAX_") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED})

import numpy as np
from _table import parser, report
from numpy.typing import NDArray

from nplm import NeuralLM, windows
from nplm.network import Network, kernel_tier
from nplm.parallel import blas_threads

try:
    import torch
except ImportError:
    torch = None

NETWORKS = {
    "MLP1": dict(n_words=17_907, n=5, h=50, m=60, direct=True),
    "MLP9": dict(n_words=17_907, n=5, h=100, m=30, direct=False),
    "AP": dict(n_words=17_964, n=6, h=60, m=100, direct=True),
}
Windows = tuple[NDArray[np.int32], NDArray[np.int32]]


def flops(n_words: int, n: int, h: int, m: int, direct: bool, part: str) -> int:
    """Multiplications and additions an example: the output units, three times
    (logits, gradient, update) in training, once in scoring."""
    inputs = (n - 1) * m
    below = h * inputs
    units = n_words * (h + direct * inputs + 1)
    return 2 * (units + below) * (3 if part == "train" else 1)


def random_windows(n_examples: int, n_words: int, n_context: int) -> Windows:
    """Words as frequent as in text (Zipf): what is visited often is in cache."""
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, n_words + 1)
    ids = rng.choice(n_words, n_examples + n_context, p=p / p.sum()).astype(np.int32)
    return windows(ids, n_context)


class Nplm:
    name = "nplm"

    def __init__(self, shape: dict[str, Any], threads: int, batch: int) -> None:
        lm = NeuralLM(
            n_words=shape["n_words"], n_hidden=shape["h"], embedding_dim=shape["m"],
            direct=shape["direct"], n_jobs=threads, random_state=0,
        )  # fmt: skip
        self.X, self.y = random_windows(1000, shape["n_words"], shape["n"] - 1)
        lm._start_fit(self.X, self.y)
        self.network: Network = lm._initialise(self.y, np.random.RandomState(0))
        self.batch = batch

    def train(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        with blas_threads(1):
            self.network.train(
                X, y, np.arange(len(y)), batch_size=self.batch,
                learning_rate_init=1e-3, learning_rate_decay=1e-8, alpha=1e-4,
            )  # fmt: skip

    def score(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        with blas_threads(1):
            self.network.log_prob(X, y)


class Torch:
    name = "PyTorch"

    def __init__(self, shape: dict[str, Any], threads: int, batch: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        inputs = (shape["n"] - 1) * shape["m"]
        width = shape["h"] + (inputs if shape["direct"] else 0)
        self.C = torch.nn.Embedding(shape["n_words"], shape["m"], sparse=True)
        self.H = torch.nn.Linear(inputs, shape["h"])
        self.out = torch.nn.Linear(width, shape["n_words"])
        self.direct, self.batch = shape["direct"], batch
        self.sgd = torch.optim.SGD(
            [*self.C.parameters(), *self.H.parameters(), *self.out.parameters()],
            lr=1e-3,
        )

    def loss(self, X: Any, y: Any) -> Any:
        x = self.C(X).flatten(1)
        a = torch.tanh(self.H(x))
        z = torch.cat([a, x], dim=1) if self.direct else a
        return torch.nn.functional.cross_entropy(self.out(z), y, reduction="sum")

    def _batches(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> Any:
        X, y = (
            torch.from_numpy(X.astype(np.int64)),
            torch.from_numpy(y.astype(np.int64)),
        )
        return zip(X.split(self.batch), y.split(self.batch), strict=True)

    def train(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        for Xb, yb in self._batches(X, y):
            self.sgd.zero_grad(set_to_none=True)
            self.loss(Xb, yb).backward()
            self.sgd.step()

    def score(self, X: NDArray[np.int32], y: NDArray[np.int32]) -> None:
        with torch.inference_mode():
            for Xb, yb in self._batches(X, y):
                self.loss(Xb, yb)


def rate(run: Callable[..., None], data: Windows, seconds: float) -> float:
    """Examples a second of the best of several runs that last about `seconds`."""
    X, y = data
    n = min(len(y), 64)
    started = time.perf_counter()
    run(X[:n], y[:n])
    guess = n / (time.perf_counter() - started)
    n = int(min(len(y), max(n, guess * seconds / 4)))
    best = 0.0
    for _ in range(4):
        started = time.perf_counter()
        run(X[:n], y[:n])
        best = max(best, n / (time.perf_counter() - started))
    return best


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--networks", nargs="+", default=list(NETWORKS))
    options.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options.add_argument("--batch", nargs="+", type=int, default=[1, 16, 128, 512])
    options.add_argument("--seconds", type=float, default=4.0, help="a measurement")
    args = options.parse_args()

    rows: list[dict[str, Any]] = []
    for name in args.networks:
        shape = NETWORKS[name]
        data = random_windows(200_000, shape["n_words"], shape["n"] - 1)
        for threads in args.threads:
            for batch in args.batch:
                ours = Nplm(shape, threads, batch)
                theirs = Torch(shape, threads, batch) if torch else None
                for part in ("train", "score"):
                    mine = rate(getattr(ours, part), data, args.seconds)
                    other = (
                        rate(getattr(theirs, part), data, args.seconds)
                        if theirs
                        else None
                    )
                    rows.append({
                        "network": name, "part": part, "threads": threads, "K": batch,
                        "nplm ex/s": mine,
                        "GFLOP/s": mine * flops(**shape, part=part) / 1e9,
                        "PyTorch ex/s": other,
                        "ratio": mine / other if other else None,
                    })  # fmt: skip
                    print(rows[-1], file=sys.stderr)
    best = []
    for name in args.networks:
        for threads in args.threads:
            for part in ("train", "score"):
                same = [
                    r for r in rows
                    if (r["network"], r["threads"], r["part"]) == (name, threads, part)
                ]  # fmt: skip
                mine = max(same, key=lambda r: r["nplm ex/s"])
                row = {
                    "network": name, "part": part, "threads": threads,
                    "nplm ex/s": mine["nplm ex/s"], "at K": mine["K"],
                }  # fmt: skip
                if torch:
                    other = max(same, key=lambda r: r["PyTorch ex/s"])
                    row |= {
                        "PyTorch ex/s": other["PyTorch ex/s"], "at its K": other["K"],
                        "ratio": mine["nplm ex/s"] / other["PyTorch ex/s"],
                    }  # fmt: skip
                best.append(row)
    title = f"float32, {kernel_tier()} kernels"
    report(f"{title}: at equal K", rows, args.json)
    report(f"{title}: each at its best K", best)


if __name__ == "__main__":
    main()
