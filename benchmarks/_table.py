"""What every benchmark shares: timing, a table on the screen, a JSON file."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table


@dataclass
class Row:
    """One measurement beside its peer's."""

    what: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    # Whether more is better: the ratio is above 1 where ours is better.
    more_is_better: bool = True
    # Where the peer is no public package its figure was recorded elsewhere.
    recorded: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times as good as the peer."""
        if self.peer_value is None:
            return None
        ratio = self.value / self.peer_value
        return ratio if self.more_is_better else 1 / ratio


def best_of(function: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of CPU time of the fastest of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def machine() -> dict[str, object]:
    """Facts about the machine that figures depend on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.split(":")[1].strip() for line in lines if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def report(title: str, rows: list[Row], path: str | None) -> None:
    """Print a table; write JSON if a path is given."""
    facts = machine()
    table = Table(title=title, caption=f"{facts['processor']}, {facts['cores']} cores")
    for column in ("", "nplm", "unit", "peer", "its figure", "ratio"):
        table.add_column(column, justify="left" if column in ("", "peer") else "right")
    for row in rows:
        theirs = "" if row.peer_value is None else f"{row.peer_value:,.4g}"
        table.add_row(
            row.what,
            f"{row.value:,.4g}",
            row.unit,
            row.peer + (" (recorded)" if row.recorded else ""),
            theirs,
            "" if row.ratio is None else f"{row.ratio:.2f}",
        )
    Console().print(table)
    if path is not None:
        found = {
            "title": title,
            "machine": facts,
            "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
        }
        Path(path).write_text(json.dumps(found, indent=1) + "\n")
