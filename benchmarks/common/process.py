"""Measure in a process of its own: what a fit has freed may stay with the process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def fresh(script: str, work: str, **options: Any) -> dict[str, Any]:
    """Call a function of a script in a process of its own; return its result."""
    done = subprocess.run(
        [sys.executable, script, "--child", json.dumps([work, options])],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def serve(child: str, functions: dict[str, Callable[..., Any]]) -> None:
    """Do what `fresh` asked for, in the process that it started."""
    work, options = json.loads(child)
    print(json.dumps(functions[work](**options)))


def resident(which: str) -> float:
    """Memory of this process in bytes, now ("VmRSS") or at most ("VmHWM").

    Not getrusage: its maximum begins with that of the process that started this.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(which))
    return 1024.0 * int(line.split()[1])
