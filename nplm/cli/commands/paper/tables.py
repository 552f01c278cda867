"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDEST = 1000  # columns


def print_table(
    console: Console, title: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table at its full width, also where that is not a terminal's."""
    # Without frames and padding it fits a terminal of 80 columns.
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, show_edge=False)
    for i, column in enumerate(header):
        table.add_column(column, justify="right" if i else "left", no_wrap=not i)
    for row in rows:
        table.add_row(*row)
    options = console.options.update(max_width=WIDEST)
    width, full = console.width, Measurement.get(console, options, table).maximum
    console.width = max(width, full)
    console.print(table)
    console.width = width
