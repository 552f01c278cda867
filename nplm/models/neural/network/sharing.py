"""Ways in which threads, and processes, share the training of a network (section 3)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from nplm._kernels.neural import _examples, _network
from nplm._kernels.neural._team import UpdateLock
from nplm.base.array_types import Ids, Index
from nplm.models.training.parallel.threads import Threads

# Examples for a thread of a mini-batch: with fewer, threads mostly wait for each other.
MIN_EXAMPLES_A_THREAD = 8
# Share of the output units in the multiplications of an example above which threads
# share these units.
MIN_OUTPUT_SHARE = 0.8


class Sharing(ABC):
    """Threads that train a network, in mini-batches of `batch_size` examples."""

    # Whether each thread trains on mini-batches of its own.
    is_async: ClassVar[bool] = False

    def __init__(self, threads: Threads, network: Any, batch_size: int) -> None:
        self.threads, self.batch_size = threads, batch_size
        self.teams = self.make_teams(network)

    @abstractmethod
    def make_teams(self, network: object) -> list[Any]:
        """Return the kernels of each team that trains."""

    @abstractmethod
    def train(self, X: Ids, y: Ids, index: Index) -> None:
        """Train once on the examples `index`, and add to `loss`."""

    def give_up(self) -> None:
        """Make all threads return soon.

        Threads that share a mini-batch return within it, which trains a part of the
        parameters. So they finish the examples when they are interrupted.
        """
        for team in self.teams:
            team.give_up()

    @property
    def loss(self) -> float:
        """Summed negative log-likelihood since it was last set."""
        return float(sum(team.loss for team in self.teams))

    @loss.setter
    def loss(self, value: float) -> None:
        for team in self.teams:
            # One team holds all of it: the order of a sum affects its rounding.
            team.loss, value = value, 0.0


class Rows(Sharing):
    """Each thread has output units of its own, of every example (section 3.2)."""

    def make_teams(self, network: Any) -> list[Any]:
        n, solver = self.threads.n, network.solver_kernel
        return [network.team(self.batch_size, solver, n_members=n)]

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        (team,) = self.teams
        self.threads.run_together(
            lambda member: _network.train(team, member, X, y, index),
            len(team.outputs), give_up=self.give_up, finish=True,
        )  # fmt: skip


class Examples(Sharing):
    """Each thread has examples of its own of every mini-batch."""

    def make_teams(self, network: Any) -> list[object]:
        n, length = self.threads.n, network.run_length(self.batch_size)
        most = _examples.most_examples(n, self.batch_size, length)
        self._memory = network.scratch()
        solver = network.solver_kernel(self._memory)
        collector = partial(network.collector, solver)
        teams = [network.team(most, collector, member=i) for i in range(n)]
        return [
            _examples.ExampleTeam(
                tuple(teams), solver, batch_size=self.batch_size, run_length=length
            )
        ]

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        (team,) = self.teams
        self.threads.run_together(
            lambda member: _examples.train(team, member, X, y, index),
            self.threads.n, give_up=self.give_up, finish=True,
        )  # fmt: skip


class Asynchronous(Sharing):
    """Each thread has mini-batches of its own, and updates without a lock (3.1).

    Part of an update is sometimes lost.
    """

    is_async: ClassVar[bool] = True

    def make_teams(self, network: Any) -> list[object]:
        n, solver = self.threads.n, network.solver_kernel
        options = {"n_workers": n, "lock": self.lock()}
        length = network.run_length(self.batch_size)
        self._n_runs = None if length == 1 else self.batch_size // length
        return [
            network.team(self.batch_size, solver, worker=i, member=i, **options)
            for i in range(n)
        ]

    def lock(self) -> Any:
        """Return the lock around updates, if any."""
        return None

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        n = len(self.teams)
        if self._n_runs is None:
            parts = self.threads.split(len(index), self.batch_size)
            shares = [index[part] for part in parts]
        else:
            shares = [
                own_examples(index, i, n, self.batch_size, self._n_runs)
                for i in range(n)
            ]
        self.threads.map(
            lambda part: _network.train(part[0], 0, X, y, part[1]),
            list(zip(self.teams, shares)), give_up=self.give_up,
        )  # fmt: skip


class Locked(Asynchronous):
    """Like `Asynchronous`, with a lock around updates, as the paper tried first."""

    def lock(self) -> Any:
        return UpdateLock()


class RankSharing(Sharing):
    """One rank of the processes that train a network together, in steps."""

    def __init__(self, network: Any, batch_size: int) -> None:
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


def own_examples(
    index: Index, worker: int, n_workers: int, batch_size: int, n_runs: int
) -> Index:
    """Return a worker's examples: mini-batches in turns, and a share of the rest."""
    n_whole = len(index) // (batch_size * n_workers) * batch_size * n_workers
    whole = index[:n_whole].reshape(-1, n_workers, batch_size)[:, worker].ravel()
    rest = index[n_whole:]
    each = len(rest) // (n_runs * n_workers) * n_runs
    stop = None if worker == n_workers - 1 else each * (worker + 1)
    return np.concatenate([whole, rest[each * worker : stop]])


def sharing_of(
    parallel: str, parts: Any, n_words: int, batch_size: int, n_threads: int
) -> tuple[type[Sharing], int]:
    """Return the way in which threads share a fit, and how many of them do.

    With ``parallel="sync"`` they share the output units where these are nearly all of
    the work of an example, or where a mini-batch has few examples, and else examples.
    """
    if parallel != "sync":
        return {"async": Asynchronous, "locked": Locked}[parallel], n_threads
    output, few = parts.output, batch_size // MIN_EXAMPLES_A_THREAD < n_threads
    if output.rows_are_shared and (
        few or not output.examples_are_shared
        or parts.output_share(n_words) > MIN_OUTPUT_SHARE
    ):  # fmt: skip
        return Rows, n_threads
    if parts.hidden.lowest.n_memory and output.examples_are_arranged:
        return Rows, 1
    n_runs = batch_size // parts.hidden.lowest.run_length(batch_size)
    n_threads = max(1, min(n_threads, n_runs, batch_size // MIN_EXAMPLES_A_THREAD))
    return (Rows if n_threads == 1 else Examples), n_threads
