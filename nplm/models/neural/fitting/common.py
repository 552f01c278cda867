"""Share the examples of mini-batches over processes that share their memory too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nplm._kernels.neural import _examples
from nplm.base.fitted import Fitted
from nplm.models.neural.fitting.replicated import RankExamples, ReplicatedNetwork
from nplm.models.neural.network.array_types import (
    Array,
    Ids,
    Index,
    Kernel,
    Scratch,
    Team,
)
from nplm.models.neural.network.network import Parts
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.sharing import Sharing
from nplm.models.training.parallel.common_memory import SharedLayout, common_memory

__all__ = ["CommonNetwork", "RankMemory"]


class RankMemory(RankExamples):
    """The ranks read each other's gradients, and each updates a part of the parameters.

    They do what threads that share examples do (`sharing.Examples`), and wait for each
    other twice a mini-batch.
    """

    def made(self, kernels: Any) -> list[Any]:
        """Return the team of this rank."""
        n_ranks, rank = self.processes.size, self.processes.rank
        n_whole = kernels.n_whole * kernels.parameters.dtype.itemsize
        sizes = [_examples.BARRIER_BYTES, 16 * n_ranks, *[n_whole] * n_ranks]
        parts = SharedLayout(sizes)
        memory = common_memory(self.processes, parts.n_bytes)
        info = parts.array(memory, 1, np.float64)
        self._info = info.reshape(n_ranks, 2)  # loss and noise
        wholes = [parts.array(memory, i + 2) for i in range(n_ranks)]
        self._memory = [kernels.scratch() for _ in range(n_ranks + 1)]
        solver_memory, *others = self._memory
        solver = kernels.solver_kernel(solver_memory)

        def collector(scratch: Scratch, whole: Any = wholes[rank]) -> Kernel:
            return kernels.collector(solver, scratch, whole=whole)

        team = _examples.MemoryTeam(
            kernels.team(self._most, collector),
            tuple(map(collector, others, wholes)), solver, member=rank,
            barrier=parts.array(memory, 0), batch_size=self.batch_size,
        )  # fmt: skip
        team.share(common_memory(self.processes, n_ranks * team.most_posted))
        return [team]

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        """Train once on the examples `index`, and add to `loss`."""
        (team,) = self.teams
        team.wait()  # others may still read the parameters
        super().train(X, y, index)

    def update(self, team: Team, K: int) -> float:
        """Update from the gradients of all; return the seconds of waiting."""
        now = time.perf_counter
        self._info[self.processes.rank] = team.own_loss, team.own_noise
        team.post()
        began = now()
        team.wait()
        first = now() - began
        team.apply(K, *self._info.sum(axis=0))
        began = now()
        team.wait()
        return first + now() - began


class CommonNetwork(ReplicatedNetwork):
    """A network whose parameters all processes of one computer have in common.

    Between calls of `train` they only read them, but for what the first process does
    while the others wait.

    `parameters` are the same in every process, and not kept.
    """

    def __init__(self, parts: Parts, parameters: Parameters, **options: Any) -> None:
        super().__init__(parts, parameters, **options)
        processes = self.processes
        # Derived arrays are caches, which each process fills for itself.
        private = parameters.learned() | self.solver_state
        sizes = SharedLayout([array.nbytes for array in private.values()])
        memory = common_memory(processes, sizes.n_bytes)
        common = {
            name: sizes.array(memory, i, array.dtype).reshape(array.shape)
            for i, (name, array) in enumerate(private.items())
        }

        def fill() -> None:
            for name, array in private.items():
                common[name][...] = array

        self._once(fill)
        self.solver_state = {name: common[name] for name in self.solver_state}
        self.parameters = parameters.with_arrays(
            {name: common[name] for name in parameters.learned()}
        )

    def _shared(self, batch_size: int) -> Sharing:
        return RankMemory(self, batch_size)

    def _once(self, work: Callable[[], None]) -> None:
        """Call `work` in the first process, while the others wait."""
        self._meet()
        self.processes.all_or_none(work if self.processes.rank == 0 else _nothing)

    def _meet(self) -> None:
        self.processes.all_or_none(_nothing)

    def settle(self) -> None:
        """Apply outstanding weight decay and recompute derived features."""
        examples, updates, *_ = self.clock.read()
        self._once(super().settle)
        self.clock.set(examples, updates, 0.0, 0.0)
        self.parts.features.settle(self.parameters)

    def restore(self, snapshot: list[Array]) -> None:
        """Restore the parameters from a snapshot."""
        self._meet()
        super().restore(snapshot)  # the same in every process
        self._meet()

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Restore a `state` after `n_seen` examples, or raise ValueError."""
        self._meet()
        super().set_state(state, n_seen)
        self._meet()


def _nothing() -> None:
    """Do nothing."""
