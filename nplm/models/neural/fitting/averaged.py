"""Train a copy of the network in each process, and average the copies now and then."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from nplm._kernels.neural import _network
from nplm.models.neural.fitting.orders import OTHER_RANK
from nplm.models.neural.network.array_types import Ids, Index
from nplm.models.neural.network.sharing import Sharing, own_examples
from nplm.models.training.parallel.threads import Threads

__all__ = ["RankAverages"]


class RankAverages(Sharing):
    """Each rank trains on mini-batches of its own; then all take the mean network.

    This is local SGD (Stich, 2019), for networks of computers too slow to exchange the
    gradients of every mini-batch.

    - `network`: network of this rank
    - `batch_size`: maximum number of examples of an update of one rank
    - `every`: number of updates of a rank between two averages
    """

    def __init__(self, network: Any, batch_size: int, every: int) -> None:
        self.network, self.every = network, every
        self._run_length = network.run_length(batch_size)
        super().__init__(Threads(1), network, batch_size)

    def made(self, kernels: Any) -> list[Any]:
        """Return the team of this rank."""
        # Noise samples and masks of its own, as those of asynchronous threads.
        processes = self.network.processes
        return [kernels.team(
            self.batch_size, kernels.solver_kernel, worker=processes.rank,
            n_workers=processes.size,
        )]  # fmt: skip

    @property
    def n_examples(self) -> int:
        """Number of examples of all ranks between two averages."""
        return self.batch_size * self.every * self.network.processes.size

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        now, starts = time.perf_counter, range(0, len(index), self.n_examples)
        messages = np.empty(len(starts))
        began = now()
        for i, start in enumerate(starts):
            self._train_apart(X, y, index[start : start + self.n_examples])
            sent = now()
            self._average()
            messages[i] = now() - sent
        network = self.network
        network.seconds.add(now() - began, messages, network.processes)

    def _train_apart(self, X: Ids, y: Ids, block: Index) -> None:
        """Train on this rank's share of some examples, and set the clock to all."""
        (team,), clock = self.teams, self.network.clock
        processes, n = self.network.processes, len(block)
        starts = [n * i // processes.size for i in range(processes.size + 1)]
        own = block[slice(*starts[processes.rank : processes.rank + 2])]
        if self._run_length > 1:
            own = own_examples(
                block, processes.rank, processes.size, self.batch_size,
                self.batch_size // self._run_length,
            )  # fmt: skip
        if self.network.has_parts:
            own = block[block != OTHER_RANK]
        examples, updates, *_ = clock.read()
        loss = team.loss
        _network.train(team, 0, X, y, own)
        self.network.settle()
        most = max(stop - start for start, stop in pairwise(starts))
        clock.set(examples + n, updates + -(-most // self.batch_size), 0.0, 0.0)
        losses = np.array([team.loss - loss])
        processes.sum(losses)
        team.loss = loss + float(losses[0])

    def _average(self) -> None:
        """Replace all parameters and moments by their means over the ranks."""
        network = self.network
        n_ranks, sums = network.processes.size, network.processes.sum
        state = network.solver_state
        moments = [a for k, a in state.items() if k.startswith(("first_", "second_"))]
        for array in [*network.parameters.learned().values(), *moments]:
            mean = np.ascontiguousarray(array)
            sums(mean)
            array[...] = mean / n_ranks
        network.parts.features.settle(network.parameters)
        paused = state.get("paused_C")
        if paused is not None:
            rates = np.ascontiguousarray(paused[:, 1])
            network.processes.maximum(rates)
            paused[:, 1] = rates
        for name, array in network.output_state.items():
            if name != "proposal":  # which does not change
                own = array[network.processes.rank].copy()
                array[...] = 0
                array[network.processes.rank] = own
                sums(array)
