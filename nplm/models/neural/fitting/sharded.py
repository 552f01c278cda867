"""A network spread over processes: each has some of the output units (section 3.2)."""

from __future__ import annotations

import time
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
from nplm.training.parallel.processes import Processes, Sharers

__all__ = ["ShardedNetwork", "gathers_totals", "rows_of"]

# What a network of today carries in the time it takes to deliver anything at all:
# 2 us at 100 Gb/s, 25 us at 10 Gb/s.
BYTES_A_STEP = 25_000


def rows_of(n_words: int, processes: Processes) -> slice:
    """Give the output rows of this process."""
    starts = block_starts(n_words, processes.size)
    return slice(starts[processes.rank], starts[processes.rank + 1])


def gathers_totals(n_ranks: int, n_columns: int) -> bool:
    """Whether one Allgather of the totals is faster than Allreduces of max and sum.

    It has half as many steps, but brings the totals of every rank to each.
    """
    steps = log2(n_ranks)
    return (n_ranks - 1 - steps) * 24 * n_columns <= steps * BYTES_A_STEP


class ShardedNetwork(Network):
    """The output rows that one process holds, and all that comes before them.

    Parameters
    ----------
    parts : Parts
        Inputs, hidden units and output.
    parameters : Parameters
        With this process's output rows.
    processes : Processes
        Those that share the network.
    **options
        Of `Network`.
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
        self._costs = dict(zip(names, self._seconds))  # views, to add to

    # -- training -------------------------------------------------------------

    def train(
        self,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        batch_size: int,
    ) -> None:
        """One pass over the examples `index`, adding to `loss`."""
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
        # Who comes last does not wait: the rest is the messages. Of two mini-batches
        # together, for messages that take long make the ranks come last in turn.
        both = np.add.reduceat(seconds.sum(axis=1), np.arange(0, len(starts), 2))
        messages = both.copy()
        processes.minimum(messages)
        self._costs["communicating"] += float(messages.sum())
        self._costs["waiting"] += float((both - messages).sum())

    def _teams_of(self, batch_size: int) -> list[Any]:
        """Give the team of one member that trains here."""
        if self._teams and self._teams[0].batch_size == batch_size:
            return self._teams
        self._dismiss()
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
        self._employ([team])
        self._shared_totals = totals
        n_inputs = self.parts.inputs.n_inputs if self.parts.output.direct else 0
        # But the constant's, and what fills up a row.
        self._slopes = slopes[: self.parts.hidden.n_hidden + n_inputs]
        return self._teams

    def _share_totals(self) -> None:
        """Bring each process's maximum, target's logit and sum together."""
        if len(self._shared_totals) == self.processes.size:
            self.processes.gather(self._shared_totals)
            return
        (own,) = self._shared_totals
        own_high = own[0].copy()
        self.processes.maximum(own[:2])
        own[2] *= np.exp(own_high - own[0])
        self.processes.sum(own[2])

    def costs(self) -> dict[str, float]:
        """Seconds of this epoch, by what they went to."""
        spent = {name: float(seconds[0]) for name, seconds in self._costs.items()}
        self._seconds[:] = 0
        return spent

    def state(self) -> dict[str, NDArray[Any]]:
        """Give all that training changes, and this epoch's seconds."""
        return super().state() | {"seconds_by_kind": self._seconds}

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Set what `state` gave, after so many examples, or raise ValueError."""
        super().set_state(state, n_seen)
        self._seconds[...] = state.array("seconds_by_kind", np.float64, (3, 1))

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Natural-log probability of each next word, from all processes' rows."""
        own_high, total, target = self._totals(X, y)
        high = own_high.copy()
        self.processes.maximum(high)
        total *= np.exp(own_high - high)
        self.processes.sum(total)
        self.processes.maximum(target)
        return target - high - np.log(total)

    # -- the whole ------------------------------------------------------------

    def whole_rows(self, own: NDArray[Any], *, everywhere: bool) -> NDArray[Any] | None:
        """Put everyone's rows below each other, in all processes or the first."""
        n_rows = self.parts.n_rows(self.n_words)
        starts = block_starts(n_rows, self.processes.size)
        whole = None
        if everywhere or self.processes.rank == 0:
            whole = aligned_zeros((n_rows, own.shape[1]), own.dtype)
        self.processes.join(own, starts, whole, everywhere=everywhere)
        return whole
