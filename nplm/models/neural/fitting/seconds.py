"""Seconds that a rank spends in an epoch, by activity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nplm.base.fitted import Fitted
from nplm.training.parallel.processes import Sharers

__all__ = ["Seconds"]


class Seconds:
    """The seconds of this rank in an epoch, by activity."""

    NAMES = ("computing", "communicating", "waiting")

    def __init__(self) -> None:
        self.array = np.zeros((3, 1))

    def add(
        self, total: float, messages: NDArray[np.float64], processes: Sharers
    ) -> None:
        """Add a call of `total` seconds, with those in the messages of mini-batches."""
        # The last rank to arrive does not wait, so its time is that of the messages.
        # Pairs of mini-batches are added, because slow messages make ranks arrive last
        # in turn.
        both = np.add.reduceat(messages, np.arange(0, len(messages), 2))
        least = both.copy()
        processes.minimum(least)
        spent = float(both.sum())
        communicating = float(least.sum())
        self.array[:, 0] += total - spent, communicating, spent - communicating

    def taken(self) -> dict[str, float]:
        """Return the seconds by activity, and begin another epoch."""
        found = dict(zip(self.NAMES, self.array[:, 0].tolist()))
        self.array[:] = 0
        return found

    def restore(self, state: Fitted) -> None:
        """Restore the seconds of a saved epoch."""
        self.array[...] = state.array("seconds_by_kind", np.float64, (3, 1))
