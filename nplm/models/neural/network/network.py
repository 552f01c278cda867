"""A network: its parts put together, trained and scored by threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _network
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural._team import Team, UpdateLock
from nplm.base.fitted import Fitted
from nplm.models.neural.network.dropout import NONE, Dropout
from nplm.models.neural.network.features import Features
from nplm.models.neural.network.hidden import NoHidden, Tanh
from nplm.models.neural.network.inputs import (
    Concatenation,
    DistantAverages,
    MixedSenses,
)
from nplm.models.neural.network.outputs.base import Output, Workspace
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.solvers import SGD, Schedule, Solver, State
from nplm.models.neural.tiers import kernel_tier
from nplm.training import pace
from nplm.training.parallel.threads import Threads

__all__ = ["Network", "Parts"]

# Examples of a mini-batch when scoring: large enough for the matrix products,
# small enough for a tile of their exponentials to stay in cache.
SCORING_BATCH = 512
# Mini-batches that a thread scores at a time, at most.
SCORING_PART = 4
# A network that only scores has no use for one.
NO_STEPS = SGD(Schedule(0.0, 0.0, 0.0))


class Parts(NamedTuple):
    """What a network is made of, beside its solver; sizes and no numbers."""

    inputs: Concatenation | MixedSenses
    hidden: Tanh
    output: Output
    features: Features

    @classmethod
    def of(
        cls,
        n_window: int,
        features: Features,
        n_hidden: int,
        output: Output,
        n_distant: int = 0,
    ) -> Parts:
        """Choose the kinds of inputs and hidden units."""
        return cls(
            DistantAverages(n_window, features.m, n_distant)
            if n_distant
            else Concatenation(n_window, features.m),
            Tanh(n_hidden) if n_hidden else NoHidden(),
            output,
            features,
        )

    def n_rows(self, n_words: int) -> int:
        """Rows of the output units, for so many words."""
        return self.output.n_rows(n_words)

    @property
    def visited(self) -> tuple[str, ...]:
        """The arrays of which an update visits few rows."""
        E = ("E",) if self.output.rows_are_visited else ()
        return self.features.visited + self.inputs.visited + E

    def initial(
        self,
        n_words: int,
        y: NDArray[np.int32],
        rng: np.random.RandomState,
        dtype: DTypeLike,
        rows: slice = slice(None),
    ) -> Parameters:
        """Draw parameters; of the output units only some `rows`."""
        inputs, hidden, output, features = self
        H, d = hidden.initial(inputs.n_inputs, rng, dtype)
        C = features.initial(n_words, rng, dtype)
        more = inputs.initial_arrays(n_words, rng, dtype)
        more |= hidden.initial_arrays(inputs.n_inputs, dtype)
        more |= features.initial_arrays(C, rng)
        more |= output.initial_arrays(n_words, C.shape[1], len(d), rng, dtype)
        b = output.initial_biases(n_words, y)[rows]
        n_weights = hidden.n_activations if output.weighted else 0
        E = Parameters.output_rows(
            len(b), n_weights, inputs.n_inputs, output.direct, dtype
        )
        made = Parameters(
            C, H, d, E, direct=output.direct, weighted=output.weighted,
            visited=self.visited, derived=features.derived, tied=features.tied, **more,
        )  # fmt: skip
        made.C[...] = C
        made.set("b", b)
        features.settle(made)
        return made


class Network:
    """Parts, their parameters, and the state of their training.

    Threads that train in `parallel` share the output units of each example
    ("rows": one team), or each train on examples of their own (section 3.1):
    "async" without a lock, so that part of an update is now and then lost; "locked"
    with one around each update.

    Parameters
    ----------
    parts : Parts
        Inputs, hidden units and output.
    parameters : Parameters
        Changed in place by `train`.
    precision : {"float32", "float64", "bfloat16"}
        Of the arithmetic.
    threads : Threads, optional
        One by default.
    parallel : {"rows", "async", "locked"}
        See above.
    solver : Solver, optional
        For training.
    state : dict of ndarray, optional
        The solver's; new by default. To score, none is of use.
    output_state : dict of ndarray, optional
        The output's, to train.
    dropout : Dropout, optional
        What training leaves out; nothing by default.
    clock : tuple of float
        Examples seen and updates made before.
    """

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        *,
        precision: str,
        threads: Threads | None = None,
        parallel: str = "rows",
        solver: Solver = NO_STEPS,
        state: State | None = None,
        output_state: State | None = None,
        dropout: Dropout = NONE,
        clock: tuple[float, float] = (0, 0),
    ) -> None:
        self.parts, self.parameters = parts, parameters
        self.tier = Tier(kernel_tier(precision), precision)
        self.parallel = parallel
        self.threads = Threads(1) if threads is None else threads
        self.solver = self._solver_at_first = solver
        if state is None:
            state = solver.initial_state(parameters)
        self.solver_state = state
        self.output_state = output_state or {}
        self.dropout = dropout
        self.clock = Clock(*clock)
        self._teams: list[Any] = []
        self._loss = 0.0  # of no team

    # Words of the output rows; a network spread over processes has some.
    first = 0

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return len(self.parameters.C)

    # -- training -------------------------------------------------------------

    def train(
        self,
        X: NDArray[np.int32],
        y: NDArray[np.int32],
        index: NDArray[np.intp],
        batch_size: int,
    ) -> None:
        """One pass over the examples `index`, adding to `loss`."""
        teams = self._teams_of(batch_size)

        def give_up() -> None:
            for team in teams:
                team.give_up()

        def train(team: Any, member: int, examples: NDArray[np.intp]) -> None:
            _network.train(team, member, X, y, examples)

        try:
            if self.parallel == "rows":
                (team,) = teams
                self.threads.abreast(
                    lambda member: train(team, member, index),
                    len(team.outputs), give_up=give_up,
                )  # fmt: skip
            else:
                own = self.threads.split(len(index), batch_size)
                self.threads.map(
                    lambda part: train(part[0], 0, index[part[1]]),
                    list(zip(teams, own)), give_up=give_up,
                )  # fmt: skip
        except BaseException:
            self._dismiss()  # a team that gave up is of no more use
            raise

    @property
    def loss(self) -> float:
        """Summed negative log-likelihood since it was last set."""
        return self._loss + sum(team.loss for team in self._teams)

    @loss.setter
    def loss(self, value: float) -> None:
        self._loss = value
        for team in self._teams:
            # All of it is one team's to add to: a sum has the bits of its order.
            team.loss, self._loss = self._loss, 0.0

    @property
    def n_seen(self) -> int:
        """Examples that the parameters were trained on."""
        return int(self.clock.n_examples)

    @property
    def seconds_a_call(self) -> float:
        """How long a call of `train` should last, about.

        The main thread sees an interrupt between calls. While other threads do all
        the work it sees it at once: the calls are longer, and wait for the slowest
        thread less often.
        """
        only_waits = self.parallel != "rows" and self.threads.n > 1
        return pace.SECONDS_A_CALL * (5 if only_waits else 1)

    def slow_down(self, n_halvings: int) -> None:
        """Go on with the step that the solver began with, halved so often."""
        schedule = self._solver_at_first.schedule.slowed(n_halvings)
        if schedule != self.solver.schedule:
            self._dismiss()  # their kernels have the old one
            self.solver = replace(self.solver, schedule=schedule)

    def settle(self) -> None:
        """Bring all parameters up to date."""
        self.solver.settle(self.parameters, self.solver_state, self.clock)
        self.parts.features.settle(self.parameters)

    def copy(self) -> list[NDArray[Any]]:
        """Snapshot of the (settled) parameters, for `restore`."""
        return [array.copy() for array in self.parameters.trained().values()]

    def restore(self, snapshot: list[NDArray[Any]]) -> None:
        """Set the parameters back to a snapshot."""
        arrays = self.parameters.trained().values()
        for array, kept in zip(arrays, snapshot, strict=True):
            array[:] = kept

    def state(self) -> dict[str, NDArray[Any]]:
        """Give all that training changes, settled or not."""
        moving = np.array([*self.clock.read(), self.loss])
        return self._arrays() | {"moving": moving}

    def set_state(self, state: Fitted, n_seen: int) -> None:
        """Set what `state` gave, after so many examples, or raise ValueError."""
        own = self._arrays()
        found = {k: state.array(k, a.dtype, a.shape) for k, a in own.items()}
        moving = state.array("moving", np.float64, (4,))
        examples, updates, log_decay, loss = moving.tolist()
        if examples != n_seen or not (updates >= 0 and log_decay <= 0):
            raise state.unfit("moving", moving.tolist())
        self.solver.check_state(found)
        self.parts.output.check_state(found, self.output_state)
        for name, array in own.items():
            array[...] = found[name]
        self.loss = loss
        self.clock.set(examples, updates, log_decay)

    def _arrays(self) -> State:
        states = self.solver_state | self.output_state | self.dropout.state()
        return self.parameters.trained() | states

    def costs(self) -> dict[str, float]:
        """More figures of the epoch for the history."""
        return self.parts.output.figures(self.output_state)

    # -- scoring --------------------------------------------------------------

    def log_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Natural-log probability of each next word, block by block."""
        high, total, target = self._totals(X, y)
        return target - high - np.log(total)

    def normalizers(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Natural logarithm of the sum of exponentials after each context."""
        high, total, _ = self._totals(X, np.zeros(len(X), dtype=np.int32))
        return high + np.log(total)

    def _totals(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Give what the output rows here know of each probability."""
        totals = np.empty((3, len(y)))

        def score(team: Any, part: slice) -> None:
            index = np.arange(part.start, part.stop)
            _network.score(team, X, y, index, totals[:, part])

        self._map(score, len(X))
        return totals

    def predict_proba(
        self, X: NDArray[np.int32], *, logarithm: bool = False
    ) -> NDArray[Any]:
        """Probabilities of all words, or their natural logarithms."""
        n_outcomes = self.parts.output.n_outcomes(self.n_words)
        out = np.empty((len(X), n_outcomes), dtype=self.parameters.dtype)
        memory = out.view(np.uint8).reshape(len(X), -1)

        def fill(team: Any, part: slice) -> None:
            index = np.arange(part.start, part.stop)
            _network.probabilities(team, X, index, memory[part], logarithm=logarithm)

        self._map(fill, len(X))
        return out

    def candidates(
        self, X: NDArray[np.int32], words: NDArray[np.int32], *, normalize: bool
    ) -> NDArray[np.float64]:
        """Natural-log probabilities of some words of each window, or their logits."""
        out = np.empty(words.shape)

        def fill(team: Any, part: slice) -> None:
            index = np.arange(part.start, part.stop)
            _network.candidates(
                team, X, index, words[part], out[part], normalize=normalize
            )

        self._map(fill, len(X))
        return out

    def _map(self, work: Callable[[Any, slice], None], n: int) -> None:
        """Do it for parts of n windows, each with a team of its own.

        The parts are short, so that an interrupt need not wait for all.
        """
        batch = max(1, min(SCORING_BATCH, -(-n // self.threads.n)))
        trained = self.solver.held(self.parameters, self.solver_state)

        def own(part: slice) -> None:
            work(self._team(batch, trained, scoring=True), part)

        self.threads.map(own, self.threads.split(n, batch, SCORING_PART))

    # -- teams ------------------------------------------------------------------

    def _teams_of(self, batch_size: int) -> list[Any]:
        """Give the teams that train, new ones if need be: one a worker."""
        if self._teams and self._teams[0].batch_size == batch_size:
            return self._teams
        self._dismiss()
        trained = self.solver.held(self.parameters, self.solver_state)
        if self.parallel == "rows":
            n_members = self.threads.n
            return self._employ([self._team(batch_size, trained, n_members=n_members)])
        lock = UpdateLock() if self.parallel == "locked" else None
        n = self.threads.n
        return self._employ([
            self._team(batch_size, trained, worker=i, n_workers=n, lock=lock)
            for i in range(n)
        ])  # fmt: skip

    def _employ(self, teams: list[Any]) -> list[Any]:
        teams[0].loss, self._loss = self._loss, 0.0
        self._teams = teams
        return teams

    def _dismiss(self) -> None:
        """Let the teams and their memory go; what they did counts."""
        self._loss, self._teams = self.loss, []

    def _team(
        self,
        batch_size: int,
        trained: dict[str, Any],
        *,
        scoring: bool = False,
        n_members: int = 1,
        worker: int = 0,
        n_workers: int = 1,
        **options: Any,
    ) -> Any:
        """Make the kernels' objects of one team, for `n_members` threads."""
        tier, scratch = self.tier, Scratch(self.tier)
        inputs, hidden, output, features = self.parts
        at = Activations(
            tier, scratch, batch_size=batch_size, scoring=scoring,
            n_context=inputs.n_context, n_inputs=inputs.n_inputs,
            n_hidden=hidden.n_activations,
            learns_inputs=features.learned or inputs.learned,
        )  # fmt: skip
        steps = None
        if not scoring:
            steps = self.solver.kernel(
                tier, self.clock, trained, self.solver_state, scratch
            )
        most = output.n_met(batch_size)
        if most is not None:
            most += batch_size * inputs.n_context
        table = (
            features.reader(tier, trained)
            if scoring
            else features.kernel(tier, trained, scratch, most)
        )
        outputs = output.kernels(Workspace(
            tier, scratch, at, table, trained, self.output_state, first=self.first,
            n_members=n_members, worker=worker, n_workers=n_workers, solver=steps,
        ))  # fmt: skip
        dropout = NONE if scoring else self.dropout
        masks = dropout.masks(scratch, self.clock, worker)
        below = (
            masks.of_inputs(at, table, inputs.kernel(table, trained, at, scratch)),
            hidden.kernel(tier, trained, at, scratch, masks),
        )
        n_outcomes = output.n_outcomes(self.n_words)
        options = {"size": len(outputs), "n_outcomes": n_outcomes} | options
        return Team(tier, at, *below, tuple(outputs), steps, **options)
