"""``python -m tests.hours.mpi_kills --kills 50``: ranks killed at random moments.

A fit with a checkpoint is begun under ``mpiexec``, and one of its ranks is killed
(SIGKILL) at a random moment. The whole job has to be gone within ten seconds. Then the
same is begun again, until so many ranks were killed; each fit that comes to its end has
the same bits as one that nobody killed.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from nplm import Adam, NeuralLM, windows
from nplm.models.training import checkpoint, pace
from tests.helpers.mpi import start

IDS = np.random.default_rng(0).zipf(1.4, 6000) % 40
SECONDS, STARTING = 10, 300
MODEL = NeuralLM.from_paper(
    "MLP9", order=None, n_words=40, n_hidden=8, embedding_dim=6, batch_size=8,
    max_iter=3, random_state=0, solver=Adam("invscaling", epsilon=1e-8),
    learning_rate_init=4e-3, dropout=0.1,
)  # fmt: skip


def fit(folder):
    """What a rank does."""
    from nplm import mpi

    rank = mpi.MPI.COMM_WORLD.rank
    (folder / f"rank {rank}.part").write_text(str(os.getpid()))
    (folder / f"rank {rank}.part").rename(folder / f"rank {rank}")
    checkpoint.SECONDS_A_SAVE, pace.SECONDS_A_CALL = 0.02, 0.005
    X, y = windows(IDS.astype(np.int32), 3)
    lm = mpi.fit(MODEL, X, y, X_val=X[:500], y_val=y[:500], checkpoint=folder / "saves")
    if rank == 0:
        learned = [lm.C_, lm.H_, lm.d_, lm.U_, lm.b_, lm.history_["val_loss"]]
        parts = [np.ascontiguousarray(array).tobytes() for array in learned]
        (folder / "digest").write_text(hashlib.sha256(b"".join(parts)).hexdigest())


class Job:
    """Ranks of a fit that all have begun."""

    def __init__(self, n_ranks, folder):
        for path in folder.glob("rank *"):
            path.unlink()
        self.mpiexec = start(n_ranks, "-m", "tests.hours.mpi_kills", "--fit-in", folder)
        until, files = time.monotonic() + STARTING, []
        while len(files) < n_ranks:
            if self.mpiexec.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"did not begin: {self.mpiexec.communicate()[0]}")
            time.sleep(0.01)
            files = [p for p in folder.glob("rank *") if not p.suffix]
        self.ranks = [int(path.read_text()) for path in files]

    def wait_for(self, done, seconds):
        """How long it takes until it is so; the end of all if it takes too long."""
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > seconds:
                os.killpg(self.mpiexec.pid, signal.SIGKILL)
                raise SystemExit(f"still there after {seconds} s")
            time.sleep(0.01)
        return time.monotonic() - began

    def is_gone(self):
        return self.mpiexec.poll() is not None and not any(map(alive, self.ranks))


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def killed(n_ranks, n_kills, rng):
    """Kill ranks of fits of so many ranks; say how it went."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saves, digest = folder / "saves", folder / "digest"
        job = Job(n_ranks, folder)
        seconds = job.wait_for(lambda: digest.exists() or job.is_gone(), STARTING)
        job.wait_for(job.is_gone, STARTING)
        whole = digest.read_text()
        n = n_ends = n_gone_on = 0
        longest = 0.0
        while n < n_kills or not digest.exists():
            if digest.exists():
                shutil.rmtree(saves)
                digest.unlink()
            n_gone_on += (saves / "latest.json").exists()
            job = Job(n_ranks, folder)
            if n < n_kills:
                time.sleep(rng.uniform(0, 0.8 * seconds))
                if not digest.exists():
                    os.kill(rng.choice(job.ranks), signal.SIGKILL)
                    n += 1
                    longest = max(longest, job.wait_for(job.is_gone, SECONDS))
            job.wait_for(job.is_gone, STARTING)
            if digest.exists():
                n_ends += 1
                if digest.read_text() != whole:
                    raise SystemExit(f"{n_ranks} ranks: other bits after {n} kills")
    print(
        f"{n_ranks} ranks: {n} kills ({n_gone_on} times gone on), all gone within "
        f"{longest:.1f} s; {n_ends} ends, all with the same bits",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.hours.mpi_kills")
    parser.add_argument("--kills", type=int, default=50, help="in all")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit-in", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fit_in is not None:
        fit(asked.fit_in)
        return
    rng = random.Random(asked.seed)
    for n_ranks in asked.ranks:
        killed(n_ranks, -(-asked.kills // len(asked.ranks)), rng)


if __name__ == "__main__":
    main()
