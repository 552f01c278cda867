"""One process, or several processes under mpiexec."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import click

from nplm import NeuralLM

__all__ = ["INTERRUPTED", "Job", "mpi_job"]

# The exit code that shells give a program that SIGINT ended.
INTERRUPTED = 130


class Job(NamedTuple):
    """What differs between one process and several."""

    fit_network: Callable[..., Any] = NeuralLM.fit
    quiet: bool = False  # True if another process reports
    together: Callable[[Callable[[], Any]], Any] = lambda work: work()
    guard: Callable[[], AbstractContextManager[Any]] = nullcontext


def mpi_job(n_jobs: int | None) -> Job:
    """Return the job of the processes of mpiexec, each with one thread."""
    try:
        from nplm import mpi
        from nplm.models.training.parallel.agreement import Ranks
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if n_jobs not in (None, 1):
        raise click.UsageError(
            "--mpi trains on one thread a process: leave --jobs out."
        )
    ranks = Ranks()
    return Job(mpi.fit, ranks.rank > 0, ranks.all_or_none, ranks.guard)
