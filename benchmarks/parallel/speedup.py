"""What do threads and processes gain (section 3 of the paper)?

Trains networks on random windows with every way to share the work, in turn, and gives
each as a ratio to one thread: the paper's networks, the default, the presets and the
other outputs (--networks chooses some). The ratio is that of the shortest of --rounds
measurements, between which the ways take turns: what other programs take of the machine
is in the longer ones. "2 fits" are two networks of their own in training at once, which
share nothing: as much as this machine's two cores give together.

Then fits the cost model of costs.py to one rank of the paper's networks and
to bare messages, checks it against 2 to 4 ranks, and lets it estimate larger
clusters. MPI runs in processes that this script starts under mpiexec; --tcp makes them
talk over TCP, as machines of a cluster do, rather than through shared memory.
--docs writes the tables and the picture that docs/measured shows.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
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
from common.process import under_mpi, work_of_rank
from common.table import Rows, load, named, parser, report
from parallel.costs import Cluster, Link
from parallel.speedup_page import BATCHES, draw, measured_page, model_page, simulate

# So small that a mini-batch is nothing but Python and the calls of MPI.
TINY = Shape(64, 2, 2, 2, False)
THREADS = [("sync", 1), ("sync", 2), ("async", 2), ("locked", 2)]
PAPER = ["MLP9", "AP"]
TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"}
# Seconds that a round waits at most for other programs (--wait).
WAIT = 0.0

# -- measuring -------------------------------------------------------------------


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
    rate = {1: 1, 16: 3, 128: 4}.get(K, 4) * 2000 * 1.8e6 / shape.weights(1)
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
        wait_for_others()
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


def wait_for_others(share: float = 0.05, at_once: float = 0.3) -> None:
    """Wait while other programs use more than this share of the cores (--wait)."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        before = idle_seconds()
        time.sleep(at_once)
        if idle_seconds() - before > (1 - share) * at_once * (os.cpu_count() or 1):
            return


def idle_seconds() -> float:
    """Seconds in which cores did nothing, since the system started (Linux)."""
    idle, waiting = Path("/proc/stat").read_text().split()[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


def worker(names: list[str], seconds: float, rounds: int) -> dict[str, Any]:
    """Run in every rank; rank 0 prints what this returns."""
    from mpi4py import MPI

    from nplm import mpi

    found: dict[str, Any] = {}
    if MPI.COMM_WORLD.size == 1:
        tiny = of_paper(TINY, 1, make=mpi.trainer)
        for _ in range(5):
            tiny.run(2000)
        found["overhead"] = tiny.seconds
    for name in names:
        weights = NETWORKS[name].weights(MPI.COMM_WORLD.size)
        found[f"{name} messages"] = messages(MPI, weights)
        for K in BATCHES:
            training = of_paper(NETWORKS[name], K, make=mpi.trainer)
            training.run(2 * K)
            for _ in range(rounds):
                training.run(examples(name, K, seconds))
            found[f"{name} {K}"] = {"seconds": training.seconds, **training.best}
    return found


def messages(MPI: Any, n_weights: int) -> list[tuple[int, float]]:
    """Bytes, and the seconds of an Allreduce of them between two computations.

    As in a mini-batch, after which nothing but weights is in the cache: a message
    takes twice as long as in a loop of messages for a rank's part of MLP9, and
    over ten times for AP's.
    """
    comm, found = MPI.COMM_WORLD, []
    weights = np.zeros(n_weights, np.float32)
    for size in (4, 400, 6_400, 51_200, 286_720):
        buffer = np.zeros(size // 4, np.float32)
        seconds = np.empty(100)
        for i in range(len(seconds)):
            np.multiply(weights, 1, out=weights)
            buffer += 1
            started = time.perf_counter()
            comm.Allreduce(MPI.IN_PLACE, buffer)
            seconds[i] = time.perf_counter() - started
        # Who comes last does not wait; when messages take long, each in turn.
        both = seconds.reshape(-1, 2).mean(axis=1)
        comm.Allreduce(MPI.IN_PLACE, both, MPI.MIN)
        found.append((size, float(np.median(both))))
    return found


# -- the model -------------------------------------------------------------------


def fit_cluster(measured: dict[int, dict[str, Any]], names: list[str]) -> Cluster:
    """The cost model's constants: one rank's speed, and two ranks' messages.

    The messages are the first network's; another's wait longer or less for memory.
    """
    slope = {}
    overhead = measured[1]["overhead"]
    for K in BATCHES:
        weights = np.array([NETWORKS[name].weights(1) for name in names])
        runs = [measured[1][f"{name} {K}"]["seconds"] for name in names]
        slope[K] = float(((np.array(runs) - overhead / K) / weights).mean())
    return Cluster(
        "here", slope, overhead, fit_link(measured, names[0]), os.cpu_count()
    )


def fit_link(measured: dict[int, dict[str, Any]], name: str) -> Link:
    sizes, took = np.array(measured[2][f"{name} messages"]).T
    latency, steps = float(took[0]), Link(1, 0).exchanges(2, sizes[-1])
    return Link(float(sizes[-1] / max(took[-1] - steps * latency, 1e-9)), latency)


def mpi_rows(measured: dict[int, dict[str, Any]], names: list[str]) -> Rows:
    rows = []
    for name in names:
        here = fit_cluster(measured, names)
        here = replace(here, link=fit_link(measured, name))
        for K in BATCHES:
            shape = NETWORKS[name]
            for ranks, found in measured.items():
                run, one = found[f"{name} {K}"], measured[1][f"{name} {K}"]
                rows.append({
                    "network": name, "K": K, "ranks": ranks,
                    "ex/s": 1 / run["seconds"],
                    "speed-up": one["seconds"] / run["seconds"],
                    "model": here.speed_up(shape, ranks, K),
                    "communicating": run["communicating"] / run["seconds"],
                    "its model": here.communication(shape, ranks, K),
                    "waiting": run["waiting"] / run["seconds"],
                })  # fmt: skip
    return rows


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
    options.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS",
        help="that a round with threads waits at most until other programs leave the "
        "cores idle",
    )  # fmt: skip
    options.add_argument("--tcp", action="store_true")
    options.add_argument("--docs", type=Path, help="docs/measured, to write to")
    options.add_argument("--worker", help="of the script itself, under mpiexec")
    args = options.parse_args()
    global WAIT
    WAIT = args.wait
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
    here = fit_cluster(measured, papers)
    print(
        f"Fitted: {', '.join(f'K = {K}: {s:.3g}' for K, s in here.slope.items())} s a "
        f"weight, {here.overhead:.3g} s a batch, {here.link.latency:.3g} s a "
        f"message, {here.link.bandwidth:.3g} bytes/s."
    )
    simulated = simulate(here.slope, here.overhead)
    report("Simulated", simulated, named(args.json, "simulated"))
    if args.docs:
        (args.docs / "parallel.inc").write_text(measured_page(today, by_threads, rows))
        (args.docs / "clusters.inc").write_text(model_page(rows, simulated))
        draw(args.docs / "clusters.svg", here.slope, here.overhead, rows)


def _better(found: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The best of two runs, one by one."""
    best = dict(found)
    for name, was in (before or {}).items():
        if name == "overhead":
            best[name] = min(found[name], was)
        elif name.endswith(" messages"):
            best[name] = np.minimum(found[name], was)
        else:
            best[name] = min(found[name], was, key=lambda run: run["seconds"])
    return best


if __name__ == "__main__":
    main()
