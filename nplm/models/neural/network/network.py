"""Train and score a network with threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural import _network
from nplm._kernels.neural._gradients import Gradients
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier, row_stride
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural._team import Team
from nplm.base.blocks import Texts, blocks
from nplm.base.fitted import Fitted
from nplm.models.neural.network.array_types import (
    Array,
    Counts,
    Ids,
    Index,
    Kernel,
    Scores,
    Shapes,
    State,
    Trained,
)
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout
from nplm.models.neural.network.features import Features
from nplm.models.neural.network.hidden import Given, Tanh
from nplm.models.neural.network.inputs import (
    Concatenation,
    MixedSenses,
)
from nplm.models.neural.network.outputs.base import Output, Workspace
from nplm.models.neural.network.parameters import (
    Parameters,
    aligned_zeros,
    draw_normal,
)
from nplm.models.neural.network.reading import READ_AT_ONCE, columns_of
from nplm.models.neural.network.sharing import Examples, Rows, Sharing, sharing_of
from nplm.models.neural.network.solvers import SGD, Schedule
from nplm.models.neural.tiers import kernel_tier
from nplm.models.training import pace
from nplm.models.training.parallel.processes import ALONE, Processes, Seconds
from nplm.models.training.parallel.threads import Threads

__all__ = ["Network", "Parts"]

# Examples of a mini-batch when scoring: large enough for the matrix products,
# small enough for a tile of their exponentials to stay in cache.
SCORING_BATCH = 512
# Mini-batches that a thread scores at a time, at most.
SCORING_PART = 4
# Placeholder for networks that only score.
NO_SOLVER = SGD(Schedule(0.0, 0.0, 0.0))


class Parts(NamedTuple):
    """The parts of a network; they have sizes, but no parameters."""

    inputs: Concatenation | MixedSenses
    hidden: Tanh
    output: Output
    features: Features

    def n_rows(self, n_words: int) -> int:
        """Return the number of rows of the output units."""
        return self.output.n_rows(n_words)

    def output_share(self, n_words: int) -> float:
        """Return the share of the output units in the weights of the products."""
        inputs, hidden, output, _ = self
        n_outputs = hidden.n_activations + output.direct * inputs.n_inputs
        own = output.n_rows(n_words) * n_outputs
        return own / max(1, own + hidden.n_weights(inputs.n_inputs))

    def shapes(self, n_words: int) -> Shapes:
        """Return the shapes of all trained arrays, without padding, by name."""
        inputs, hidden, output, features = self
        n_columns = 1 + (hidden.n_activations if output.weighted else 0)
        n_columns += inputs.n_inputs if output.direct else 0
        H = (hidden.lowest.n_sums, inputs.n_inputs)
        return {
            **({} if features.tied else {"C": (n_words, features.m)}),
            "H": H,
            "d": H[:1],
            "E": (output.n_rows(n_words), n_columns),
            **inputs.shapes(n_words),
            **hidden.shapes(inputs.n_inputs),
            **features.shapes(n_words),
            **output.shapes(features.m, hidden.n_hidden),
        }

    @property
    def n_columns(self) -> int:
        """Number of words of a window that are used."""
        return max(self.inputs.n_context, self.hidden.lowest.n_memory)

    @property
    def visited(self) -> tuple[str, ...]:
        """Names of the arrays of which an update visits few rows."""
        E = ("E",) if self.output.rows_are_visited else ()
        return self.features.visited + self.inputs.visited + E

    def initial(
        self,
        n_words: int,
        counts: Counts,
        rng: np.random.RandomState,
        dtype: DTypeLike,
        rows: slice = slice(None),
        embeddings: Array | None = None,
    ) -> Parameters:
        """Draw parameters, with only some `rows` of the output units.

        `counts` are those of the next words. `embeddings` replaces the random features.
        """
        inputs, hidden, output, features = self
        arrays = self.zeros(n_words, dtype, rows)
        draw_normal(arrays["H"], rng, 3.0 / np.sqrt(max(inputs.n_inputs, 1)))
        features.draw_own(arrays, rng, embeddings)
        inputs.draw(arrays, rng)
        hidden.draw(arrays, rng)
        features.draw_shared(arrays, rng, embeddings)
        output.draw(arrays, rng)
        parameters = self.parameters(arrays)
        parameters.set("b", output.initial_biases(n_words, counts)[rows])
        features.settle(parameters)
        return parameters

    def zeros(self, n_words: int, dtype: DTypeLike, rows: slice = slice(None)) -> State:
        """Return all trained arrays, of zeros, with some `rows` of the output units."""
        arrays = {}
        for name, shape in self.shapes(n_words).items():
            if name == "E":
                shape = len(range(*rows.indices(shape[0]))), shape[1]
            arrays[name] = np.zeros(shape, dtype)
            if name == "E" or name == "own":
                is_padded = name == "E" or self.features.tied
                n_columns = row_stride(shape[1]) if is_padded else shape[1]
                arrays[name] = aligned_zeros((shape[0], n_columns), dtype)
        return arrays

    def parameters(self, arrays: State) -> Parameters:
        """Return parameters with these arrays, made by `zeros`."""
        output, features = self.output, self.features
        if features.tied:
            arrays = {"C": arrays["E"][:, : features.m]} | arrays
        return Parameters(
            direct=output.direct, weighted=output.weighted, visited=self.visited,
            derived=features.derived, tied=features.tied, **arrays,
        )  # fmt: skip


class Network:
    """The parts of a network, their parameters, and the state of training.

    - `parts`: inputs, hidden units and output
    - `parameters`: changed in place by `train`
    - `precision`: precision of the arithmetic
    - `threads`: one thread by default
    - `parallel`: how threads share the training (`sharing_of`)
    - `state`: state of the solver; new by default. Unused when scoring
    - `output_state`: state of the output, for training
    - `memory`: state of the hidden units, for training
    - `dropout`: dropout during training; none by default
    - `clock`: numbers of examples seen and of updates made before
    - `processes`: processes that train it together; this one by default
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
        self.parts, self.parameters = parts, parameters
        self.tier = Tier(kernel_tier(precision), precision)
        self.parallel = parallel
        self.threads = Threads(1) if threads is None else threads
        self.solver = solver
        if state is None:
            state = solver.initial_state(parameters)
        self.solver_state = state
        self.output_state = output_state or {}
        self.memory = memory or {}
        self.dropout = dropout
        self.clock = Clock(*clock)
        self.processes, self.seconds = processes, Seconds()
        self._sharing: Sharing | None = None
        self._run_length = 1  # of the mini-batches of all members
        self._loss = 0.0  # the part that no current team holds

    # Id of the first word of the output rows; above 0 if processes share them.
    first = 0
    # Whether a mini-batch has separate runs, by which threads may share it where units
    # have a state.
    has_runs = True

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return len(self.parameters.C)

    # -- training -------------------------------------------------------------

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

        The main thread handles interrupts between calls, or at once while other threads
        do all the work. Calls are then longer, so that threads wait for the slowest one
        less often.
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

    # -- scoring --------------------------------------------------------------

    # Of processes that each score a share: the number of this one, and of all.
    share = 0, 1

    def log_prob(self, X: Ids, y: Ids) -> Scores:
        """Return the natural-log probability of each next word."""
        return self.combined(self._totals(X, y))

    def combined(self, totals: Scores) -> Scores:
        """Return the natural-log probabilities from the totals of all output rows."""
        high, total, target = totals
        return target - high - np.log(total)

    def reader(self, batch_size: int) -> Callable[[Ids, Ids, Index], Scores]:
        """Return a function that scores rows of X in an order in which they are read.

        The state of the hidden units goes on where a row follows the one before it in
        X, as in training, also from one mini-batch and call to the next. It returns
        totals, for `combined`.
        """
        memory = self.parts.hidden.lowest.initial_memory(
            1, batch_size, self.parameters.dtype
        )
        trained = self.solver.kernel_parameters(self.parameters, self.solver_state)
        team = self._team(batch_size, trained, memory=memory)

        def totals(X: Ids, y: Ids, rows: Index) -> Scores:
            out = np.empty((3, len(rows)))
            _network.score(team, X, y, rows, out)
            return out

        return totals

    def log_prob_of_texts(self, texts: Texts) -> Scores:
        """Return the log-probability of each token; the state goes on within a text."""
        X, y, out = texts.X, texts.y, np.empty(len(texts))

        def read(part: slice) -> None:
            totals = self.reader(READ_AT_ONCE)
            for rows, tokens in columns_of(texts, part):
                out[tokens] = self.combined(totals(X, y, rows))

        ends = np.linspace(0, len(out), self.threads.n + 1)[1:-1]
        inner = np.searchsorted(texts.begin, ends).tolist()
        cuts = sorted({0, *inner, len(texts.first)})
        self.threads.map(read, [slice(*pair) for pair in pairwise(cuts)])
        return out

    def state_before(self, ids: Ids) -> bytes | None:
        """Return the state before the last word of a text, None if it is the first."""
        n_context = self.parts.inputs.n_context
        if len(ids) <= n_context:
            return None
        X = np.lib.stride_tricks.sliding_window_view(ids[:-1], n_context)
        hidden = self.parts.hidden
        memory = hidden.lowest.initial_memory(1, 1, self.parameters.dtype)
        trained = self.solver.kernel_parameters(self.parameters, self.solver_state)
        team = self._team(READ_AT_ONCE, trained, memory=memory)
        for rows in blocks(len(X), READ_AT_ONCE):
            index = np.arange(rows.start, rows.stop)
            out = np.empty((len(index), hidden.n_activations), self.parameters.dtype)
            _network.hidden(team, X, index, out.view(np.uint8))
        return memory["memory"][0, 0].tobytes()

    def step(self, X: Ids, states: Sequence[bytes | None]) -> tuple[Array, list[bytes]]:
        """Return the log-probabilities of all words, and the states, after contexts.

        - `X` (n, n_context): a context of each text
        - `states` (n,): the state before each, None where a text begins
        """
        n = len(X)
        memory = self.parts.hidden.lowest.initial_memory(
            1, n - 1, self.parameters.dtype
        )
        [numbers], [last] = memory["memory"], memory["memory_last"]
        for i, state in enumerate(states):
            if state is not None:
                numbers[i], last[i] = np.frombuffer(state, numbers.dtype), 2 * i
        # Each context follows a row of its own.
        rows = np.zeros((2 * n, X.shape[1]), np.int32)
        rows[::2, 1:], rows[1::2] = X[:, :-1], X
        out = np.empty((n, self.parts.output.n_outcomes(self.n_words)), numbers.dtype)
        trained = self.solver.kernel_parameters(self.parameters, self.solver_state)
        team = self._team(n, trained, memory=memory)
        index = np.arange(1, 2 * n, 2)
        _network.probabilities(team, rows, index, out.view(np.uint8), logarithm=True)
        return out, [row.tobytes() for row in numbers]

    def normalizers(self, X: Ids) -> Scores:
        """Return the log of the sum of exponentiated logits after each context."""
        high, total, _ = self._totals(X, np.zeros(len(X), dtype=np.int32))
        return high + np.log(total)

    def _totals(self, X: Ids, y: Ids) -> Scores:
        """Return the maximum, sum and target logit over the output rows held here."""
        totals = np.empty((3, len(y)))

        def score(team: Team, part: slice, index: Index) -> None:
            _network.score(team, X, y, index, totals[:, part])

        self._map(score, X)
        return totals

    def predict_proba(self, X: Ids, *, logarithm: bool = False) -> Array:
        """Return the probabilities of all words, or their natural logarithms."""
        n_outcomes = self.parts.output.n_outcomes(self.n_words)
        fill = partial(_network.probabilities, logarithm=logarithm)
        return self._filled(fill, X, n_outcomes)

    def hidden(self, X: Ids) -> Array:
        """Return what the output multiplies after each context, but the features."""
        return self._filled(_network.hidden, X, self.parts.hidden.n_activations)

    def _filled(self, fill: Callable[..., None], X: Ids, n_columns: int) -> Array:
        """Return an array with a row for each window, filled by `fill`."""
        out = np.empty((len(X), n_columns), dtype=self.parameters.dtype)
        memory = out.view(np.uint8).reshape(len(X), -1)
        self._map(lambda team, part, index: fill(team, X, index, memory[part]), X)
        return out

    def candidates(self, X: Ids, words: Ids, *, normalize: bool) -> Scores:
        """Return log-probabilities or logits of given words for each window."""
        out = np.empty(words.shape)

        def fill(team: Team, part: slice, index: Index) -> None:
            _network.candidates(
                team, X, index, words[part], out[part], normalize=normalize
            )

        self._map(fill, X)
        return out

    def _map(self, work: Callable[[Team, slice, Index], None], X: Ids) -> None:
        """Call `work` for parts of windows, each with a team of its own.

        The parts are short, so that an interrupt is handled soon.
        """
        n, n_columns = X.shape
        batch = max(1, min(SCORING_BATCH, -(-n // self.threads.n)))
        trained = self.solver.kernel_parameters(self.parameters, self.solver_state)

        def score(part: slice) -> None:
            index = np.arange(part.start, part.stop)
            team = self._team(batch, trained, memory={}, n_columns=n_columns)
            work(team, part, index)

        self.threads.map(score, self.threads.split(n, batch, SCORING_PART))

    # -- teams ------------------------------------------------------------------

    def sharing(self, batch_size: int) -> Sharing:
        """Return the threads that train with mini-batches of this size."""
        if self._sharing is None or self._sharing.batch_size != batch_size:
            self._release()
            self._run_length = self.run_length(batch_size)
            self._trained = self.solver.kernel_parameters(
                self.parameters, self.solver_state
            )
            self._sharing = self._shared(batch_size)
            self._sharing.loss, self._loss = self._loss, 0.0
        return self._sharing

    def _shared(self, batch_size: int) -> Sharing:
        kind, n_threads = self._kind(batch_size)
        return kind(Threads(n_threads), self, batch_size)

    def _kind(self, batch_size: int) -> tuple[type[Sharing], int]:
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

    def collector(self, solver: Kernel, scratch: Scratch, whole: Any = None) -> Kernel:
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

    def _team(
        self,
        batch_size: int,
        trained: Trained,
        make_solver: Callable[[Scratch], Kernel] | None = None,
        *,
        memory: State | None = None,
        n_columns: int | None = None,
        n_members: int = 1,
        member: int = 0,
        worker: int = 0,
        n_workers: int = 1,
        **options: Any,
    ) -> Team:
        """Make the kernels of one team; without a solver, it scores.

        It scores rows of texts with a `memory`, else windows of `n_columns` alone.
        """
        scoring = make_solver is None
        alone = scoring and not memory
        n_columns = self.parts.n_columns if n_columns is None else n_columns
        tier, scratch = self.tier, Scratch(self.tier)
        inputs, hidden, output, features = self.parts
        activations = Activations(
            tier, scratch, batch_size=batch_size, scoring=scoring,
            n_context=n_columns if alone else inputs.n_context,
            n_inputs=inputs.n_inputs, n_hidden=hidden.n_activations,
            learns_inputs=features.learned or inputs.learned,
            n_columns=n_columns,
        )  # fmt: skip
        solver = None if make_solver is None else make_solver(scratch)
        max_words = output.n_tied_rows(batch_size)
        if max_words is not None:
            max_words += batch_size * inputs.n_context
        table = (
            features.reader(tier, trained)
            if scoring
            else features.kernel(tier, trained, scratch, max_words)
        )
        outputs = output.kernels(Workspace(
            tier if output.rounds else tier.unrounded(), scratch, activations, table,
            trained, self.output_state, first=self.first, n_members=n_members,
            member=member, worker=worker, n_workers=n_workers, solver=solver,
        ))  # fmt: skip
        dropout = NO_DROPOUT if scoring else self.dropout
        masks = dropout.masks(scratch, self.clock, worker, self._run_length)

        def inputs_kernel(activations: Activations) -> Kernel:
            return inputs.kernel(table, trained, activations, scratch)

        given = Given(
            trained, scratch, masks, inputs_kernel, inputs.n_context,
            memory=(memory or {}) if scoring else self.memory, member=member,
        )  # fmt: skip
        below = (
            masks.of_inputs(activations, table, inputs_kernel(activations)),
            hidden.kernel(activations, given),
        )
        n_outcomes = output.n_outcomes(self.n_words)
        options = {"size": len(outputs), "n_outcomes": n_outcomes} | options
        return Team(tier, activations, *below, tuple(outputs), solver, **options)
