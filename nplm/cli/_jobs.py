"""One process, or those that mpiexec started."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import click

from nplm import NeuralLM

__all__ = ["Job", "mpi_job"]


class Job(NamedTuple):
    """How the processes of mpiexec do things together; or this one alone."""

    fit_network: Callable[..., Any] = NeuralLM.fit
    quiet: bool = False  # another process reports
    together: Callable[[Callable[[], Any]], Any] = lambda work: work()
    guard: Callable[[], AbstractContextManager[Any]] = nullcontext


def mpi_job(n_jobs: int | None) -> Job:
    """Do it over the processes of mpiexec, each on one thread."""
    try:
        from nplm import mpi
        from nplm.parallel import agreement
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if n_jobs not in (None, 1):
        raise click.UsageError(
            "--mpi trains on one thread a process: leave --jobs out."
        )
    comm = agreement.own(None)  # that of mpi.fit
    return Job(
        mpi.fit,
        comm.rank > 0,
        partial(agreement.together, comm),
        partial(agreement.guard, comm),
    )
