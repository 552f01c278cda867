"""The writer of the pages in docs/measured: tables of rows, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

from common.table import Rows


def table(title: str, columns: Sequence[tuple[str, str]], rows: Rows) -> str:
    """A table of rows; a column is a heading and a format of a row, "{valid:.1f}"."""
    header, formats = zip(*columns)
    cells = [[form.format_map(row) for form in formats] for row in rows]
    return list_table(title, [*header], cells)


def list_table(title: str, header: list[str], rows: list[list[str]]) -> str:
    """A list-table of reStructuredText; a first cell that repeats is left empty."""
    lines = [f".. list-table:: {title}".rstrip(), "   :header-rows: 1", ""]
    above = ""
    for row in [header, *rows]:
        first = "" if row[0] == above else row[0]
        above = row[0]
        cells = [first, *row[1:]]
        lines += [f"   {'* ' if i == 0 else '  '}- {c}" for i, c in enumerate(cells)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def with_conditions(text: str, rows: Rows, precision: str = "float32") -> str:
    """A table, and where the rows of it were measured."""
    return f"{text}\n{conditions(rows, precision)}\n"


def conditions(rows: Rows, precision: str = "float32") -> str:
    """On what rows that files keep were measured, and beside how much else."""
    runs = [run for row in rows for run in row["machines"]]
    cores = max(run["cores"] for run in runs)
    return (
        f"One thread of an {cpus(runs)}, {precision}, by processor time, in "
        f"{len(runs)} runs. Other programs ran beside some: the load of the "
        f"{cores} cores, this thread included, was {loads(runs)}."
    )


def cpus(runs: Rows) -> str:
    """The processors of runs."""
    return " and an ".join(sorted({run["cpu"] for run in runs}))


def loads(runs: Rows) -> str:
    """The lowest and the highest load of runs."""
    values = [run[name] for run in runs for name in run if name.startswith("load")]
    return f"{min(values):.1f} to {max(values):.1f}"


@contextmanager
def picture(
    path: Path, n_panels: int, size: tuple[float, float], across: int = 3
) -> Iterator[tuple[Any, list[Any]]]:
    """A figure and its panels, saved at the end: of the same rows, the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "nplm"
    across = min(across, n_panels)
    down = ceil(n_panels / across)
    figure = plt.figure(figsize=size, layout="constrained")
    yield figure, [figure.add_subplot(down, across, 1 + i) for i in range(n_panels)]
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
