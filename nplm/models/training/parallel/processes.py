"""The processes of a fit: this one alone, or the ranks of an MPI communicator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nplm.base.generators import own_generator

__all__ = ["ALONE", "Alone", "Meeting", "Processes", "Sharers"]

T = TypeVar("T")
# Called by all processes together with whether a save is due; returns the first
# process's answer, and the interrupt of any process.
Meeting = Callable[[bool], tuple[bool, KeyboardInterrupt | None]]


class Processes(Protocol):
    """Collective operations of processes that run the same fit."""

    rank: int
    size: int

    def agree(self, value: T) -> T:
        """Return the first process's value in all processes."""

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Call `work` in every process; if it fails in one, raise an error in all."""

    def everyones(self, value: T) -> list[T]:
        """Return every process's value in all processes."""

    def check_same(self, fingerprint: dict[str, str], of_data: str = "") -> None:
        """Raise an error in all if parameters or data differ from the first's."""

    def guard(self) -> AbstractContextManager[Any]:
        """Return a context in which a process that fails alone aborts all."""

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return the first process's random generator in all processes."""

    def interrupts(self) -> AbstractContextManager[Meeting]:
        """Return a context in which several processes are interrupted together.

        The interrupts of a single process are unchanged.
        """


class Sharers(Processes, Protocol):
    """Processes that share a fit, with operations on arrays, in place."""

    @property
    def share_memory(self) -> bool:
        """Whether all processes are on one computer, and may share its memory."""

    def sum(self, array: NDArray[Any]) -> None:
        """Sum an array over all processes."""

    def maximum(self, array: NDArray[Any]) -> None:
        """Take the elementwise maximum over all processes."""

    def minimum(self, array: NDArray[Any]) -> None:
        """Take the elementwise minimum over all processes."""

    def gather(self, array: NDArray[Any]) -> None:
        """Set ``array[i]`` to that of process i, for all i."""

    def join_bytes(
        self, own: NDArray[np.uint8], to: NDArray[np.uint8], starts: NDArray[np.intp]
    ) -> None:
        """Fill `to` with the bytes of all processes, those of i at ``starts[i]``."""

    def join(
        self,
        rows: NDArray[Any],
        starts: list[int],
        to: NDArray[Any] | None,
        *,
        everywhere: bool,
    ) -> None:
        """Concatenate the rows of all processes, in all processes or the first."""


class Alone:
    """A single process: every collective operation is trivial."""

    rank, size = 0, 1

    def agree(self, value: T) -> T:
        """Return the value."""
        return value

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Call `work`."""
        return work()

    def everyones(self, value: T) -> list[T]:
        """Return the value, in a list."""
        return [value]

    def guard(self) -> AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return nullcontext()

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return the generator; one of its own in place of NumPy's global one."""
        return own_generator(rng)

    def check_same(self, fingerprint: dict[str, str], of_data: str = "") -> None:
        """Do nothing."""

    def interrupts(self) -> AbstractContextManager[Meeting]:
        """Return a context that does not change interrupts."""
        return nullcontext(lambda due: (due, None))


ALONE = Alone()
