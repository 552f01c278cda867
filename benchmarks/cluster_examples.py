"""What would a cluster do for the default, whose ranks share the examples?

One rank gives the seconds of an example and of an update, and the bytes that a rank
sends. With a bandwidth and a latency, these give the time of a mini-batch on M ranks:

    seconds = update + example * K / M + messages

where the messages are an Allreduce of the gradients that all ranks have (a ring, which
sends each byte twice) and an Allgatherv of those of the rows that each has visited.
With ``average_every=k`` ranks send all parameters and moments once in k mini-batches of
their own instead. `--ranks` also measures 2 and more ranks here, beside the model with
the bandwidth and latency of messages between them.

    python benchmarks/cluster_examples.py --ranks 2 4
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common.networks import zipf_windows
from common.table import Rows, named, parser, report

from nplm import NeuralLM

N_WORDS, K = 18_000, 256  # about Brown's vocabulary, and the default mini-batch
# Bytes a second and seconds of latency of networks between computers.
NETWORKS = {
    "1 Gbit/s": (0.125e9, 60e-6),
    "10 Gbit/s": (1.25e9, 25e-6),
    "100 Gbit/s": (12.5e9, 2e-6),
}
RANKS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Costs:
    """Seconds of an example and of an update, and bytes of a mini-batch."""

    example: float
    update: float
    summed: float  # bytes of the gradients that all ranks have
    gathered: float  # bytes of the rows that an example visits
    whole: float  # bytes of all parameters and moments

    def seconds(self, ranks: int, bandwidth: float, latency: float) -> float:
        """Seconds of a mini-batch of K examples."""
        computing = self.update + self.example * K / ranks
        if ranks == 1:
            return computing
        steps = 2 * math.log2(ranks) + 2 * (ranks - 1) ** 0.5
        sent = 2 * (ranks - 1) / ranks * self.summed
        sent += (ranks - 1) / ranks * self.gathered * K
        return computing + sent / bandwidth + steps * latency

    def speed_up(self, ranks: int, bandwidth: float, latency: float) -> float:
        """How many times as fast as one rank."""
        alone = self.seconds(1, bandwidth, latency)
        return alone / self.seconds(ranks, bandwidth, latency)

    def averaged(
        self, ranks: int, every: int, bandwidth: float, latency: float
    ) -> float:
        """The same of ranks that take the mean once in `every` mini-batches."""
        alone = self.seconds(1, bandwidth, latency)
        exchange = 2 * (ranks - 1) / ranks * self.whole / bandwidth
        exchange += 2 * math.log2(max(ranks, 2)) * latency
        return ranks * every * alone / (every * alone + exchange * (ranks > 1))


def measured(seconds: float) -> dict[str, Any]:
    """Time mini-batches on the ranks of this job; rank 0 returns the figures."""
    from mpi4py import MPI

    from nplm import mpi

    X, y = zipf_windows(40 * K, N_WORDS, 5)
    found: dict[str, Any] = {}
    for size in (K // 4, K):
        lm = NeuralLM(order=6, n_words=N_WORDS, batch_size=size, random_state=0)
        trainer = mpi.trainer(lm, X, y)
        trainer.train(range(4 * size))
        best, until = math.inf, time.perf_counter() + seconds
        while MPI.COMM_WORLD.bcast(time.perf_counter() < until):
            started = time.perf_counter()
            trainer.train(range(8 * size))
            best = min(best, (time.perf_counter() - started) / 8)
        found[str(size)] = best
    sharing = trainer._training.network.sharing(K)
    network = trainer._training.network
    state = network.solver_state
    arrays = [*network.parameters.learned().values()]
    arrays += [a for k, a in state.items() if k.startswith(("first_", "second_"))]
    n_alike = int(sharing._info[:, 3].max())
    itemsize = network.parameters.dtype.itemsize
    found |= {
        "summed": itemsize * (sharing._n_whole + n_alike),
        "packed": float(sharing._info[:, 0].sum()) / K,
        "whole": sum(array.nbytes for array in arrays),
    }
    if MPI.COMM_WORLD.size > 1:
        found |= messages(MPI.COMM_WORLD)
    return found


def messages(comm: Any) -> dict[str, float]:
    """Return the bandwidth and latency of an Allreduce between the ranks."""
    took = {}
    for n in (1, 500_000):
        array = np.zeros(n, np.float32)
        times = []
        for _ in range(50):
            comm.Barrier()
            started = time.perf_counter()
            comm.Allreduce(array.copy(), array)
            times.append(time.perf_counter() - started)
        took[n] = float(np.median(times))
    steps = 2 * math.log2(comm.size)
    latency = took[1] / steps
    sent = 2 * (comm.size - 1) / comm.size * 4 * 500_000
    return {"latency": latency, "bandwidth": sent / (took[500_000] - took[1])}


def under_mpi(ranks: int, seconds: float) -> dict[str, Any]:
    command = ["mpiexec", "-n", str(ranks), sys.executable, __file__]
    command += ["--worker", "--seconds", str(seconds)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    (line,) = (x for x in found.stdout.splitlines() if x.startswith("{"))
    result: dict[str, Any] = json.loads(line)
    return result


def fitted(found: dict[str, Any]) -> Costs:
    """Return the costs of one rank's figures."""
    few, many = K // 4, K
    example = (found[str(many)] - found[str(few)]) / (many - few)
    return Costs(
        example, found[str(many)] - example * many, found["summed"],
        found["packed"], found["whole"],
    )  # fmt: skip


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--ranks", nargs="*", type=int, default=[])
    options.add_argument("--seconds", type=float, default=3.0, help="a measurement")
    options.add_argument("--worker", action="store_true", help="a rank of this script")
    options.add_argument("--docs", type=Path, help="folder of the page, for its chart")
    args = options.parse_args()
    if args.worker:
        found = measured(args.seconds)
        from nplm import mpi

        if mpi.rank() == 0:
            print(json.dumps(found))
        return
    one = under_mpi(1, args.seconds)
    costs = fitted(one)
    print(
        f"{costs.update * 1e3:.2f} ms an update and {costs.example * 1e6:.1f} us an "
        f"example; {costs.summed / 1e6:.2f} MB added up and "
        f"{costs.gathered * K / 1e6:.2f} MB gathered a mini-batch; "
        f"{costs.whole / 1e6:.0f} MB of parameters and moments."
    )
    rows: Rows = []
    for ranks in args.ranks:
        found = under_mpi(ranks, args.seconds)
        rows.append({
            "ranks": ranks, "ms": found[str(K)] * 1e3,
            "speed-up": one[str(K)] / found[str(K)],
            "model": costs.speed_up(ranks, found["bandwidth"], found["latency"]),
            "GB/s": found["bandwidth"] / 1e9, "us": found["latency"] * 1e6,
        })  # fmt: skip
    if rows:
        report("Ranks here, and the model", rows, named(args.json, "here"))
    simulated: Rows = [
        {"ranks": ranks}
        | {name: costs.speed_up(ranks, *network) for name, network in NETWORKS.items()}
        | {
            f"{name}, average_every=16": costs.averaged(ranks, 16, *network)
            for name, network in NETWORKS.items()
        }
        for ranks in RANKS
    ]
    report("Simulated: times as fast as one", simulated, named(args.json, "clusters"))
    if args.docs:
        draw(args.docs / "cluster_examples.svg", costs)


def draw(path: Path, costs: Costs) -> None:
    """Draw the speed-up by ranks, for each network."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "nplm"
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for i, (name, network) in enumerate(NETWORKS.items()):
        shared = [costs.speed_up(ranks, *network) for ranks in RANKS]
        apart = [costs.averaged(ranks, 16, *network) for ranks in RANKS]
        axes.plot(RANKS, shared, f"C{i}o-", label=name)
        axes.plot(RANKS, apart, f"C{i}s--", label=f"{name}, average_every=16")
    axes.plot(RANKS, RANKS, color="gray", lw=0.5)
    axes.set(xscale="log", yscale="log", xlabel="processes", ylabel="times as fast")
    axes.set_xticks(RANKS, [str(n) for n in RANKS])
    ticks = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]
    axes.set_yticks(ticks, [f"{n:g}" for n in ticks])
    axes.minorticks_off()
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
