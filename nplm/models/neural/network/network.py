"""Train a network, and ways in which threads share its training (section 3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from nplm._kernels.neural import _examples, _network
from nplm._kernels.neural._gradients import Gradients
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural._team import Team, UpdateLock
from nplm.base.array_types import Array, Bytes, Ids, Index, State
from nplm.base.fitted import Fitted
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout
from nplm.models.neural.network.network_scorer import NO_SOLVER, Scorer
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.network.solver_updates import SGD
from nplm.models.neural.network.workspace import Kernel
from nplm.models.training import pace
from nplm.models.training.parallel.processes import ALONE, Processes, Seconds
from nplm.models.training.parallel.threads import Threads

# Examples for a thread of a mini-batch: with fewer, threads mostly wait for each other.
MIN_EXAMPLES_A_THREAD = 8
# Share of the output units in the multiplications of an example above which threads
# share these units.
MIN_OUTPUT_SHARE = 0.8


class Network(Scorer):
    """The parts of a network, their parameters, and the state of training.

    `train` changes the parameters in place; `clock` has the examples and updates
    before.
    """

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        *,
        precision: str,
        threads: Threads | None = None,
        parallel: str = "sync",
        solver: SGD = NO_SOLVER,
        state: State | None = None,
        output_state: State | None = None,
        memory: State | None = None,
        dropout: Dropout = NO_DROPOUT,
        clock: tuple[float, float] = (0, 0),
        processes: Processes = ALONE,
    ) -> None:
        super().__init__(parts, parameters, precision, threads)
        self.parallel, self.solver = parallel, solver
        if state is None:
            state = solver.initial_state(parameters)
        self.solver_state = state
        self.output_state = output_state or {}
        self.memory = memory or {}
        self.dropout = dropout
        self.clock = Clock(*clock)
        self.processes, self.seconds = processes, Seconds()
        self._sharing: Sharing[Any] | None = None
        self._loss = 0.0  # the part that no current team holds

    # Whether a mini-batch has separate runs, by which threads may share it where units
    # have a state.
    has_runs = True

    def train(self, X: Ids, y: Ids, index: Index, batch_size: int) -> None:
        """Train once on the examples `index`, and add to `loss`."""
        try:
            self.sharing(batch_size).train(X, y, index)
        except BaseException:
            self._release()  # interrupted kernels cannot be used again
            raise

    @property
    def loss(self) -> float:
        """Summed negative log-likelihood since it was last set."""
        return self._loss + (0.0 if self._sharing is None else self._sharing.loss)

    @loss.setter
    def loss(self, value: float) -> None:
        self._loss = value
        if self._sharing is not None:
            self._sharing.loss, self._loss = value, 0.0

    @property
    def n_seen(self) -> int:
        """Number of examples that the parameters were trained on."""
        return int(self.clock.n_examples)

    def least(self, batch_size: int) -> int:
        """Return the number of examples of which a call of `train` has a multiple."""
        kind, n = self._kind(batch_size)
        return batch_size * (n if kind.is_async else 1)

    def seconds_a_call(self, batch_size: int) -> float:
        """Return the target duration of a call of `train`.

        It is longer where the main thread, which handles interrupts, only waits for
        others.
        """
        kind, n = self._kind(batch_size)
        return pace.SECONDS_A_CALL * (5 if kind.is_async and n > 1 else 1)

    def set_span(self, span: float) -> None:
        """Let the learning rate fall to 0 after `span` examples of its schedule."""
        schedule = replace(self.solver.schedule, span=span)
        self.solver = replace(self.solver, schedule=schedule)
        self._release()  # the kernels have the old one

    def begin_epoch(self) -> None:
        """Set the loss to 0, and forget what was read in another epoch."""
        self.loss = 0.0
        if self.memory:
            self.memory["memory_last"][...] = -1

    def settle(self) -> None:
        """Apply outstanding weight decay and recompute derived features."""
        self.solver.apply_pending_decay(self.parameters, self.solver_state, self.clock)
        self.parts.features.settle(self.parameters)

    @contextmanager
    def unsettled(self) -> Iterator[None]:
        """Undo, at the end, the changes of `settle`, and nothing else."""
        arrays = self.parameters.trained() | {
            name: array
            for name, array in self.solver_state.items()
            if name.endswith("_C") or name.startswith("decayed_")
        }
        kept = {name: array.copy() for name, array in arrays.items()}
        clock = self.clock.read()
        try:
            yield
        finally:
            for name, array in arrays.items():
                array[...] = kept[name]
            self.clock.set(*clock)

    def copy(self) -> list[Array]:
        """Return a snapshot of the (settled) parameters, for `restore`."""
        return [array.copy() for array in self.parameters.trained().values()]

    def restore(self, snapshot: list[Array]) -> None:
        """Restore the parameters from a snapshot."""
        arrays = self.parameters.trained().values()
        for array, kept in zip(arrays, snapshot, strict=True):
            array[:] = kept

    def state(self) -> State:
        """Return all that training changes, settled or not."""
        moving = np.array([*self.clock.read(), self.loss])
        return self._arrays() | {"moving": moving}

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Restore a `state` after `n_seen` examples, or raise ValueError."""
        arrays = self._arrays()
        saved = {k: state.array(k, a.dtype, a.shape) for k, a in arrays.items()}
        moving = state.array("moving", np.float64, (5,))
        examples, updates, log_decay, pause, loss = moving.tolist()
        if (
            examples != n_seen
            or not np.isfinite(moving).all()
            or not (updates >= 0 and log_decay <= 0 and -updates <= pause <= 0)
        ):
            raise state.invalid_item("moving", moving.tolist())
        paused = saved.get("paused_C")
        if (
            paused is not None
            and not (
                (pause <= paused[:, 0]) & (paused[:, 0] <= 0) & (paused[:, 1] >= 0)
            ).all()
        ):
            raise ValueError("paused_C has updates or rates out of range")
        self.solver.check_state(saved)
        self.parts.output.check_state(saved, self.output_state)
        self.parts.hidden.lowest.check_memory(saved)
        for name, array in arrays.items():
            array[...] = saved[name]
        self.loss = loss
        self.clock.set(examples, updates, log_decay, pause)

    def _arrays(self) -> State:
        states = self.solver_state | self.output_state | self.dropout.state()
        states |= self.memory
        if self.processes is not ALONE:
            states |= {"seconds_by_kind": self.seconds.array}
        return self.parameters.trained() | states

    def costs(self) -> dict[str, float]:
        """Return further metrics of the epoch, for the history."""
        figures = self.parts.output.figures(self.output_state)
        return figures | ({} if self.processes is ALONE else self.seconds.taken())

    def sharing(self, batch_size: int) -> Sharing[Any]:
        """Return the threads that train with mini-batches of this size."""
        if self._sharing is None or self._sharing.batch_size != batch_size:
            self._release()
            self._run_length = self.run_length(batch_size)
            self._trained = self.kernel_parameters()
            self._sharing = self._shared(batch_size)
            self._sharing.loss, self._loss = self._loss, 0.0
        return self._sharing

    def _shared(self, batch_size: int) -> Sharing[Any]:
        kind, n_threads = self._kind(batch_size)
        return kind(Threads(n_threads), self, batch_size)

    def _kind(self, batch_size: int) -> tuple[type[Sharing[Any]], int]:
        kind, n_threads = sharing_of(
            self.parallel, self.parts, self.n_words, batch_size, self.threads.n
        )
        is_cut = kind is Examples and self.run_length(batch_size) > 1
        return (Rows, 1) if is_cut and not self.has_runs else (kind, n_threads)

    def _release(self) -> None:
        """Free the kernels and their memory, and keep their loss."""
        self._loss, self._sharing = self.loss, None

    def scratch(self) -> Scratch:
        """Return memory for kernels, which must outlive them."""
        return Scratch(self.tier)

    def run_length(self, batch_size: int) -> int:
        """Return the number of consecutive examples that a thread takes together."""
        return self.parts.hidden.lowest.run_length(batch_size)

    def solver_kernel(self, scratch: Scratch) -> Kernel:
        """Return a solver that updates the parameters."""
        return self.solver.kernel(
            self.tier, self.clock, self._trained, self.solver_state, scratch
        )

    def collector(
        self, solver: Kernel, scratch: Scratch, whole: Bytes | None = None
    ) -> Kernel:
        """Return what collects the gradients of a member for the solver."""
        learned = {name: self._trained[name] for name in self.parameters.learned()}
        return Gradients(
            self.tier, self.clock, learned.get("C"), solver=solver,
            parameters=list(learned.values()), scratch=scratch, whole=whole,
            **NO_SOLVER.schedule.kernel_options(),
        )  # fmt: skip

    def team(
        self,
        batch_size: int,
        make_solver: Callable[[Scratch], Kernel] | None,
        **options: Any,
    ) -> Team:
        """Make the kernels of a team that trains, with a solver made in its memory."""
        return self._team(batch_size, self._trained, make_solver, **options)


# -- sharing ---------------------------------------------------------------------


T = TypeVar("T", bound=Team | _examples.ExampleTeam | _examples.RankTeam)


class Sharing(ABC, Generic[T]):
    """Threads that train a network, in mini-batches of `batch_size` examples."""

    # Whether each thread trains on mini-batches of its own.
    is_async: ClassVar[bool] = False

    def __init__(self, threads: Threads, network: Network, batch_size: int) -> None:
        self.threads, self.batch_size = threads, batch_size
        self.teams = self.make_teams(network)

    @abstractmethod
    def make_teams(self, network: Network) -> list[T]:
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


class Rows(Sharing[Team]):
    """Each thread has output units of its own, of every example (section 3.2)."""

    def make_teams(self, network: Network) -> list[Team]:
        n, solver = self.threads.n, network.solver_kernel
        return [network.team(self.batch_size, solver, n_members=n)]

    def train(self, X: Ids, y: Ids, index: Index) -> None:
        (team,) = self.teams
        self.threads.run_together(
            partial(_network.train, team, X=X, y=y, index=index),
            len(team.outputs), give_up=self.give_up, finish=True,
        )  # fmt: skip


class Examples(Sharing[_examples.ExampleTeam]):
    """Each thread has examples of its own of every mini-batch."""

    def make_teams(self, network: Network) -> list[_examples.ExampleTeam]:
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
            partial(_examples.train, team, X=X, y=y, index=index),
            self.threads.n, give_up=self.give_up, finish=True,
        )  # fmt: skip


class Asynchronous(Sharing[Team]):
    """Each thread has mini-batches of its own, and updates without a lock (3.1).

    Part of an update is sometimes lost.
    """

    is_async: ClassVar[bool] = True
    locks: ClassVar[bool] = False  # whether a lock is around updates

    def make_teams(self, network: Network) -> list[Team]:
        n, solver = self.threads.n, network.solver_kernel
        options = {"n_workers": n, "lock": UpdateLock() if self.locks else None}
        length = network.run_length(self.batch_size)
        self._n_runs = None if length == 1 else self.batch_size // length
        return [
            network.team(self.batch_size, solver, worker=i, member=i, **options)
            for i in range(n)
        ]

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

    locks: ClassVar[bool] = True


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
    parallel: str, parts: Parts, n_words: int, batch_size: int, n_threads: int
) -> tuple[type[Sharing[Any]], int]:
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
