"""Networks that several processes train together, and the seconds that each spends."""

from __future__ import annotations

from typing import Any

import numpy as np

from nplm.base.fitted import Fitted
from nplm.models.neural.network.array_types import Scores, State
from nplm.models.neural.network.network import Network, Parts
from nplm.models.neural.network.parameters import Parameters
from nplm.models.training.parallel.processes import Processes

__all__ = ["Seconds", "SharedNetwork"]


class Seconds:
    """The seconds of this rank in an epoch, by activity."""

    NAMES = ("computing", "communicating", "waiting")

    def __init__(self) -> None:
        self.array = np.zeros((3, 1))

    def add(self, total: float, messages: Scores, processes: Processes) -> None:
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
        seconds = dict(zip(self.NAMES, self.array[:, 0].tolist()))
        self.array[:] = 0
        return seconds

    def restore(self, state: Fitted) -> None:
        """Restore the seconds of a saved epoch."""
        self.array[...] = state.array("seconds_by_kind", np.float64, (3, 1))


class SharedNetwork(Network):
    """Base of the networks that processes train together.

    - `processes`: processes that share the network
    - `average_every`: number of updates of a rank between averages of the ranks'
      networks. By default, ranks share every mini-batch
    - `has_parts`: whether each process has windows of its own (`orders.PartOrder`)
    - `**options`: those of `Network`
    """

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        *,
        processes: Processes,
        average_every: int | None = None,
        has_parts: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(parts, parameters, **options)
        self.processes, self.seconds = processes, Seconds()
        self.average_every, self.has_parts = average_every, has_parts

    def costs(self) -> dict[str, float]:
        """Return the metrics of the output, and the seconds of this epoch."""
        return super().costs() | self.seconds.taken()

    def state(self) -> State:
        """Return all that training changes, and the seconds of this epoch."""
        return super().state() | {"seconds_by_kind": self.seconds.array}

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Restore a `state` after `n_seen` examples, or raise ValueError."""
        super().set_state(state, n_seen)
        self.seconds.restore(state)
