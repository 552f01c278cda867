"""What docs/measured shows of run.py: its rows, the best of each cell, a chart."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from common.page import list_table, picture, table, with_conditions
from common.table import Rows, file_name

TITLES = {"ptb": "Penn Treebank", "brown": "Brown", "wiki-2M": "Wiki, 2M words",
          "wiki-14M": "Wiki, 14M words"}  # fmt: skip
# By their maker and the fastest tier of their float32 kernels.
PROCESSORS = {"AMD avx2": "AVX2", "AMD avx512": "Zen 4, AVX-512",
              "Intel(R) avx512": "Xeon, AMX"}  # fmt: skip
NAMES = {"network": "nplm", "lstm": "LSTM", "gpt": "GPT", "default": "nplm, default",
         "kneser-ney": "Kneser-Ney 5"}  # fmt: skip
WITHOUT_SETTINGS = "door-network"  # a network of nplm's, too
BUDGETED = ("network", "lstm", "gpt")
BUDGETS = (1, 3, 10, 30, 60, 100)
ACROSS = 3  # panels of the picture, side by side
TICKS = (60, 80, 100, 120, 150, 200, 250, 300, 400)
OVER = 1.1  # a network trains for whole epochs: how far over its budget one may be


def write(docs: Path, rows: Rows) -> None:
    """Add rows to those in peers.json, and make the page of all."""
    path = docs / "peers.json"
    known = json.loads(path.read_text()) if path.exists() else []
    shown = [row for row in rows if row["model"] in (*NAMES, WITHOUT_SETTINGS)]
    merged = {_key(row): without_paths(row) for row in known + shown}
    every = [merged[key] for key in sorted(merged)]
    lines = ",\n".join(json.dumps(row) for row in every)
    path.write_text(f"[\n{lines}\n]\n")
    best_of_each, runs = page(every)
    (docs / "peers.inc").write_text(best_of_each)
    (docs / "peers_runs.inc").write_text(runs)
    draw(docs / "peers.svg", every)


def _key(row: dict[str, Any]) -> str:
    return file_name(
        f"{row['text']} {_processor(row)} {row['model']} {row['minutes']:03d} "
        f"{row['changes']}"
    )


def _kind(row: dict[str, Any]) -> str:
    return "network" if row["model"] == WITHOUT_SETTINGS else str(row["model"])


def _processor(row: dict[str, Any]) -> str:
    return f"{row['machines'][0]['cpu'].split()[0]} {row['tier']}"


def without_paths(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its recipe and the command lines, which name folders."""
    machines = [
        {name: value for name, value in machine.items() if name != "argv"}
        for machine in row["machines"]
    ]
    others = {name: value for name, value in row.items() if name != "recipe"}
    return others | {"machines": machines}


class Place(NamedTuple):
    """A text, and the processor on which models were trained on it."""

    text: str
    processor: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Place:
        return cls(row["text"], _processor(row))

    @property
    def title(self) -> str:
        return f"{TITLES[self.text]} ({PROCESSORS[self.processor]})"


def places(rows: Rows) -> list[Place]:
    """The places that have rows, in the order of `TITLES` and `PROCESSORS`."""
    every = (Place(text, processor) for text in TITLES for processor in PROCESSORS)
    have = {Place.of(row) for row in rows}
    return [place for place in every if place in have]


def best(rows: Rows, place: Place, model: str, minutes: int) -> dict[str, Any] | None:
    """The row of a cell that is best on the validation part, within the budget."""
    found = [
        row for row in rows
        if Place.of(row) == place
        and (_kind(row), row["minutes"]) == (model, minutes)
        and (not minutes or row["CPU s"] <= OVER * 60 * minutes)
    ]  # fmt: skip
    return min(found, key=lambda row: row["valid"], default=None)


RUN = [
    ("", "{place}, {name}"), ("budget", "{budget}"), ("CPU s", "{CPU s:.0f}"),
    ("epochs", "{epochs:.1f}"), ("million parameters", "{million:.1f}"),
    ("valid", "{valid:.1f}"), ("test", "{test:.1f}"),
    ("words/s in scoring", "{words/s:,.0f}"),
]  # fmt: skip
TRIED = [
    ("", "{place}, {name}, {minutes} min"), ("change", "{change}"),
    ("CPU s", "{CPU s:.0f}"), ("valid", "{valid:.1f}"),
]  # fmt: skip


def page(rows: Rows) -> tuple[str, str]:
    """A table of the cells; the best runs, and all that was tried."""
    cells, runs = [], []
    for place in places(rows):
        for minutes in BUDGETS:
            reached = [best(rows, place, model, minutes) for model in BUDGETED]
            if any(reached):
                shown = [f"{row['test']:.1f}" if row else "" for row in reached]
                cells.append([place.title, str(minutes), *shown])
        runs += [
            best(rows, place, model, minutes)
            for model in NAMES for minutes in (0, *BUDGETS)
        ]  # fmt: skip
    header = ["text", "CPU minutes", *(NAMES[model] for model in BUDGETED)]
    tables = [
        table("The runs", RUN, [_in_words(row) for row in runs if row]),
        table("What was tried", TRIED, [_in_words(r) for r in rows if r["minutes"]]),
    ]
    return (
        list_table("Test perplexity, the best setting of each", header, cells),
        with_conditions("\n".join(tables), rows, "float32 or bfloat16"),
    )


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    """A row, and how the page spells parts of it."""
    changes = row["changes"].replace("_", " ") or "as in ``run.py``"
    if row["model"] == WITHOUT_SETTINGS:
        changes = "``AutoLM``, without settings"
    return row | {
        "place": Place.of(row).title, "name": NAMES[_kind(row)],
        "budget": row["minutes"] or "", "million": row["parameters"] / 1e6,
        "change": changes,
    }  # fmt: skip


def draw(path: Path, rows: Rows) -> None:
    """Test perplexity by CPU minutes, a panel a text."""
    panels = places(rows)
    size = 3.6 * ACROSS, 3.4 * ceil(len(panels) / ACROSS)
    with picture(path, len(panels), size, ACROSS) as (figure, axes):
        for axis, place in zip(axes, panels):
            _draw_place(axis, rows, place)
        figure.supylabel("perplexity of the test part")
        axes[0].legend(fontsize="small")


def _draw_place(axis: Any, rows: Rows, place: Place) -> None:
    for i, model in enumerate(BUDGETED):
        cells = [best(rows, place, model, minutes) for minutes in BUDGETS]
        reached = [row for row in cells if row]
        axis.plot(
            [row["CPU s"] / 60 for row in reached], [row["test"] for row in reached],
            f"C{i}o-", label=NAMES[model],
        )  # fmt: skip
    if row := best(rows, place, "default", 0):
        axis.plot(row["CPU s"] / 60, row["test"], "C0*", label=NAMES["default"])
    if row := best(rows, place, "kneser-ney", 0):
        axis.axhline(row["test"], color="gray", ls="--", lw=1,
                     label=NAMES["kneser-ney"])  # fmt: skip
    axis.set(xscale="log", yscale="log", title=place.title,
             xlabel="CPU minutes of training")  # fmt: skip
    axis.set_xlim(BUDGETS[0] * 0.5, BUDGETS[-1] * 1.4)
    axis.set_xticks(BUDGETS, [str(n) for n in BUDGETS])
    low, high = axis.get_ylim()
    ticks = [n for n in TICKS if low < n < high]
    axis.set_yticks(ticks, [str(n) for n in ticks])
    axis.minorticks_off()
