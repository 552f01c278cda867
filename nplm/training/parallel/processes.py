"""The processes that a fit runs on: this one alone, or the ranks of a communicator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALONE", "Alone", "Meeting", "Processes", "Sharers"]

T = TypeVar("T")
# Called at once by all, with whether something is due: what the first says to that, and
# the interrupt of any.
Meeting = Callable[[bool], tuple[bool, KeyboardInterrupt | None]]


class Processes(Protocol):
    """Processes that do the same work: what a fit asks of them."""

    rank: int
    size: int

    def agree(self, value: T) -> T:
        """Give the first process's value in all."""

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Do it in every process; if it fails in one, raise in all."""

    def everyones(self, value: T) -> list[T]:
        """Give every process's value in all."""

    def check_same(self, marks: dict[str, str]) -> None:
        """Raise in all when one has other marks than the first."""

    def guard(self) -> AbstractContextManager[Any]:
        """Context in which a process that fails alone ends all."""

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Give the first process's random generator in all."""

    def interrupts(self) -> AbstractContextManager[Meeting]:
        """Context in which several processes are interrupted when they meet.

        One process alone is interrupted as ever.
        """


class Sharers(Processes, Protocol):
    """Processes of which each has some of the output units: arrays of all, in place."""

    def sum(self, array: NDArray[Any]) -> None:
        """Add up everyone's."""

    def maximum(self, array: NDArray[Any]) -> None:
        """Take the largest of everyone's, number by number."""

    def minimum(self, array: NDArray[Any]) -> None:
        """Take the smallest of everyone's, number by number."""

    def gather(self, array: NDArray[Any]) -> None:
        """Fill ``array[i]`` with process i's ``array[i]``."""

    def join(
        self,
        rows: NDArray[Any],
        starts: list[int],
        to: NDArray[Any] | None,
        *,
        everywhere: bool,
    ) -> None:
        """Put everyone's rows below each other, in all processes or the first."""


class Alone:
    """One process: whatever it says is what all say."""

    rank, size = 0, 1

    def agree(self, value: T) -> T:
        """Give the value."""
        return value

    def all_or_none(self, work: Callable[[], T]) -> T:
        """Do it."""
        return work()

    def everyones(self, value: T) -> list[T]:
        """Give the value, as a list."""
        return [value]

    def guard(self) -> AbstractContextManager[Any]:
        """Context like any other."""
        return nullcontext()

    def generator(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Give the generator."""
        return rng

    def check_same(self, marks: dict[str, str]) -> None:
        """Nobody disagrees."""

    def interrupts(self) -> AbstractContextManager[Meeting]:
        """Context that leaves interrupts as they are."""
        return nullcontext(lambda due: (due, None))


ALONE = Alone()
