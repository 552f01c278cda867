"""Fit the rows of the rules of `AutoLM` again: which network a text and a time have.

A measured network is a row if its perplexity is below the line between the rows of its
text, in place of those that take about as long and are worse. Without --folder, the
measurements are those of docs/measured/peers.json, and the rows stay as they are:

    python benchmarks/peers/run.py ptb network 3 --set max_iter=7 --folder runs
    python benchmarks/peers/rules.py --folder runs

The rows are in nplm/models/neural/rows.csv. Compare runs of one machine, on which the
present rows were measured again, too.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import namedtuple
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import nplm

TABLE = Path(nplm.__file__).parent / "models" / "neural" / "rows.csv"
MEASURED = Path(__file__).parents[2] / "docs" / "measured" / "peers.json"
# Millions of words of the texts of run.py that need no features of spelling.
WORDS = {"ptb": 0.93, "wiki-2M": 2.0, "wiki-14M": 14.0}
# The ratio of two times that are about the same.
SAME_TIME = 1.3
CELLS = {
    "order": 2, "n_memory": 128, "direct": True, "tied": True, "spelling": False,
    "loss": "importance", "learning_rate": "linear",
}  # fmt: skip


HEADER, *LINES = TABLE.read_text().splitlines()
Row = namedtuple("Row", HEADER.split(","))  # words are in millions
ROWS = [Row(*map(json.loads, line.split(","))) for line in LINES]


def measured(runs: Iterable[dict[str, Any]]) -> list[Row]:
    """The runs of networks with LSTM cells, in bfloat16 or with AVX-512."""
    return [
        Row(
            WORDS[run["text"]], round(run["CPU s"] / 60, 2), *(
                run["settings"][name]
                for name in ("embedding_dim", "n_hidden", "n_noise",
                             "learning_rate_init", "alpha")
            ), run["epochs"], round(run["valid"], 1), run["settings"]["batch_size"],
        )
        for run in runs
        if run["model"] == "network" and run["text"] in WORDS
        and run["tier"] != "avx2" and CELLS.items() <= run["settings"].items()
    ]  # fmt: skip


def fitted(present: Iterable[Row], more: Iterable[Row]) -> list[Row]:
    """The rows with those of `more` that are better, by text and time."""
    kept = list(present)
    for row in sorted(more, key=lambda row: row.perplexity):
        same = sorted(r for r in kept if r.words == row.words)
        line = np.interp(
            math.log(row.minutes), [math.log(r.minutes) for r in same],
            [math.log(r.perplexity) for r in same],
        ) if same else math.inf  # fmt: skip
        near = [r for r in same if abs(math.log(r.minutes / row.minutes))
                < math.log(SAME_TIME)]  # fmt: skip
        is_best = all(row.perplexity < r.perplexity for r in near)
        if is_best and math.log(row.perplexity) < line:
            kept = [r for r in kept if r not in near] + [row]
    return sorted(kept)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--folder", type=Path, help="runs of run.py, a file a run")
    folder = options.parse_args().folder
    runs = json.loads(MEASURED.read_text())
    if folder is not None:
        runs = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    best = fitted(ROWS, measured(runs))
    for row in set(best) - set(ROWS):
        print("new:", row)
    lines = [HEADER, *(",".join(map(repr, row)) for row in best)]
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
