"""What the benchmarks share: a table on the terminal and as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Rows = list[dict[str, Any]]


def parser(description: str) -> argparse.ArgumentParser:
    """Argument parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, help="also write the rows to this file")
    return made


def machine() -> dict[str, Any]:
    """Where the figures were measured."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if "model name" in x), "")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load": load(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "argv": sys.argv[1:],
    }


def load() -> float:
    return os.getloadavg()[0]


def report(title: str, rows: Rows, path: Path | None = None) -> None:
    """Print rows of equal keys as a table; write them to `path` as JSON.

    The table leaves out where rows were measured, their "machines".
    """
    table = Table(title=title)
    names = [name for name in rows[0] if name != "machines"]
    for name in names:
        table.add_column(name, justify="left" if name == names[0] else "right")
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in names))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if path is not None:
        data = {"title": title, "machine": machine(), "rows": rows}
        path.write_text(json.dumps(data, indent=1) + "\n")


def kept(
    folder: Path, name: str, measure: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """A row that a file keeps: measured, with the machine beside it, if there is none.

    A table can so be made in several runs, and tells under what load each was.
    """
    path = folder / f"{file_name(name)}.json"
    if not path.exists():
        before = machine()
        row = measure() | {"machines": [before | {"load at its end": load()}]}
        path.write_text(json.dumps(row, indent=1) + "\n")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def file_name(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "_")


def named(path: Path | None, part: str) -> Path | None:
    """The file of one of several tables: result-time.json."""
    return path and path.with_stem(f"{path.stem}-{part}")


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """The values of NAME=VALUE: Python's literals, or text."""
    return {name: _value(text) for name, text in (pair.split("=", 1) for pair in pairs)}


def _value(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
