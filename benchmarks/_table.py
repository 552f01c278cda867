"""What the benchmarks share: a table on the terminal, and the same as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
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
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "argv": sys.argv[1:],
    }


def report(title: str, rows: Rows, path: Path | None = None) -> None:
    """Print rows of equal keys as a table; write them to `path` as JSON."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(
            name, justify="left" if name == next(iter(rows[0])) else "right"
        )
    for row in rows:
        table.add_row(*(_shown(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if path is not None:
        data = {"title": title, "machine": machine(), "rows": rows}
        path.write_text(json.dumps(data, indent=1) + "\n")


def named(path: Path | None, part: str) -> Path | None:
    """The file of one of several tables: result-time.json."""
    return path and path.with_stem(f"{path.stem}-{part}")


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
