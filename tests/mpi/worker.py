"""Run a case of the folder `cases` in every rank: ``worker.py CASE [ARGUMENT ...]``.

Each case ends with a line of rank 0 that the test expects, or with an error.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

from mpi4py import MPI

TOPICS = ("equality", "examples", "parts", "refusals", "failures", "saves")


def run(name, *arguments):
    topics = [vars(import_module(f"cases.{topic}")) for topic in TOPICS]
    (case,) = {topic[name] for topic in topics if name in topic}
    case(*arguments)
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        print(f"{name}: passed by {MPI.COMM_WORLD.size} ranks", flush=True)


if __name__ == "__main__":
    os.fsync = lambda file: None  # as in tests/conftest.py
    if sys.argv[1] == "in_turn":  # because a start takes seconds
        for name in sys.argv[2:]:
            run(name)
    elif sys.argv[1] == "saves":  # each case has a folder of its own
        for name in sys.argv[3:]:
            run(name, Path(sys.argv[2], name))
    else:
        run(*sys.argv[1:])
