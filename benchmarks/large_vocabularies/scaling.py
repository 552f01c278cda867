"""How do memory and time grow with the vocabulary, the network and the threads?

The paper's parameters grow linearly with |V| and with n (section 2), and so should
the memory of a fit and the time of an example. Each figure of memory is that of a
fresh process: what a fit has freed may stay with the process.

--wiki fits the paper's AP network to the 14 million tokens of `load_wiki` instead, from
a memory-mapped file of token ids, and compares its speed with the bare loop
of speed/neural.py. --max-examples ends it early: the memory is that of a whole epoch.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import NETWORKS, Shape, random_windows, trainer
from common.process import fresh, resident, serve
from common.table import Rows, named, parser, report
from nplm import windows
from nplm.datasets import load_wiki

N_TRAIN = 13_994_528  # tokens of load_wiki's training part

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


def bare_loop(shape: Shape, batch_size: int, **settings: Any) -> Callable[[int], float]:
    """Make a function that trains by hand on random windows, as speed/neural.py."""
    data = random_windows(64 * batch_size, shape)
    begun = trainer(shape, data, batch_size=batch_size, **settings)
    return lambda n: begun.train(np.arange(n) % len(data[1]))


def times(batch: int, seconds: float, rounds: int) -> Rows:
    """Time an example; the vocabularies in turn, the best of several rounds."""
    best: dict[int, float] = {}
    for _ in range(rounds):
        for n_words in VOCABULARIES:
            train = bare_loop(replace(BASE, n_words=n_words), batch_size=batch)
            train(batch)
            before = time.perf_counter()
            while time.perf_counter() - before < seconds:
                started = time.perf_counter()
                train(batch)
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


# -- threads ---------------------------------------------------------------------


def best_of(work: Any, times: int = 200) -> float:
    """Seconds of the fastest of several calls."""
    clock = [time.perf_counter()]
    for _ in range(times):
        work()
        clock.append(time.perf_counter())
    return min(after - before for before, after in pairwise(clock))


def threads() -> Rows:
    """The cost of n_jobs where there is nothing to gain."""
    tiny = Shape(64, 2, 2, 2, False)
    rows = []
    for n in (1, 2):
        loops = [bare_loop(tiny, batch_size=1, n_jobs=n) for _ in range(50)]
        calls = iter(loops)
        first = best_of(lambda calls=calls: next(calls)(1), len(loops))
        train = loops[0]
        rows.append({
            "threads": n,
            "first call, us": 1e6 * first,
            "a call, us": 1e6 * best_of(lambda train=train: train(1)),
            "a mini-batch, us": 500 * best_of(lambda train=train: train(2000), 20),
        })  # fmt: skip
    return rows


# -- the Wiki protocol -----------------------------------------------------------

PAIRED = 200  # calls that are compared, of a tenth of a second


class Call(NamedTuple):
    """A kernel call of a fit, and all that the fit did since the one before."""

    done: int
    seconds: float
    bare: float | None  # seconds of the bare loop, for as many examples
    loss: float


def fit_wiki(
    *, path: str, n_jobs: int, batch: int, max_examples: int, precision: str
) -> dict[str, Any]:
    """One epoch of the AP network, or its beginning, beside the bare loop."""
    shape = NETWORKS["AP"]
    settings = dict(batch_size=batch, n_jobs=n_jobs, precision=precision, max_iter=1)
    train = bare_loop(shape, **settings)
    train(batch)
    before = resident("VmRSS")
    lm = shape.estimator(**settings, early_stopping=False)
    calls = [Call(0, 0.0, None, 0.0)]
    resumed = time.perf_counter()

    def progress(done: int, total: int, loss: float) -> None:
        nonlocal resumed
        took, n, bare = time.perf_counter() - resumed, done - calls[-1].done, None
        # The two in turn: other programs come and go.
        if 1 < len(calls) <= PAIRED:
            started = time.perf_counter()
            train(n)
            bare = time.perf_counter() - started
        calls.append(Call(done, took, bare, loss))
        if done >= max_examples:
            raise KeyboardInterrupt
        resumed = time.perf_counter()

    tokens = np.load(path, mmap_mode="r")
    X, y = windows(tokens[:N_TRAIN], shape.n - 1)
    with contextlib.suppress(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that it was interrupted
        lm.fit(X, y, progress=progress)
    peak = resident("VmHWM") - before

    # The first call has all that comes before it; it is one mini-batch.
    (_, first, *later), last = calls, calls[-1]
    speed = (last.done - first.done) / sum(call.seconds for call in later)
    paired = [call for call in later if call.bare is not None]
    bare = sum(call.bare for call in paired)
    weights, scratch = predicted(shape, batch, n_jobs)
    return {
        "threads": n_jobs, "K": batch, "precision": precision,
        "token file": tokens.dtype.name, "examples": last.done,
        "seconds": sum(call.seconds for call in calls),
        "seconds before training": first.seconds - first.done / speed,
        "ex/s": speed,
        "of the bare loop": bare / sum(call.seconds for call in paired),
        "minutes an epoch": (first.seconds + len(y) / speed) / 60,
        "training perplexity": float(np.exp(last.loss)),
        "peak MB": peak / MEGA,
        "weights and scratch MB": (weights + scratch) / MEGA,
        "all windows MB": X.size * X.itemsize / MEGA,
    }  # fmt: skip


def wiki_rows(args: Any) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        path = args.tokens or Path(folder) / "wiki.npy"
        if not path.exists():
            text = load_wiki()
            stream = np.concatenate([text.train, text.valid, text.test])
            np.save(path, stream.astype(np.uint16))
        return [
            fresh(
                __file__, "fit_wiki", path=str(path), n_jobs=n_jobs, batch=args.batch,
                max_examples=args.max_examples, precision=args.precision,
            )
            for n_jobs in args.threads
        ]  # fmt: skip


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--skip", nargs="+", default=[], metavar="PART",
                         choices=["memory", "time", "threads"])  # fmt: skip
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--seconds", type=float, default=2.0, help="a measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--wiki", action="store_true", help="fit it, and only that")
    options.add_argument("--threads", nargs="+", type=int, default=[1], help="(--wiki)")
    options.add_argument("--max-examples", type=int, default=N_TRAIN, help="(--wiki)")
    options.add_argument("--precision", default="float32", help="(--wiki)")
    options.add_argument("--tokens", type=Path, help="file of ids, made if absent")
    options.add_argument("--child", help="of the script itself")
    args = options.parse_args()
    if args.child:
        serve(args.child, {f.__name__: f for f in (peak_of_a_fit, fit_wiki)})
        return
    if args.wiki:
        rows = wiki_rows(args)
        turned = [
            {"": name} | {f"threads: {r['threads']}": r[name] for r in rows}
            for name in rows[0]
        ]
        report("An epoch of the AP network on the Wiki protocol", turned, args.json)
        return
    if "memory" not in args.skip:
        report("Memory of a fit beyond the process's own", memory(),
               named(args.json, "memory"))  # fmt: skip
    if "time" not in args.skip:
        rows = times(args.batch, args.seconds, args.rounds)
        report(f"Training MLP9, K = {args.batch}, one thread", rows,
               named(args.json, "time"))  # fmt: skip
    if "threads" not in args.skip:
        report("What threads cost", threads(), named(args.json, "threads"))


if __name__ == "__main__":
    main()
