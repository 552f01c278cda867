"""What docs/measured shows of threads, processes and clusters, from one run.

The tables and the picture show speedup.py's rows. What larger clusters would gain is
estimated here, by the cost model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common.networks import NETWORKS, Shape
from common.page import list_table, loads, picture, table
from common.table import Rows, machine
from parallel.costs import Cluster, Link

BATCHES = (1, 16, 128)

# -- the simulation ----------------------------------------------------------------


def clusters(slope: dict[int, float], overhead: float) -> list[Cluster]:
    """The clusters of the page; those of today have cores like this machine's."""
    # The paper's AP network: 5 epochs of 14 million words in three weeks on 40
    # CPUs (section 4.2), of which 1/15 was communication.
    example = 3 * 7 * 86_400 * 40 / (5 * 13_994_528) * 14 / 15
    athlon = example / NETWORKS["AP"].weights(1)
    return [
        # Myrinet 2000 under MPI: about 10 us and 200 MB/s.
        Cluster("Athlon, Myrinet", dict.fromkeys(slope, athlon), 1e-5,
                Link(200e6, 10e-6)),
        Cluster("today, 100 Gb/s InfiniBand", slope, overhead, Link(12e9, 2e-6)),
        Cluster("today, 10 Gb/s Ethernet", slope, overhead, Link(1.1e9, 25e-6)),
        Cluster("today, 1 Gb/s Ethernet", slope, overhead, Link(0.11e9, 60e-6)),
    ]  # fmt: skip


def simulate(slope: dict[int, float], overhead: float) -> Rows:
    rows = []
    shapes = {"AP": NETWORKS["AP"]}
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
                })  # fmt: skip
    return rows


# -- the page ----------------------------------------------------------------------


def span(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


RATIOS = [
    ("sync, 2 threads", "{sync 2:.2f}"), ("async, 2", "{async 2:.2f}"),
    ("locked, 2", "{locked 2:.2f}"), ("two fits at once", "{2 fits:.2f}"),
]  # fmt: skip
TODAY = [
    ("network", "{network}"), ("``batch_size``", "{K}"),
    ("examples a second, 1 thread", "{1 thread ex/s:,.0f}"), *RATIOS,
]  # fmt: skip
PAPER = [
    ("network", "{network}"), ("``batch_size``", "{K}"), *RATIOS,
    ("MPI, 2 processes", "{speed-up:.2f}"),
    ("share of its messages", "{communicating:.1%}"),
    ("by the model", "{its model:.1%}"),
]  # fmt: skip


def measured_page(today: Rows, threads: Rows, processes: Rows) -> str:
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
    first = table("The default, presets and other outputs", TODAY, today)
    return f"{about}{first}\n{table('Networks of the paper', PAPER, paper)}"


def model_page(processes: Rows, simulated: Rows) -> str:
    """How well the model does here, and what it says of clusters."""
    said = []
    for ranks in sorted({r["ranks"] for r in processes} - {1}):
        same = [r for r in processes if r["ranks"] == ranks]
        model, real = (span([r[n] for r in same]) for n in ("model", "speed-up"))
        said.append(f"{model} for {ranks} processes, where {real} was measured")
    about = f"On two cores the model says {'; '.join(said)}.\n\n"
    shown = {"AP": "17,964"}
    shown |= {f"AP, |V| = {n}": n for n in ("1,000,000", "10,000,000")}
    asked: dict[tuple[str, str], list[str]] = {}
    for row in simulated:
        if row["network"] in shown:
            cells = asked.setdefault((row["cluster"], shown[row["network"]]), [])
            cells.append(f"{row['64 ranks']:.2g}")
            if row["K"] == BATCHES[-1]:
                cells.append(f"{row['1024 ranks']:,.0f}")
    rows = [[*name, *cells] for name, cells in asked.items()]
    title = "Speed-up over one process on the AP network (n = 6, h = 60, m = 100)"
    header = ["cluster", ":math:`|V|`", "64 processes, K = 1", "K = 16", "K = 128"]
    return about + list_table(title, [*header, "1,024 processes, K = 128"], rows)


def draw(path: Path, slope: dict[int, float], overhead: float, rows: Rows) -> None:
    ranks = 2 ** np.arange(11)
    with picture(path, 3, (12, 3.8)) as (_, axes):
        for K, colour in zip(BATCHES, ("C0", "C1", "C2")):
            same = [r for r in rows if r["network"] == "MLP9" and r["K"] == K]
            M = [r["ranks"] for r in same]
            axes[0].plot(M, [r["model"] for r in same], color=colour, label=f"K = {K}")
            axes[0].plot(M, [r["speed-up"] for r in same], "o", color=colour)
        axes[0].set(title="MLP9 here: measured (dots), model", xticks=M, ylim=(0, None))
        shape = NETWORKS["AP"]
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
