"""What do threads and processes gain (section 3 of the paper)?

Trains networks on random windows with every way to share the work, in turn, and gives
each as a ratio to one thread: the paper's networks, the default, the presets and the
other outputs (--networks chooses some). The ratio is that of the shortest of --rounds
measurements, between which the ways take turns: what other programs take of the machine
is in the longer ones. "2 fits" are two networks of their own in training at once, which
share nothing: as much as this machine's two cores give together.

Then trains the paper's networks on 1 to 4 ranks, which this script starts under
mpiexec; --tcp makes them talk over TCP, as machines of a cluster do, rather than
through shared memory. --docs writes the tables that docs/measured shows.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import (
    NETWORKS,
    TIMED,
    TODAY,
    Shape,
    Trainer,
    random_windows,
    trainer,
    trainer_of_today,
)  # fmt: skip
from common.page import loads, table
from common.process import under_mpi, work_of_rank
from common.table import Rows, load, machine, named, parser, report

BATCHES = (1, 16, 128)
THREADS = [("sync", 1), ("sync", 2), ("async", 2), ("locked", 2)]
PAPER = ["MLP9", "AP"]
TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"}


class Training:
    """One network in training; `seconds` of a call are the best of several."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.seconds = np.inf
        self.best: dict[str, float] = {}

    def run(self, n: int) -> None:
        started = time.perf_counter()
        self.trainer.train(np.arange(n))
        seconds = (time.perf_counter() - started) / n
        costs = self.trainer.costs()
        if seconds < self.seconds:
            self.seconds = seconds
            self.best = {name: cost / n for name, cost in costs.items()}


class TwoFits(Training):
    """Two networks of their own in training at once, each on one thread."""

    def __init__(self, first: Trainer, second: Trainer) -> None:
        super().__init__(first)
        self.second = second

    def run(self, n: int) -> None:
        other = Thread(target=self.second.train, args=(np.arange(n),))
        started = time.perf_counter()
        other.start()
        self.trainer.train(np.arange(n))
        other.join()
        self.seconds = min(self.seconds, (time.perf_counter() - started) / (2 * n))


def of_paper(shape: Shape, K: int, **settings: Any) -> Training:
    """One of the paper's networks in training on random windows."""
    return Training(
        trainer(shape, random_windows(8192, shape), batch_size=K, **settings)
    )


def examples(name: str, K: int, seconds: float) -> int:
    """Whole mini-batches that take about `seconds` on a core of today."""
    shape = NETWORKS[name]
    n_weights = shape.n_words * shape.width + shape.below
    rate = {1: 1, 16: 3, 128: 4}.get(K, 4) * 2000 * 1.8e6 / n_weights
    return min(8192, max(2, int(rate * seconds) // K) * K)


def threads(names: list[str], seconds: float, rounds: int) -> tuple[Rows, Rows]:
    """Two threads as ratios to one: of today's networks, and of the paper's."""
    today = [row_of_today(n, seconds, rounds) for n in names if n in TODAY]
    paper = [
        row_of_paper(name, K, seconds, rounds)
        for name in names
        if name in NETWORKS
        for K in BATCHES
    ]
    return today, paper


def row_of_today(name: str, seconds: float, rounds: int) -> dict[str, Any]:
    K = TODAY[name].batch_size
    runs = {
        (parallel, jobs): Training(
            trainer_of_today(name, parallel=parallel, n_jobs=jobs)
        )
        for parallel, jobs in THREADS
    }
    own = dict(parallel="sync", n_jobs=1)
    runs["2 fits", 2] = TwoFits(
        trainer_of_today(name, **own), trainer_of_today(name, **own)
    )
    for training in runs.values():
        training.run(4 * K)
    n = int(seconds / runs["sync", 1].seconds) // K * K
    return {"network": name, "K": K} | ratios(runs, min(8192, max(4 * K, n)), rounds)


def row_of_paper(name: str, K: int, seconds: float, rounds: int) -> dict[str, Any]:
    runs = {
        (parallel, jobs): of_paper(NETWORKS[name], K, parallel=parallel, n_jobs=jobs)
        for parallel, jobs in THREADS
    }
    own = dict(parallel="sync", n_jobs=1)
    trainers = [of_paper(NETWORKS[name], K, **own).trainer for _ in range(2)]
    runs["2 fits", 2] = TwoFits(*trainers)
    for training in runs.values():
        training.run(2 * K)
    return {"network": name, "K": K} | ratios(runs, examples(name, K, seconds), rounds)


def ratios(
    runs: dict[tuple[str, int], Training], n: int, rounds: int
) -> dict[str, float]:
    """Train on n examples in each way, in turn; the shortest of each to one thread."""
    for training in runs.values():
        training.seconds = np.inf
    before = load()
    for i in range(rounds):
        # No way always follows the same one, nor always comes first.
        for training in list(runs.values())[:: 1 if i % 2 else -1]:
            training.run(n)
    one = runs["sync", 1].seconds
    row = {"1 thread ex/s": 1 / one}
    row |= {
        how if how == "2 fits" else f"{how} 2": one / training.seconds
        for (how, n_jobs), training in runs.items()
        if n_jobs > 1
    }
    row |= {"load before": before, "after": load()}
    print(row, file=sys.stderr)
    return row


def worker(names: list[str], seconds: float, rounds: int) -> dict[str, Any]:
    """Run in every rank; rank 0 prints what this returns."""
    from nplm import mpi

    found: dict[str, Any] = {}
    for name, K in product(names, BATCHES):
        training = of_paper(NETWORKS[name], K, make=mpi.trainer)
        training.run(2 * K)
        for _ in range(rounds):
            training.run(examples(name, K, seconds))
        found[f"{name} {K}"] = {"seconds": training.seconds, **training.best}
    return found


def mpi_rows(measured: dict[int, dict[str, Any]], names: list[str]) -> Rows:
    rows = []
    for name, K in product(names, BATCHES):
        one = measured[1][f"{name} {K}"]["seconds"]
        for ranks, found in measured.items():
            run = found[f"{name} {K}"]
            rows.append({
                "network": name, "K": K, "ranks": ranks, "ex/s": 1 / run["seconds"],
                "speed-up": one / run["seconds"],
                "communicating": run["communicating"] / run["seconds"],
                "waiting": run["waiting"] / run["seconds"],
            })  # fmt: skip
    return rows


# -- the page --------------------------------------------------------------------


RATIOS = [
    ("sync, 2 threads", "{sync 2:.2f}"), ("async, 2", "{async 2:.2f}"),
    ("locked, 2", "{locked 2:.2f}"), ("two fits at once", "{2 fits:.2f}"),
]  # fmt: skip
OF_TODAY = [
    ("network", "{network}"), ("``batch_size``", "{K}"),
    ("examples a second, 1 thread", "{1 thread ex/s:,.0f}"), *RATIOS,
]  # fmt: skip
OF_PAPER = [
    ("network", "{network}"), ("``batch_size``", "{K}"), *RATIOS,
    ("MPI, 2 processes", "{speed-up:.2f}"),
    ("share of its messages", "{communicating:.1%}"),
]  # fmt: skip


def page(today: Rows, threads: Rows, processes: Rows) -> str:
    """Two threads and two processes beside one."""
    here = machine()
    runs = [{"load before": r["load before"], "load after": r["after"]}
            for r in today + threads]  # fmt: skip
    about = (
        f"{here['cores']} cores of an {here['cpu']}, float32, as a ratio to one thread "
        "or one process: the shortest of several measurements, taken in turn. The load "
        f"of the machine, with the threads measured, was {loads(runs)}.\n\n"
    )
    two = {(r["network"], r["K"]): r for r in processes if r["ranks"] == 2}
    paper = [two[row["network"], row["K"]] | row for row in threads]
    first = table("The default, presets and other outputs", OF_TODAY, today)
    return f"{about}{first}\n{table('Networks of the paper', OF_PAPER, paper)}"


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument(
        "--networks", nargs="+", default=[*TODAY, *PAPER], choices=[*TODAY, *NETWORKS],
        metavar="NETWORK", help=f"among {', '.join(f'{n!r}' for n in TODAY)} and the "
        f"paper's {', '.join(NETWORKS)}",
    )  # fmt: skip
    options.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 3, 4])
    options.add_argument("--seconds", type=float, default=0.5, help="a measurement")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--skip-threads", action="store_true")
    options.add_argument("--skip-mpi", action="store_true")
    options.add_argument("--tcp", action="store_true")
    options.add_argument("--docs", type=Path, help="docs/measured, to write to")
    options.add_argument("--worker", help="of the script itself, under mpiexec")
    args = options.parse_args()
    if args.worker:
        work_of_rank(args.worker, worker)
        return
    everything = {*TODAY, *PAPER} <= {*args.networks}
    if args.docs and (args.skip_threads or args.skip_mpi or not everything):
        options.error("--docs needs all figures")
    shares: Rows = [
        {"network": n, "output units' share": NETWORKS[n].output_share()} for n in TIMED
    ]
    report("Section 3.2's share of the output units (the paper: AP 99.7%)", shares)
    today: Rows = []
    by_threads: Rows = []
    if not args.skip_threads:
        today, by_threads = threads(args.networks, args.seconds, args.rounds)
        title = "Two threads, as a ratio to one"
        if today:
            report(title, today, named(args.json, "today"))
        if by_threads:
            report(f"{title}: the paper's", by_threads, named(args.json, "threads"))
    papers = [name for name in args.networks if name in NETWORKS]
    if args.skip_mpi or not papers:
        return
    measured: dict[int, dict[str, Any]] = {}
    what = dict(names=papers, seconds=args.seconds, rounds=args.rounds)
    for _ in range(2):  # one after the other, twice: other programs come and go
        for ranks in args.ranks:
            found = under_mpi(__file__, ranks, TCP if args.tcp else {}, **what)
            measured[ranks] = _better(found, measured.get(ranks))
    rows = mpi_rows(measured, papers)
    report("Processes, as a ratio to one", rows, named(args.json, "mpi"))
    if args.docs:
        (args.docs / "parallel.inc").write_text(page(today, by_threads, rows))


def _better(found: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The best of two runs, one by one."""
    if before is None:
        return found
    return {
        name: min(run, before[name], key=lambda run: run["seconds"])
        for name, run in found.items()
    }


if __name__ == "__main__":
    main()
