"""What docs/measured shows of the tiers of kernels, from one run of neural.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.parallel_page import list_table
from common.table import Rows, machine


def kernels(row: dict[str, Any]) -> str:
    """A tier by the name that the pages have for it."""
    name = str(row["tier"]).replace("avx", "AVX").replace("AVX512", "AVX-512")
    rounded = row["precision"] == "bfloat16"
    return f"bfloat16, {name.replace('amx', 'AMX')}" if rounded else name


def best(rows: Rows, name: str) -> dict[str, Any]:
    """The row where it is largest."""
    return max(rows, key=lambda row: row[name] or 0)


def tiers_page(rows: Rows) -> str:
    """Each tier at each K: examples a second, and the share of its limit."""
    batches = sorted({row["K"] for row in rows})
    parts = {"train": "training", "score": "scoring"}
    lines = []
    for part, title in parts.items():
        for network in dict.fromkeys(row["network"] for row in rows):
            same = [r for r in rows if r["part"] == part and r["network"] == network]
            lines += one_network(f"{network}, {title}", same, batches)
    here = machine()
    with_torch = any(row["PyTorch ex/s"] for row in rows)
    beside = " and PyTorch in turn" if with_torch else ""
    about = (
        f"One core of an {here['cpu']}, examples a second, and the share of what the "
        f"tier's instructions can do at most (K = 1: of the memory){beside}.\n\n"
    )
    header = ["", "kernels", *(f"K = {K}" for K in batches)]
    return about + list_table("", header, lines)


def one_network(title: str, rows: Rows, batches: list[int]) -> list[list[str]]:
    """Its lines of the table: a tier each, then PyTorch."""
    lines = []
    for name in dict.fromkeys(kernels(row) for row in rows):
        own = {row["K"]: row for row in rows if kernels(row) == name}
        cells = [
            f"{own[K]['nplm ex/s']:,.0f} ({own[K]['share']:.0%})" if K in own else ""
            for K in batches
        ]
        lines.append([title, name, *cells])
    for precision in dict.fromkeys(row["precision"] for row in rows):
        cells = []
        for K in batches:
            same = [r for r in rows if r["K"] == K and r["precision"] == precision]
            theirs = best(same, "PyTorch ex/s")["PyTorch ex/s"] if same else None
            cells.append(f"{theirs:,.0f}" if theirs else "")
        if any(cells):
            rounded = ", bfloat16" if precision == "bfloat16" else ""
            lines.append([title, f"PyTorch{rounded}", *cells])
    return lines


def draw(path: Path, rows: Rows) -> None:
    """Training by K, a line a tier, a panel a network."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    trained = [row for row in rows if row["part"] == "train"]
    networks = list(dict.fromkeys(row["network"] for row in trained))
    figure, axes = plt.subplots(
        1, len(networks), figsize=(4 * len(networks), 3.6), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for axis, network in zip(axes[0], networks, strict=True):
        same = [row for row in trained if row["network"] == network]
        for i, name in enumerate(dict.fromkeys(kernels(row) for row in same)):
            own = [row for row in same if kernels(row) == name]
            axis.loglog(
                [r["K"] for r in own], [r["nplm ex/s"] for r in own], "o-",
                color=f"C{i}", label=name,
            )  # fmt: skip
        theirs = {
            row["K"]: best(
                [r for r in same if r["K"] == row["K"] and r["precision"] == "float32"],
                "PyTorch ex/s",
            )["PyTorch ex/s"]
            for row in same
            if row["precision"] == "float32"
        }
        if any(theirs.values()):
            axis.loglog(theirs.keys(), theirs.values(), "k:", label="PyTorch, float32")
        ticks = sorted({row["K"] for row in same})
        axis.set(title=network, xlabel="batch_size", xticks=ticks)
        axis.set_xticklabels([str(K) for K in ticks])
        axis.minorticks_off()
    axes[0][0].set(ylabel="examples a second")
    axes[0][0].legend(fontsize=7)
    figure.savefig(path)
