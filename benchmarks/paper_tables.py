"""The results page of the paper's tables, from what ``nplm reproduce`` measured.

    nplm reproduce table1 --folder runs/table1
    python benchmarks/paper_tables.py runs/table1/results.json

writes the tables and the picture that docs/paper/results.rst shows: as far as a table
is done, and with a sentence on what is not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from common.parallel_page import list_table

from nplm.experiments import draw, findings

DOCS = Path(__file__).parents[1] / "docs" / "paper"
PARTS = ("train", "valid", "test")


def page(results: dict[str, Any]) -> str:
    """All that is told of a table: figures, what is missing, findings, times."""
    return "\n".join(
        [figures(results), missing(results), held(results), times(results)]
    )


def figures(results: dict[str, Any]) -> str:
    header = ["row", "n", "c", "h", "m", "direct", "mix"]
    header += [f"{part}, {who}" for part in PARTS for who in ("paper", "ours")]
    lines = []
    for row in results["rows"]:
        ours = row["ours"] or {}
        cells = [shown(row[key]) for key in ("n", "c", "h", "m", "direct", "mix")]
        for part in PARTS:
            cells += [shown(row["paper"][part]), bold(shown(ours.get(part)))]
        lines.append([row["name"], *cells])
    return list_table("", header, lines)


def missing(results: dict[str, Any]) -> str:
    names = [row["name"] for row in results["rows"] if row["ours"] is None]
    if not names:
        return "All rows were measured.\n"
    return f"Not measured yet: {', '.join(names)}.\n"


def held(results: dict[str, Any]) -> str:
    return "".join(f"- {sentence}\n" for sentence in findings(results))


def times(results: dict[str, Any]) -> str:
    header = ["fit", "minutes", "CPU minutes", "threads", "epochs", "settings"]
    lines = []
    for fit in results["fits"]:
        settings = ", ".join(f"{key}={value}" for key, value in fit["settings"].items())
        lines.append([
            fit["fit"], f"{fit['seconds'] / 60:.1f}", f"{fit['CPU seconds'] / 60:.1f}",
            str(fit["threads"]), shown(fit["facts"].get("epochs")), f"``{settings}``",
        ])  # fmt: skip
    cpus = " and an ".join(sorted({fit["processor"] for fit in results["fits"]}))
    return list_table("", header, lines) + (
        f"\nTraining and scoring, on an {cpus}; CPU minutes are of all threads.\n"
    )


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def bold(text: str) -> str:
    return f"**{text}**" if text else ""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("results", nargs="+", type=Path, help="results.json")
    for path in options.parse_args().results:
        results = json.loads(path.read_text())
        (DOCS / f"{results['table']}.inc").write_text(page(results))
        draw(results, DOCS / f"{results['table']}.svg")


if __name__ == "__main__":
    main()
