"""Shard the output units of a network over processes (section 3.2)."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from nplm._kernels.neural import _network
from nplm._kernels.neural._loops import row_stride
from nplm._kernels.neural._network import BACKWARD, FORWARD, UPDATE
from nplm._kernels.neural._team import Team, block_starts
from nplm.base.array_types import Array, Floats, Ids, Index
from nplm.models.neural.network.network import Network, Sharing, T
from nplm.models.neural.network.parameters import Parameters, aligned_zeros
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.recipe import TrainedNetwork
from nplm.models.training.parallel.processes import Processes
from nplm.models.training.parallel.threads import Threads

# Bytes that an interconnect transfers within its latency: 2 us at 100 Gb/s, 25 us at
# 10 Gb/s.
LATENCY_BYTES = 25_000


def rows_of(n_words: int, processes: Processes) -> slice:
    """Return the output rows of this process."""
    starts = block_starts(n_words, processes.size)
    return slice(starts[processes.rank], starts[processes.rank + 1])


def gathers_totals(n_ranks: int, n_columns: int) -> bool:
    """Return whether one Allgather of the totals is faster than two Allreduces."""
    steps = log2(n_ranks)
    return (n_ranks - 1 - steps) * 24 * n_columns <= steps * LATENCY_BYTES


class RankSharing(Sharing[T]):
    """One rank of the processes that train a network together, in steps."""

    def __init__(self, network: Network, batch_size: int) -> None:
        self.processes, self.seconds = network.processes, network.seconds
        super().__init__(Threads(1), network, batch_size)

    @property
    def n_examples(self) -> int:
        """Number of examples of a step, of all ranks."""
        return self.batch_size

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        starts = range(0, len(index), self.n_examples)
        messages = np.empty(len(starts))
        began = time.perf_counter()
        for i, start in enumerate(starts):
            messages[i] = self.step(X, y, index[start : start + self.n_examples])
        self.seconds.add(time.perf_counter() - began, messages, self.processes)

    @abstractmethod
    def step(self, X: Ids, y: Ids, batch: Index) -> float:
        """Train on the examples of a step; return the seconds of waits and messages."""


class RankRows(RankSharing[Team]):
    """Each rank has output units of its own, of every example (section 3.2)."""

    def make_teams(self, network: Network) -> list[Team]:
        n_ranks, rank = self.processes.size, self.processes.rank
        parts, parameters = network.parts, network.parameters
        columns = 1 if self.batch_size == 1 else row_stride(self.batch_size)
        gather = gathers_totals(n_ranks, columns)
        self._totals = np.zeros((n_ranks if gather else 1, 3, columns))
        slopes = aligned_zeros((parameters.E.shape[1], columns), parameters.dtype)
        n_inputs = parts.inputs.n_inputs if parts.output.direct else 0
        # Without the constant input and the padding.
        self._slopes = slopes[: parts.hidden.n_hidden + n_inputs]
        return [network.team(
            self.batch_size, network.solver_kernel, size=n_ranks, here=rank,
            totals=self._totals, slopes=slopes.view(np.uint8).ravel(),
        )]  # fmt: skip

    def step(self, X: Ids, y: Ids, batch: Index) -> float:
        (team,), rank, now = self.teams, self.processes.rank, time.perf_counter
        _network.train(team, rank, X, y, batch, phases=FORWARD)
        sent = now()
        self._share_totals()
        seconds = now() - sent
        _network.train(team, rank, X, y, batch, phases=BACKWARD)
        sent = now()
        self.processes.sum(self._slopes)
        seconds += now() - sent
        _network.train(team, rank, X, y, batch, phases=UPDATE)
        return seconds

    def _share_totals(self) -> None:
        """Combine the maximum, target logit and sum of all processes."""
        if len(self._totals) == self.processes.size:
            self.processes.gather(self._totals)
            return
        (totals,) = self._totals
        high_here = totals[0].copy()
        self.processes.maximum(totals[:2])
        totals[2] *= np.exp(high_here - totals[0])
        self.processes.sum(totals[2])


class ShardedNetwork(Network):
    """A network with the output rows of one process, and all other parameters."""

    def __init__(self, parts: Parts, parameters: Parameters, **options: Any) -> None:
        super().__init__(parts, parameters, **options)
        self.first = rows_of(parts.output.n_rows(self.n_words), self.processes).start

    # -- training -------------------------------------------------------------

    def _shared(self, batch_size: int) -> Sharing[Team]:
        return RankRows(self, batch_size)

    # -- scoring --------------------------------------------------------------

    def combined(self, totals: Floats) -> Floats:
        """Return the natural-log probabilities from the totals of all processes."""
        high_here, total, target = totals
        high = high_here.copy()
        self.processes.maximum(high)
        total *= np.exp(high_here - high)
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
    trained: TrainedNetwork, processes: Processes, *, everywhere: bool
) -> TrainedNetwork | None:
    """Return the network with all output rows; None in others unless `everywhere`."""
    n_rows = trained.parts.output.n_rows(trained.architecture.n_words)
    n_everyones = processes.everyones(len(trained.parameters.E))
    if all(n == n_rows for n in n_everyones):  # every process has all of them
        # The arrays may be in memory that processes have in common.
        return trained.copy() if everywhere or processes.rank == 0 else None

    def whole(part: Array) -> Array | None:
        rows = None
        if everywhere or processes.rank == 0:
            rows = aligned_zeros((n_rows, part.shape[1]), part.dtype)
        starts = block_starts(n_rows, processes.size)
        processes.join(part, starts, rows, everywhere=everywhere)
        return rows

    E, state = whole(trained.parameters.E), dict(trained.solver_state)
    for name in [name for name in state if name.endswith("_E")]:
        rows = whole(state[name])
        if rows is not None:
            state[name] = rows
    if E is None:
        return None
    return replace(
        trained, parameters=trained.parameters.with_arrays({"E": E}), solver_state=state
    )
