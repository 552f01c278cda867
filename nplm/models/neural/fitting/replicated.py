"""Share the examples over processes, which have all parameters.

Those of one computer have them in memory that they share; others send messages, or
train apart and average their networks now and then.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from nplm._kernels.neural import _examples, _network
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._team import Team
from nplm.base.array_types import Array, Floats, Ids, Index
from nplm.base.fitted import Fitted
from nplm.models.neural.fitting.sharded import RankSharing
from nplm.models.neural.fitting.training_windows import OTHER_RANK
from nplm.models.neural.network.network import Network, Sharing, own_examples
from nplm.models.neural.network.parameters import Parameters, aligned_zeros
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.network.workspace import Kernel
from nplm.models.training.parallel.processes import SharedLayout, common_memory

T = TypeVar("T", bound=_examples.MessageTeam | _examples.MemoryTeam)


class RankExamples(RankSharing[T]):
    """Each rank has examples of its own of every mini-batch."""

    def __init__(self, network: ReplicatedNetwork, batch_size: int) -> None:
        self._has_parts = network.has_parts
        # Runs of units with a state are cut nowhere but between them.
        self._run_length = network.run_length(batch_size)
        self._can_cut = self._run_length == 1 or network.has_runs or self._has_parts
        super().__init__(network, batch_size)

    @abstractmethod
    def update(self, team: T, K: int) -> float:
        """Update from the gradients of K examples; return the seconds of waits."""

    def step(self, X: Ids, y: Ids, batch: Index) -> float:
        (team,) = self.teams
        team.collect(X, y, *self._own(batch))
        return self.update(team, len(batch))

    def _own(self, batch: Index) -> tuple[Index, int, int]:
        """Return examples, and which of them are those of this rank: first, number."""
        if self._has_parts:
            mine = batch[batch != OTHER_RANK]
            return mine, 0, len(mine)
        K, rank, n_ranks = len(batch), self.processes.rank, self.processes.size
        if not self._can_cut:
            return batch, 0, K if rank == 0 else 0
        first, stop = (
            _examples.first_of(member, n_ranks, K, self.batch_size, self._run_length)
            for member in (rank, rank + 1)
        )
        return batch, first, stop - first

    def _collecting(
        self, network: Network, n: int
    ) -> tuple[Kernel, Callable[..., Kernel], list[Scratch]]:
        """Return a solver, the maker of its collectors of gradients, and n memories."""
        self._memory = [network.scratch() for _ in range(n + 1)]
        solver = network.solver_kernel(self._memory[0])
        return solver, partial(network.collector, solver), self._memory[1:]

    @property
    def _most(self) -> int:
        """Maximum number of examples of a rank in a mini-batch."""
        if not self._can_cut:
            return self.batch_size
        return int(_examples.most_examples(
            self.processes.size, self.batch_size, self._run_length
        ))  # fmt: skip


class RankMessages(RankExamples[_examples.MessageTeam]):
    """Each rank has all parameters, and sends the others its gradients.

    For each mini-batch the ranks add up the gradients of whole arrays and of the noise
    samples (one Allreduce), send each other those of the rows that their examples visit
    (one Allgather of numbers of bytes, one Allgatherv), and make the same update.
    """

    def make_teams(self, network: Network) -> list[_examples.MessageTeam]:
        n_ranks, dtype = self.processes.size, network.parameters.dtype
        self._n_whole = n = n_whole(network)
        self._sums = numbers = aligned_zeros((1, n + n_alike(network)), dtype)[0]
        whole = numbers[:n].view(np.uint8)
        self._info = np.zeros((n_ranks, 4))  # bytes, loss, noise, numbers alike
        self._packed = np.zeros(0, np.uint8)
        self._received = np.zeros(0, np.uint8)
        solver, collector, (first, *others) = self._collecting(network, n_ranks + 1)
        team = network.team(self._most, partial(collector, whole=whole))
        received = tuple(map(collector, others))
        return [_examples.MessageTeam(
            team, received, solver, first=collector(first, whole=whole),
            alike=numbers[n:].view(np.uint8), batch_size=self.batch_size,
        )]  # fmt: skip

    def update(self, team: _examples.MessageTeam, K: int) -> float:
        processes, now = self.processes, time.perf_counter
        rank, info = processes.rank, self._info
        n_bytes = team.packed()
        if n_bytes > len(self._packed):
            self._packed = np.empty(2 * n_bytes, np.uint8)
        team.pack(self._packed)
        info[rank] = n_bytes, team.own_loss, team.own_noise, team.n_alike
        began = now()
        processes.gather(info)
        n_alike = int(info[:, 3].max())
        if team.n_alike == 0:  # no example here
            self._sums[self._n_whole :][:n_alike] = 0
        processes.sum(self._sums[: self._n_whole + n_alike])
        ends = np.cumsum(info[:, 0]).astype(np.intp)
        if ends[-1] > len(self._received):
            self._received = np.empty(2 * ends[-1], np.uint8)
        starts = ends - info[:, 0].astype(np.intp)
        processes.join_bytes(self._packed[:n_bytes], self._received[: ends[-1]], starts)
        spent = now() - began
        team.apply(self._received, starts, K, info[:, 1].sum(), info[:, 2].sum())
        return spent

    def sizes(self) -> dict[str, int]:
        """Return the bytes that ranks added up and gathered at the last update."""
        n_alike = int(self._info[:, 3].max())
        return {
            "summed": self._sums.itemsize * (self._n_whole + n_alike),
            "gathered": int(self._info[:, 0].sum()),
        }


class RankMemory(RankExamples[_examples.MemoryTeam]):
    """The ranks read each other's gradients, and each updates a part of the parameters.

    They wait for each other twice a mini-batch, as the threads of `sharing.Examples`.
    """

    def make_teams(self, network: Network) -> list[_examples.MemoryTeam]:
        n_ranks, rank = self.processes.size, self.processes.rank
        n_bytes = n_whole(network) * network.parameters.dtype.itemsize
        sizes = [_examples.BARRIER_BYTES, 16 * n_ranks, *[n_bytes] * n_ranks]
        parts = SharedLayout(sizes)
        memory = common_memory(self.processes, parts.n_bytes)
        info = parts.array(memory, 1, np.float64)
        self._info = info.reshape(n_ranks, 2)  # loss and noise
        wholes = [parts.array(memory, i + 2) for i in range(n_ranks)]
        solver, collector, others = self._collecting(network, n_ranks)
        team = _examples.MemoryTeam(
            network.team(self._most, partial(collector, whole=wholes[rank])),
            tuple(map(collector, others, wholes)), solver, member=rank,
            barrier=parts.array(memory, 0), batch_size=self.batch_size,
        )  # fmt: skip
        team.share(common_memory(self.processes, n_ranks * team.most_posted))
        self._process_ids = self.processes.everyones(os.getpid())
        return [team]

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        (team,) = self.teams
        self._wait(team)  # others may still read the parameters
        super().train(X, y, index)

    def update(self, team: _examples.MemoryTeam, K: int) -> float:
        self._info[self.processes.rank] = team.own_loss, team.own_noise
        team.post()
        first = self._wait(team)
        team.apply(K, *self._info.sum(axis=0))
        return first + self._wait(team)

    def _wait(self, team: _examples.MemoryTeam) -> float:
        """Wait for all processes; return the seconds."""
        began = time.perf_counter()
        team.arrive()
        while not team.passed():  # between the calls Python handles signals
            self.processes.check_running(self._process_ids)
        return time.perf_counter() - began


class RankAverages(RankSharing[Team]):
    """Each rank trains on mini-batches of its own; then all take the mean network.

    This is local SGD (Stich, 2019), for networks of computers that are slow.
    """

    def __init__(self, network: ReplicatedNetwork, batch_size: int, every: int) -> None:
        self.network, self.every = network, every
        self._run_length = network.run_length(batch_size)
        super().__init__(network, batch_size)

    def make_teams(self, network: Network) -> list[Team]:
        # Noise samples and masks of its own, as those of asynchronous threads.
        processes = self.processes
        return [network.team(
            self.batch_size, network.solver_kernel, worker=processes.rank,
            n_workers=processes.size,
        )]  # fmt: skip

    @property
    def n_examples(self) -> int:
        return self.batch_size * self.every * self.processes.size

    def step(self, X: Ids, y: Ids, batch: Index) -> float:
        self._train_apart(X, y, batch)
        sent = time.perf_counter()
        self._average()
        return time.perf_counter() - sent

    def _train_apart(self, X: Ids, y: Ids, block: Index) -> None:
        """Train on this rank's share of some examples, and set the clock to all."""
        (team,), clock = self.teams, self.network.clock
        processes, n = self.processes, len(block)
        starts = [n * i // processes.size for i in range(processes.size + 1)]
        mine = block[slice(*starts[processes.rank : processes.rank + 2])]
        if self._run_length > 1:
            mine = own_examples(
                block, processes.rank, processes.size, self.batch_size,
                self.batch_size // self._run_length,
            )  # fmt: skip
        if self.network.has_parts:
            mine = block[block != OTHER_RANK]
        examples, updates, *_ = clock.read()
        loss = team.loss
        _network.train(team, 0, X, y, mine)
        self.network.settle()
        most = max(stop - start for start, stop in pairwise(starts))
        clock.set(examples + n, updates + -(-most // self.batch_size), 0.0, 0.0)
        losses = np.array([team.loss - loss])
        processes.sum(losses)
        team.loss = loss + float(losses[0])

    def _average(self) -> None:
        """Replace all parameters and moments by their means over the ranks."""
        network, processes, state = (
            self.network,
            self.processes,
            self.network.solver_state,
        )
        moments = [a for k, a in state.items() if k.startswith(("first_", "second_"))]
        for array in [*network.parameters.learned().values(), *moments]:
            mean = np.ascontiguousarray(array)
            processes.sum(mean)
            array[...] = mean / processes.size
        network.parts.features.settle(network.parameters)
        paused = state.get("paused_C")
        if paused is not None:
            rates = np.ascontiguousarray(paused[:, 1])
            processes.maximum(rates)
            paused[:, 1] = rates
        for name, array in network.output_state.items():
            if name != "proposal":  # which does not change
                array[np.arange(processes.size) != processes.rank] = 0
                processes.sum(array)


def n_whole(network: Network) -> int:
    """Return the number of gradients that every mini-batch has."""
    return sum(
        array.size
        for name, array in network.parameters.learned().items()
        if f"decayed_{name}" not in network.solver_state
    )


def n_alike(network: Network) -> int:
    """Return the maximum number of gradients of rows that all ranks visit."""
    estimate = getattr(network.parts.output, "estimate", None)
    if estimate is None or network.parameters.tied:
        return 0
    n_noise = min(estimate.max_noise, network.n_words)
    return int(n_noise * network.parameters.E.shape[1])


class ReplicatedNetwork(Network):
    """A network that every process has, and that all of them train together.

    Ranks share every mini-batch, or average their networks after `average_every`
    updates. With `has_parts`, each has windows of its own (`windows.PartOrder`).
    """

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        *,
        average_every: int | None = None,
        has_parts: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(parts, parameters, **options)
        self.average_every, self.has_parts = average_every, has_parts

    def _shared(self, batch_size: int) -> Sharing[Any]:
        if self.average_every is None:
            return RankMessages(self, batch_size)
        return RankAverages(self, batch_size, self.average_every)

    def least(self, batch_size: int) -> int:
        return batch_size * self.processes.size * (self.average_every or 1)

    # -- scoring --------------------------------------------------------------

    @property
    def share(self) -> tuple[int, int]:  # type: ignore[override]
        return self.processes.rank, self.processes.size

    def log_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the log-probability of each next word; each rank scores a share."""
        rank, size = self.share
        start, stop = len(y) * rank // size, len(y) * (rank + 1) // size
        log_prob = np.zeros(len(y))
        if stop > start:
            log_prob[start:stop] = super().log_prob(X[start:stop], y[start:stop])
        self.processes.sum(log_prob)
        return log_prob


class CommonNetwork(ReplicatedNetwork):
    """A network whose parameters all processes of one computer have in common.

    Between calls of `train` they only read them, but for what the first process does
    while the others wait.
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

    def _shared(self, batch_size: int) -> Sharing[Any]:
        return RankMemory(self, batch_size)

    def _once(self, work: Callable[[], None]) -> None:
        """Call `work` in the first process, while the others wait."""
        self._meet()
        self.processes.all_or_none(work if self.processes.rank == 0 else _nothing)

    def _meet(self) -> None:
        self.processes.all_or_none(_nothing)

    def settle(self) -> None:
        examples, updates, *_ = self.clock.read()
        self._once(super().settle)
        self.clock.set(examples, updates, 0.0, 0.0)
        self.parts.features.settle(self.parameters)

    def restore(self, snapshot: list[Array]) -> None:
        self._meet()
        super().restore(snapshot)  # the same in every process
        self._meet()

    def set_state(self, state: Fitted, n_seen: int) -> None:
        self._meet()
        super().set_state(state, n_seen)
        self._meet()


def _nothing() -> None:
    """Do nothing."""
