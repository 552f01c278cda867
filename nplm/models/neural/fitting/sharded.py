"""Shard the output units of a network over processes (section 3.2)."""

from __future__ import annotations

import time
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural import _network
from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural._network import BACKWARD, FORWARD, UPDATE
from nplm._kernels.neural._team import block_starts
from nplm.base.fitted import Fitted
from nplm.models.neural.network.network import Network, Parts
from nplm.models.neural.network.parameters import Parameters, aligned_zeros
from nplm.models.neural.recipe import TrainedNetwork
from nplm.training.parallel.processes import Processes, Sharers

__all__ = ["ShardedNetwork", "gathered", "gathers_totals", "rows_of", "sharded"]

# Bytes that an interconnect transfers within its latency: 2 us at 100 Gb/s, 25 us at
# 10 Gb/s.
LATENCY_BYTES = 25_000


def rows_of(n_words: int, processes: Processes) -> slice:
    """Return the output rows of this process."""
    starts = block_starts(n_words, processes.size)
    return slice(starts[processes.rank], starts[processes.rank + 1])


def gathers_totals(n_ranks: int, n_columns: int) -> bool:
    """Return whether one Allgather of the totals is faster than two Allreduces.

    An Allgather has half as many steps, but sends the totals of every rank to each.
    """
    steps = log2(n_ranks)
    return (n_ranks - 1 - steps) * 24 * n_columns <= steps * LATENCY_BYTES


class ShardedNetwork(Network):
    """A network with the output rows of one process, and all other parameters.

    Parameters
    ----------
    parts : Parts
        Inputs, hidden units and output.
    parameters : Parameters
        Parameters with the output rows of this process.
    processes : Processes
        Processes that share the network.
    **options
        Options of `Network`.
    """

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        *,
        processes: Sharers,
        **options: Any,
    ) -> None:
        super().__init__(parts, parameters, **options)
        self.processes = processes
        self.first = rows_of(parts.n_rows(self.n_words), processes).start
        self._seconds = np.zeros((3, 1))
        names = ("computing", "communicating", "waiting")
        self._costs = dict(zip(names, self._seconds))  # views

    # -- training -------------------------------------------------------------

    def train(
        self,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        batch_size: int,
    ) -> None:
        """Train once on the examples `index`, and add to `loss`."""
        (team,) = self._teams_of(batch_size)
        processes, now = self.processes, time.perf_counter
        starts = range(0, len(index), batch_size)
        seconds = np.empty((len(starts), 2))  # in the collective operations
        began = now()
        for i, start in enumerate(starts):
            batch = index[start : start + batch_size]

            def run(phases: int, batch: NDArray[np.intp] = batch) -> None:
                _network.train(team, processes.rank, X, y, batch, phases=phases)

            run(FORWARD)
            sent = now()
            self._share_totals()
            seconds[i, 0] = now() - sent
            run(BACKWARD)
            sent = now()
            processes.sum(self._slopes)
            seconds[i, 1] = now() - sent
            run(UPDATE)
        self._costs["computing"] += now() - began - float(seconds.sum())
        # The last rank to arrive does not wait, so its time is that of the messages.
        # Pairs of mini-batches are added, because slow messages make ranks arrive last
        # in turn.
        both = np.add.reduceat(seconds.sum(axis=1), np.arange(0, len(starts), 2))
        messages = both.copy()
        processes.minimum(messages)
        self._costs["communicating"] += float(messages.sum())
        self._costs["waiting"] += float((both - messages).sum())

    def _teams_of(self, batch_size: int) -> list[Any]:
        """Return the only team of this process, which has one member."""
        if self._teams and self._teams[0].batch_size == batch_size:
            return self._teams
        self._release_teams()
        n_ranks, rank = self.processes.size, self.processes.rank
        columns = 1 if batch_size == 1 else row_stride(batch_size)
        gather = gathers_totals(n_ranks, columns)
        totals = np.zeros((n_ranks if gather else 1, 3, columns))
        dtype = self.parameters.dtype
        slopes = aligned_zeros((self.parameters.E.shape[1], columns), dtype)
        trained = self.solver.held(self.parameters, self.solver_state)
        team = self._team(
            batch_size, trained, size=n_ranks, here=rank, totals=totals,
            slopes=slopes.view(np.uint8).ravel(),
        )  # fmt: skip
        self._own([team])
        self._shared_totals = totals
        n_inputs = self.parts.inputs.n_inputs if self.parts.output.direct else 0
        # Without the constant input and the padding.
        self._slopes = slopes[: self.parts.hidden.n_hidden + n_inputs]
        return self._teams

    def _share_totals(self) -> None:
        """Combine the maximum, target logit and sum of all processes."""
        if len(self._shared_totals) == self.processes.size:
            self.processes.gather(self._shared_totals)
            return
        (own,) = self._shared_totals
        own_high = own[0].copy()
        self.processes.maximum(own[:2])
        own[2] *= np.exp(own_high - own[0])
        self.processes.sum(own[2])

    def costs(self) -> dict[str, float]:
        """Return the seconds of this epoch, by activity."""
        spent = {name: float(seconds[0]) for name, seconds in self._costs.items()}
        self._seconds[:] = 0
        return spent

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that training changes, and the seconds of this epoch."""
        return super().state() | {"seconds_by_kind": self._seconds}

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Restore a `state` after `n_seen` examples, or raise ValueError."""
        super().set_state(state, n_seen)
        self._seconds[...] = state.array("seconds_by_kind", np.float64, (3, 1))

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the natural-log probability of each next word, from all processes."""
        own_high, total, target = self._totals(X, y)
        high = own_high.copy()
        self.processes.maximum(high)
        total *= np.exp(own_high - high)
        self.processes.sum(total)
        self.processes.maximum(target)
        return target - high - np.log(total)


# -- a trained network, in shards and whole ------------------------------------------


def sharded(trained: TrainedNetwork, processes: Processes) -> TrainedNetwork:
    """Return a copy of a trained network with the output rows of this process."""
    rows = rows_of(len(trained.parameters.E), processes)
    state = {
        name: (array[rows] if name.endswith("_E") else array).copy()
        for name, array in trained.solver_state.items()
    }
    return replace(
        trained, parameters=trained.parameters.copy(rows), solver_state=state
    )


def gathered(
    trained: TrainedNetwork, processes: Sharers, *, everywhere: bool
) -> TrainedNetwork | None:
    """Return the network with the output rows of all processes.

    Unless `everywhere`, all processes but the first return None.
    """
    n_rows = trained.parts.n_rows(trained.architecture.n_words)

    def whole(own: NDArray[Any]) -> NDArray[Any] | None:
        rows = None
        if everywhere or processes.rank == 0:
            rows = aligned_zeros((n_rows, own.shape[1]), own.dtype)
        starts = block_starts(n_rows, processes.size)
        processes.join(own, starts, rows, everywhere=everywhere)
        return rows

    E, state = whole(trained.parameters.E), dict(trained.solver_state)
    for name in [name for name in state if name.endswith("_E")]:
        rows = whole(state[name])
        if rows is not None:
            state[name] = rows
    if E is None:
        return None
    return replace(
        trained, parameters=trained.parameters.with_rows(E), solver_state=state
    )
