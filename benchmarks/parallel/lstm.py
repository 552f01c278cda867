"""What do two threads, and ranks of MPI, gain for the preset "memory"?

Words a second of the updates by the clock, on the first words of the Penn Treebank as
one text (1,024 words an update in 32 columns, tied output units, 1,024 noise samples).
The first command compares one thread with two, the second gives the speed of two ranks:

    python benchmarks/parallel/lstm.py
    mpiexec -n 2 python -m mpi4py benchmarks/parallel/lstm.py --ranks

Needs the Penn Treebank in NPLM_DATA.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

from common.table import Rows, parser, report
from nplm import available_tiers
from nplm.datasets import fetch_ptb
from speed.recurrent import SIZES, nplm_fit

THREADS: dict[str, dict[str, Any]] = {
    "1 thread": {}, "2, sync": {"n_jobs": 2},
    "2, async": {"n_jobs": 2, "parallel": "async"},
}  # fmt: skip


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--words", type=int, default=300_000)
    arguments.add_argument("--repeats", type=int, default=2)
    arguments.add_argument("--ranks", action="store_true", help="under mpiexec")
    args = arguments.parse_args()
    ways, first, params = THREADS, True, {}
    if args.ranks:
        from mpi4py import MPI

        from nplm import mpi

        comm = MPI.COMM_WORLD
        ways, first = {f"{comm.size} ranks": {}}, comm.rank == 0
        params = {"fit": mpi.fit}
    train = fetch_ptb().train[: args.words]
    precisions = ["float32", "bfloat16"]
    if available_tiers("bfloat16") == ["plain"]:
        precisions.remove("bfloat16")
    rows: Rows = []
    for m, h in SIZES:
        for precision in precisions:
            speeds = dict.fromkeys(ways, 0.0)
            for _ in range(args.repeats):  # in turn: other programs share the machine
                for name, way in ways.items():
                    speed = nplm_fit(
                        m, h, precision, train, train[:1000],
                        clock=time.perf_counter, **params, **way,
                    ).trained  # fmt: skip
                    speeds[name] = max(speeds[name], speed)
            about = {"features, hidden": f"{m}, {h}", "precision": precision}
            shown = {f"{name}, words/s": round(x) for name, x in speeds.items()}
            rows.append(about | shown)
    if first:
        report("Threads and ranks of a recurrent network", rows, args.json)


if __name__ == "__main__":
    main()
