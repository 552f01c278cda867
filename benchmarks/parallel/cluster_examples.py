"""What would a cluster do for the default, whose processes share the examples?

One rank gives the seconds of an example and of an update, and two ranks the bytes that
they send each other; costs.py makes of them, of a bandwidth and of a
latency the time of a mini-batch on M ranks. `--ranks` also measures 2 and more ranks
here, in common memory and with messages, beside the model with the bandwidth and
latency of messages between them. The ways take turns; the shortest of --rounds counts.
`--most-off` fails if the model is wrong by more than this share for ranks that have a
core each. `--docs` writes the tables and the chart of docs/measured/clusters.rst.

    python benchmarks/parallel/cluster_examples.py --ranks 2 4 --most-off 0.25 \\
        --docs docs/measured
"""

from __future__ import annotations

import math
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.networks import BROWN, zipf_windows
from common.page import picture, table
from common.process import under_mpi, work_of_rank
from common.table import Rows, machine, named, parser, report
from nplm import NeuralLM
from parallel.costs import LINKS, Costs, Link

K = 256  # the default mini-batch
RANKS = (1, 2, 4, 8, 16, 32, 64)
AVERAGE_EVERY = 16
APART = f"average_every={AVERAGE_EVERY}"
# Section 3.3: 40 CPUs, of whose time a fifteenth was communication.
PAPER = (40, 40 * 14 / 15)
MESSAGES = {"NPLM_MPI_SHARED_MEMORY": "0"}

# -- measuring -------------------------------------------------------------------


def measured(seconds: float) -> dict[str, Any]:
    """Time mini-batches on the ranks of this job; rank 0 prints what this returns."""
    from mpi4py import MPI

    from nplm import mpi

    X, y = zipf_windows(40 * K, BROWN, 5)
    found: dict[str, Any] = {}
    for size in (K // 4, K):
        lm = NeuralLM(
            order=6, n_words=BROWN, batch_size=size, random_state=0,
            learning_rate_init=1e-6,
        )  # fmt: skip
        trainer = mpi.trainer(lm, X, y)
        trainer.train(range(4 * size))
        best, until = math.inf, time.perf_counter() + seconds
        while MPI.COMM_WORLD.bcast(time.perf_counter() < until):
            started = time.perf_counter()
            trainer.train(range(8 * size))
            best = min(best, (time.perf_counter() - started) / 8)
        found[str(size)] = best
    network = trainer._training.network
    if hasattr(network.sharing(K), "sizes"):
        found |= network.sharing(K).sizes()
    state = network.solver_state
    arrays = [*network.parameters.learned().values()]
    arrays += [a for k, a in state.items() if k.startswith(("first_", "second_"))]
    found["whole"] = sum(array.nbytes for array in arrays)
    if MPI.COMM_WORLD.size > 1:
        found |= messages(MPI.COMM_WORLD)
    return found


def messages(comm: Any) -> dict[str, float]:
    """Return the bandwidth and latency of an Allreduce between the ranks."""
    took = {}
    for n in (1, 500_000):
        array, times = np.zeros(n, np.float32), []
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


def least(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The shorter times of two rounds, and the faster messages."""
    return {
        k: max(v, other[k]) if k == "bandwidth" else min(v, other[k])
        for k, v in one.items()
    }


def costs_of(one: dict[str, Any], two: dict[str, Any]) -> Costs:
    """Return the costs of one rank's figures, and of what two ranks sent."""
    few, many = K // 4, K
    example = (one[str(many)] - one[str(few)]) / (many - few)
    return Costs(
        example, one[str(many)] - example * many, two["summed"],
        two["gathered"] / K, one["whole"], K,
    )  # fmt: skip


def beside(found: dict[Any, dict[str, Any]], ranks: list[int]) -> Rows:
    """Ranks here, and what the model says of them."""
    one, costs = found["one"], costs_of(found["one"], found[2, "messages"])
    rows: Rows = []
    for n in ranks:
        turns = math.ceil(n / (os.cpu_count() or 1))
        link = Link(*(found[n, "messages"][k] for k in ("bandwidth", "latency")))
        model = {
            "memory": turns * costs.in_memory(n, link.latency),
            "messages": turns * (costs.update + costs.example * K / n)
            + costs.messages(n, link),
        }
        for way, seconds in model.items():
            took = found[n, way][str(K)]
            rows.append({
                "ranks": n, "way": way, "ms": took * 1e3, "model, ms": seconds * 1e3,
                "speed-up": one[str(K)] / took, "its model": one[str(K)] / seconds,
                "GB/s": link.bandwidth / 1e9, "us": link.latency * 1e6,
            })  # fmt: skip
    return rows


def simulated(costs: Costs) -> Rows:
    """Times as fast as one rank, on networks between computers."""
    return [
        {"ranks": n}
        | {name: costs.speed_up(n, link) for name, link in LINKS.items()}
        | {
            f"{name}, {APART}": costs.averaged(n, AVERAGE_EVERY, link)
            for name, link in LINKS.items()
        }
        for n in RANKS
    ]


# -- the page --------------------------------------------------------------------


MEASURED = [
    ("processes", "{ranks}"), ("through", "{through}"),
    ("ms a mini-batch", "{ms:.1f}"), ("the model", "{model, ms:.1f}"),
    ("times as fast as one", "{speed-up:.2f}"), ("the model", "{its model:.2f}"),
]  # fmt: skip


def page(costs: Costs, here: Rows, there: Rows) -> str:
    """Return what docs/measured/clusters.rst includes."""
    about = (
        f"One process takes {costs.example * 1e6:.0f} microseconds an example and "
        f"{costs.update * 1e3:.1f} ms an update ({machine()['cpu']}). Two that send "
        f"messages add up {costs.summed / 1e6:.1f} MB a mini-batch, and send each "
        f"other {costs.gathered * K / 1e6:.1f} MB more.\n"
    )
    ways = {"memory": "common memory", "messages": "messages"}
    estimates = [
        {"ranks": str(row["ranks"])}
        | {name: f"{value:.2g}" for name, value in row.items() if name != "ranks"}
        for row in there[1:]
    ]
    simulated = [(f"{k}, ``{APART}``", f"{{{k}, {APART}}}") for k in LINKS]
    simulated = [(k, f"{{{k}}}") for k in LINKS] + simulated
    return "\n".join([
        about,
        table("", MEASURED, [row | {"through": ways[row["way"]]} for row in here]),
        "Times as fast as one process, for networks with latencies of 60, 25 and 2\n"
        "microseconds:\n",
        table("", [("processes", "{ranks}"), *simulated], estimates),
    ])  # fmt: skip


def draw(path: Path, costs: Costs) -> None:
    """Draw the speed-up by ranks, for each network."""
    with picture(path, 1, (6, 4)) as (_, [axes]):
        for i, (name, link) in enumerate(LINKS.items()):
            shared = [costs.speed_up(ranks, link) for ranks in RANKS]
            apart = [costs.averaged(ranks, AVERAGE_EVERY, link) for ranks in RANKS]
            axes.plot(RANKS, shared, f"C{i}o-", label=name)
            axes.plot(RANKS, apart, f"C{i}s--", label=f"{name}, {APART}")
        axes.plot(*PAPER, "k*", ms=11, label="the paper's 40 CPUs (its network)")
        axes.plot(RANKS, RANKS, color="gray", lw=0.5)
        axes.set(xscale="log", yscale="log", xlabel="processes", ylabel="times as fast")
        axes.set_xticks(RANKS, [str(n) for n in RANKS])
        ticks = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]
        axes.set_yticks(ticks, [f"{n:g}" for n in ticks])
        axes.minorticks_off()
        axes.legend(fontsize="small")


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--ranks", nargs="*", type=int, default=[2])
    options.add_argument("--seconds", type=float, default=3.0, help="a measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--worker", help="a rank of this script")
    options.add_argument("--docs", type=Path, help="folder of the page")
    options.add_argument("--most-off", type=float, help="share; fails if more")
    args = options.parse_args()
    if args.worker:
        work_of_rank(args.worker, measured)
        return
    ranks = sorted({2, *args.ranks})
    best: dict[Any, dict[str, Any]] = {}
    for _ in range(args.rounds):
        ask = partial(under_mpi, __file__, seconds=args.seconds)
        now = {"one": ask(1, {})}
        for n in ranks:
            now[n, "memory"], now[n, "messages"] = ask(n, {}), ask(n, MESSAGES)
        best = {k: least(best.get(k, v), v) for k, v in now.items()}
    costs = costs_of(best["one"], best[2, "messages"])
    here, there = beside(best, ranks), simulated(costs)
    report("Ranks here, and the model", here, named(args.json, "here"))
    report("Simulated: times as fast as one", there, named(args.json, "clusters"))
    if args.docs:
        (args.docs / "cluster_examples.inc").write_text(page(costs, here, there))
        draw(args.docs / "cluster_examples.svg", costs)
    if args.most_off is not None:
        cores = os.cpu_count() or 1
        off = {(r["ranks"], r["way"]): r["ms"] / r["model, ms"] - 1
               for r in here if r["ranks"] <= cores}  # fmt: skip
        wrong = {k: f"{v:+.0%}" for k, v in off.items() if abs(v) > args.most_off}
        if wrong:
            raise SystemExit(f"The model is off by more than {args.most_off}: {wrong}")


if __name__ == "__main__":
    main()
