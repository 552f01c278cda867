"""The results page of the paper's tables, from what ``nplm reproduce`` measured.

    nplm reproduce table1 --folder runs/table1
    python benchmarks/paper/tables.py runs/table1/results.json

writes the tables and the picture that docs/paper/results.rst shows: as far as a table
is done, and with a sentence on what is not.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.page import cpus, list_table
from nplm.experiments import draw, figures, findings, times

DOCS = Path(__file__).parents[2] / "docs" / "paper"


def page(results: dict[str, Any]) -> str:
    """All that is told of a table: figures, what is missing, findings, times."""
    return "\n".join([beside(results), missing(results), held(results), taken(results)])


def beside(results: dict[str, Any]) -> str:
    """The paper's figures beside ours, which are in bold."""
    header, *rows = figures(results)
    ours = [name.endswith(", ours") for name in header]
    lines = [
        [f"**{cell}**" if cell and own else cell for cell, own in zip(row, ours)]
        for row in rows
    ]
    return list_table("", header, lines)


def missing(results: dict[str, Any]) -> str:
    names = [row["name"] for row in results["rows"] if row["ours"] is None]
    if not names:
        return "All rows were measured.\n"
    return f"Not measured yet: {', '.join(names)}.\n"


def held(results: dict[str, Any]) -> str:
    return "".join(f"- {sentence}\n" for sentence in findings(results))


def taken(results: dict[str, Any]) -> str:
    """What each fit took, and how it was made."""
    header, *rows = times(results)
    lines = [[*cells, f"``{settings}``"] for *cells, settings in rows]
    machines = [{"cpu": fit["processor"]} for fit in results["fits"]]
    return list_table("", header, lines) + (
        f"\nTraining and scoring, on an {cpus(machines)}; CPU minutes are of all "
        "threads.\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("results", nargs="+", type=Path, help="results.json")
    for path in options.parse_args().results:
        results = json.loads(path.read_text())
        (DOCS / f"{results['table']}.inc").write_text(page(results))
        draw(results, DOCS / f"{results['table']}.svg")


if __name__ == "__main__":
    main()
