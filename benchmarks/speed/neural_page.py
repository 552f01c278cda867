"""What docs/measured shows of the tiers of kernels, from one run of neural.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.page import list_table, picture
from common.table import Rows, machine


def kernels(row: dict[str, Any]) -> str:
    """A tier by the name that the pages have for it."""
    name = str(row["tier"]).replace("avx", "AVX").replace("AVX512", "AVX-512")
    rounded = row["precision"] == "bfloat16"
    return f"bfloat16, {name.replace('amx', 'AMX')}" if rounded else name


def best(rows: Rows, name: str) -> dict[str, Any]:
    """The row where it is largest."""
    return max(rows, key=lambda row: row[name] or 0)


TRAIN = {"part": "train", "precision": "float32"}
SCORE = {"part": "score", "precision": "float32"}
RATIOS = {
    "training, K = 1": TRAIN | {"K": 1},
    "training, K = 16": TRAIN | {"K": 16},
    "training, best K": TRAIN,
    "training in bfloat16, best K": TRAIN | {"precision": "bfloat16"},
    "scoring, best K": SCORE,
    "scoring in bfloat16, best K": SCORE | {"precision": "bfloat16"},
}


def tiers_page(rows: Rows) -> str:
    """Each tier at each K: examples a second, and the share of its limit."""
    batches = sorted({row["K"] for row in rows})
    parts = {"train": "training", "score": "scoring"}
    lines = []
    for part, title in parts.items():
        for network in networks(rows):
            same = having(rows, {"part": part, "network": network})
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


def ratios_page(rows: Rows) -> str:
    """The fastest kernels beside PyTorch, each at its best K or both at the same."""
    lines = [
        [title, *(cell(rows, wanted | {"network": name}) for name in networks(rows))]
        for title, wanted in RATIOS.items()
        if having(rows, wanted)
    ]
    return list_table("", ["", *networks(rows)], lines)


def limited_page(rows: Rows, tier: str) -> str:
    """A tier beside PyTorch, and what the ratio were if it did nothing but multiply."""
    lines = []
    for title, wanted in ("training", TRAIN), ("scoring", SCORE):
        each = [wanted | {"network": name} for name in networks(rows)]
        lines.append([title, *(cell(rows, one, tier) for one in each)])
        fastest = [beside(rows, one, tier) for one in each]
        most = [mine["nplm ex/s"] / mine["share"] / theirs for mine, theirs in fastest]
        lines.append([f"{title}, at most", *(f"{ratio:.2f}" for ratio in most)])
    return list_table("", ["", *networks(rows)], lines)


def cell(rows: Rows, wanted: dict[str, Any], tier: str | None = None) -> str:
    """Both rates, their ratio, and the share of the limit."""
    mine, theirs = beside(rows, wanted, tier)
    rate = mine["nplm ex/s"]
    return f"{rate:,.0f} / {theirs:,.0f} = {rate / theirs:.2f}; {mine['share']:.0%}"


def beside(
    rows: Rows, wanted: dict[str, Any], tier: str | None = None
) -> tuple[dict[str, Any], float]:
    """Give the best row of a tier, by default the fastest, and PyTorch's best rate."""
    same = having(rows, wanted)
    mine = having(same, {"tier": tier or same[0]["tier"]})
    return best(mine, "nplm ex/s"), best(same, "PyTorch ex/s")["PyTorch ex/s"]


def having(rows: Rows, wanted: dict[str, Any]) -> Rows:
    """Rows with these values."""
    return [row for row in rows if wanted.items() <= row.items()]


def networks(rows: Rows) -> list[str]:
    """Names, in the order of the rows."""
    return list(dict.fromkeys(row["network"] for row in rows))


def one_network(title: str, rows: Rows, batches: list[int]) -> list[list[str]]:
    """Its lines of the table: a tier each, then PyTorch."""
    lines = []
    for name in dict.fromkeys(kernels(row) for row in rows):
        by_K = {row["K"]: row for row in rows if kernels(row) == name}
        cells = [
            "{nplm ex/s:,.0f} ({share:.0%})".format_map(by_K[K]) if K in by_K else ""
            for K in batches
        ]
        lines.append([title, name, *cells])
    for precision in dict.fromkeys(row["precision"] for row in rows):
        cells = []
        for K in batches:
            same = having(rows, {"K": K, "precision": precision})
            theirs = best(same, "PyTorch ex/s")["PyTorch ex/s"] if same else None
            cells.append(f"{theirs:,.0f}" if theirs else "")
        if any(cells):
            rounded = ", bfloat16" if precision == "bfloat16" else ""
            lines.append([title, f"PyTorch{rounded}", *cells])
    return lines


def draw(path: Path, rows: Rows) -> None:
    """Training by K, a line a tier, a panel a network."""
    trained = [row for row in rows if row["part"] == "train"]
    names = networks(trained)
    with picture(path, len(names), (4 * len(names), 3.6)) as (_, axes):
        for axis, network in zip(axes, names, strict=True):
            same = having(trained, {"network": network})
            for i, name in enumerate(dict.fromkeys(kernels(row) for row in same)):
                tier = [row for row in same if kernels(row) == name]
                axis.loglog(
                    [r["K"] for r in tier], [r["nplm ex/s"] for r in tier], "o-",
                    color=f"C{i}", label=name,
                )  # fmt: skip
            single = having(same, {"precision": "float32"})
            theirs = {
                K: best(having(single, {"K": K}), "PyTorch ex/s")["PyTorch ex/s"]
                for K in dict.fromkeys(row["K"] for row in single)
            }
            if any(theirs.values()):
                label = "PyTorch, float32"
                axis.loglog(theirs.keys(), theirs.values(), "k:", label=label)
            ticks = sorted({row["K"] for row in same})
            axis.set(title=network, xlabel="batch_size", xticks=ticks)
            axis.set_xticklabels([str(K) for K in ticks])
            axis.minorticks_off()
        axes[0].set(ylabel="examples a second")
        axes[0].legend(fontsize=7)
