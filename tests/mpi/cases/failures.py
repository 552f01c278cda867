"""A rank that fails alone ends the job."""

import os
import signal
import subprocess
import sys
import time

from sklearn.base import clone

from nplm import NeuralLM, mpi
from nplm._kernels.neural import _network
from nplm.models.neural.fitting.replicated import RankMemory
from nplm.models.neural.network.parts import Parts

from .base import SETTINGS, comm, data, paper_lm


def in_the_middle(act):
    """Run `act` in the last rank after some mini-batches of the second epoch."""
    X, y = data(20)
    train, calls = _network.train, []

    def count(*args, **kwargs):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == 400:
            act()
        train(*args, **kwargs)

    _network.train = count
    mpi.fit(paper_lm(n_words=20, batch_size=4, max_iter=10**6, **SETTINGS), X, y)


def raises():
    in_the_middle(lambda: 1 / 0)


def raises_again():
    """Raise in one rank the error that all ranks raised in an earlier fit."""
    X, y = data(20)
    lm = paper_lm(n_words=20, **SETTINGS)
    try:
        mpi.fit(clone(lm), X, y - 1)
    except ValueError as error:
        known = error

    def again():
        raise known

    in_the_middle(again)


def leaves_before():
    """End one rank before the fit."""
    if comm.rank == comm.size - 1:
        sys.exit()
    X, y = data(20)
    mpi.fit(paper_lm(n_words=20, max_iter=1, **SETTINGS), X, y)


def leaves_between():
    X, y = data(20)
    lm = mpi.fit(paper_lm(n_words=20, max_iter=1, **SETTINGS), X, y, keep="shards")
    if comm.rank > 0:
        lm.score(X, y)


def cannot_begin():
    def initialise(*args, **kwargs):
        raise MemoryError("no room")

    if comm.rank == 1:
        Parts.initial = initialise
    X, y = data(20)
    mpi.fit(paper_lm(n_words=20, **SETTINGS), X, y)


def killed():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGKILL))


def interrupted():
    in_the_middle(lambda: os.kill(os.getpid(), signal.SIGINT))


def in_the_middle_of_examples(act, **options):
    """Run `act` in the last rank of those that share the examples of mini-batches."""
    X, y = data(40)
    update, calls = RankMemory.update, []

    def count(*args):
        calls.append(1)
        if comm.rank == comm.size - 1 and len(calls) == 30:
            act()
        return update(*args)

    RankMemory.update = count
    lm = NeuralLM(
        n_words=40, n_hidden=6, embedding_dim=4, batch_size=32, max_iter=10**6,
        loss="importance", random_state=0, early_stopping=False,
    )  # fmt: skip
    mpi.fit(lm, X, y, **options)


def raises_in_examples():
    in_the_middle_of_examples(lambda: 1 / 0)


def raises_in_progress():
    """Raise where rank 0 alone is, and the others go on to the next mini-batch."""

    def progress(*figures):
        raise ZeroDivisionError

    in_the_middle_of_examples(lambda: None, progress=progress)


def killed_in_examples():
    in_the_middle_of_examples(lambda: os.kill(os.getpid(), signal.SIGKILL))


def orphaned(folder):
    """Kill mpiexec and the last rank: nothing else ends the first one."""

    def kill():
        for process in os.getppid(), os.getpid():
            os.kill(process, signal.SIGKILL)

    in_the_middle_of_examples(kill, checkpoint=folder)


def leaves_examples():
    """Wait for a rank that has ended, as the first rank is told."""
    everyones = mpi.Ranks.everyones

    def with_an_ended_process(ranks, value):
        if value != os.getpid():
            return everyones(ranks, value)
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        return [value, ended.pid]

    if comm.rank == 0:
        mpi.Ranks.everyones = with_an_ended_process
    in_the_middle_of_examples(lambda: time.sleep(60))
