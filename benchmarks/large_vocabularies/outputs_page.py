"""What docs/measured shows of outputs and losses, from the rows of outputs.py."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

from common.page import list_table, picture, table, with_conditions
from common.table import Rows

SLOWEST, FASTEST = "exact, K = 1", "exact"
NEAR = 1.02  # what counts as the same perplexity
TEXTS = {"brown": "Brown", "wiki": "Wiki"}
# Kinds of outputs, by the first words of their names.
KINDS = {
    "noise samples": ("importance", "nce"), "classes": ("classes",),
    "trees": ("tree", "Huffman"),
}  # fmt: skip


def learnt(rows: Rows) -> Rows:
    """What the terminal shows."""
    return [
        {
            "way": row["way"], "windows": row["seen"], "CPU s": row["seconds"],
            "windows/s": windows_a_second(row),
            "watched": row["points"][-1][2] if row["points"] else None,
        }
        for row in rows
    ]  # fmt: skip


def summed(rows: Rows) -> Rows:
    """What the terminal shows of normalisers, a line an epoch."""
    return [
        {"way": row["way"], "epochs": epochs, **found}
        for row in rows
        for epochs, found in enumerate(row["reached"], 1)
    ]


def windows_a_second(row: dict[str, Any]) -> float:
    return row["seen"] / row["seconds"] if row["seen"] else 0.0


def reached(row: dict[str, Any], level: float) -> tuple[float, float] | None:
    """Windows and seconds to a perplexity: between two points, by its logarithm."""
    before: list[float] | None = None
    for point in row["points"]:
        if point[2] <= level:
            if before is None:
                return point[0], point[1]
            part = log(before[2] / level) / log(before[2] / point[2])
            n, seconds = (a + part * (b - a) for a, b in zip(before, point[:2]))
            return n, seconds
        before = point
    return None


def seconds_to(row: dict[str, Any], level: float) -> tuple[str, float]:
    """The cell of a table, and all seconds in a number; 0 if it was not reached."""
    at, grouping = reached(row, level), row["grouping"]
    if at is None:
        return f"not in {shown(row['seconds'])}", 0.0
    before = f" and {shown(grouping)} to group" if grouping else ""
    return shown(at[1]) + before, at[1] + grouping


def shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def by_way(rows: Rows, corpus: str, ways: list[str]) -> dict[str, dict[str, Any]]:
    """The rows that have a point, by way."""
    found = {r["way"]: r for r in rows if r.get("corpus") == corpus and r["points"]}
    return {way: found[way] for way in ways if way in found}


def time_table(rows: Rows, corpus: str, ways: list[str]) -> str:
    """CPU seconds to the perplexity of the exact loss."""
    by_name = by_way(rows, corpus, ways)
    least = min(row["points"][-1][2] for row in by_name.values() if is_exact(row))
    level, exact = NEAR * least, by_name[FASTEST]
    times = {way: seconds_to(row, level) for way, row in by_name.items()}
    rates = {way: windows_a_second(row) for way, row in by_name.items()}
    if not times.get(SLOWEST, ("", 0.0))[1]:
        # An example at a time is too slow to wait for, but it learns as much of one
        # as mini-batches do, or more: it needs as many, at its best speed measured.
        needed = reached(exact, level)
        timed = [r["trains"] for r in rows if r["way"] == SLOWEST
                 and "trains" in r and r["words"] == exact["words"]]  # fmt: skip
        rates[SLOWEST] = max([*timed, rates.get(SLOWEST, 0.0)])
        assert needed
        assert rates[SLOWEST]
        seconds = needed[0] / rates[SLOWEST]
        times[SLOWEST] = f"{shown(seconds)} by its rate", seconds
    slow, fast = times[SLOWEST][1], times[FASTEST][1]
    lines = []
    for way in (way for way in ways if way in times):
        said, seconds = times[way]
        ratios = [shown(of / seconds) if seconds else "" for of in (slow, fast)]
        lines.append([way, f"{rates[way]:,.0f}", said, *ratios])
    header = ["", "windows a CPU second", f"CPU s to {level:.1f}"]
    header += ["times exact, K = 1", "times exact"]
    n, seen = exact["windows"], exact["points"][-1][0]
    about = (
        f":math:`|V|` = {exact['words']:,}, {n:,} training windows. The exact loss had "
        f"come to a perplexity of {least:.1f} when it had seen {seen:,}, and time is "
        f"that to {level:.1f}, 2% above.\n\n"
    )
    made = list_table("", header, lines)
    return about + with_conditions(made, list(by_name.values()))


def is_exact(row: dict[str, Any]) -> bool:
    return row["way"] in (SLOWEST, FASTEST)


def speed_table(rows: Rows, ways: list[str]) -> str:
    """Examples a second and memory, by the size of the vocabulary."""
    timed = [row for row in rows if "trains" in row]
    lines = []
    for n_words in sorted({row["words"] for row in timed}):
        same = {row["way"]: row for row in timed if row["words"] == n_words}
        first = same.get(SLOWEST)
        lines += [
            same[way] | {"times": shown(same[way]["trains"] / first["trains"])
                         if first else ""}
            for way in ways if way in same
        ]  # fmt: skip
    return with_conditions(table("", SPEED, lines), timed)


SPEED = [
    (":math:`|V|`", "{words:,}"), ("", "{way}"),
    ("trained a CPU second", "{trains:,.0f}"), ("times exact, K = 1", "{times}"),
    ("scored", "{scores:,.0f}"), ("MB of parameters", "{parameters MB:,.0f}"),
    ("MB of training, in all", "{training MB:,.0f}"),
    ("MB of scoring beside the parameters", "{scoring MB:,.1f}"),
]  # fmt: skip
SUMS = [
    ("", "{way}"), ("epochs", "{epochs}"),
    (":math:`\\log Z`, mean", "{mean:+.3f}"), ("deviation", "{deviation:.3f}"),
    ("farthest from 0", "{farthest:.2f}"), ("perplexity", "{perplexity:.1f}"),
    ("by the scores as they are", "{of the scores:.1f}"),
]  # fmt: skip


def tables(rows: Rows, ways: list[str], timed: list[str]) -> dict[str, str]:
    """The tables that have rows, by name."""
    made = {}
    for corpus in TEXTS:
        if FASTEST in by_way(rows, corpus, ways):
            made[corpus] = time_table(rows, corpus, ways)
    if any("trains" in row for row in rows):
        made["speed"] = speed_table(rows, timed)
    if sums := [row for row in rows if "reached" in row]:
        # How far normalisers are from 1, and what leaving them out does.
        made["sums"] = with_conditions(table("", SUMS, summed(sums)), sums)
    return made


def draw(path: Path, rows: Rows, ways: list[str]) -> None:
    """Perplexity against time: a row a text, a panel a kind of output, same axes."""
    texts = [corpus for corpus in TEXTS if by_way(rows, corpus, ways)]
    size = 3.6 * len(KINDS), 3.8 * len(texts)
    with picture(path, len(KINDS) * len(texts), size, len(KINDS)) as (_, axes):
        for corpus, across in zip(texts, zip(*[iter(axes)] * len(KINDS))):
            by_name = by_way(rows, corpus, ways)
            n_words = next(iter(by_name.values()))["words"]
            for axis in across[1:]:
                axis.sharex(across[0])
                axis.sharey(across[0])
            for axis, (kind, begins) in zip(across, KINDS.items()):
                for way, row in by_name.items():
                    if not is_exact(row) and not way.startswith(begins):
                        continue
                    _, seconds, perplexity = zip(*row["points"])
                    style = "k" if is_exact(row) else f"C{ways.index(way)}"
                    marker = ".--" if way == SLOWEST else ".-"
                    axis.loglog(seconds, perplexity, marker, color=style, label=way)
                axis.set(
                    title=f"{TEXTS[corpus]}, {n_words:,} words: {kind}",
                    xlabel="CPU seconds of training",
                )
                axis.title.set_fontsize("medium")
                axis.yaxis.set_minor_formatter("{x:.0f}")
                axis.legend(
                    fontsize="x-small", frameon=False, loc="upper center",
                    bbox_to_anchor=(0.5, -0.17), ncols=2,
                )  # fmt: skip
            across[0].set_ylabel("perplexity of validation windows")
