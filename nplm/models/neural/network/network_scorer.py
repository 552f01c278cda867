"""Score windows and texts with a network, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from nplm._kernels.neural import _network
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural._team import Team
from nplm.base.array_types import Array, Floats, Ids, Index, State
from nplm.base.blocks import Texts, blocks
from nplm.base.progress import bar
from nplm.models.neural.network.dropout import NO_DROPOUT, Dropout, Masks
from nplm.models.neural.network.parameters import Parameters
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.network.solver_updates import SGD, Schedule
from nplm.models.neural.network.workspace import Kernel, Trained, Workspace
from nplm.models.neural.tiers import kernel_tier
from nplm.models.training.parallel.blas import blas_threads
from nplm.models.training.parallel.threads import Threads

# Examples of a mini-batch when scoring: large enough for the matrix products,
# small enough for a tile of their exponentials to stay in cache.
SCORING_BATCH = 512
# Mini-batches that a thread scores at a time, at most.
SCORING_PART = 4
# Rows of a mini-batch of texts, and texts that are read side by side.
READ_AT_ONCE, MOST_COLUMNS = 512, 64
# Mini-batches of texts from one report of the progress to the next.
STEPS_SHOWN = 8
# Fewer windows are scored before their repeats are found.
MIN_WINDOWS = 256
# Below this share of distinct windows, scoring them alone is faster than all.
MAX_DISTINCT_SHARE = 0.95
# Odd: a multiplication modulo 2**64 then loses nothing. From SplitMix64.
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
# Placeholder for networks that only score.
NO_SOLVER = SGD(Schedule(0.0, 0.0, 0.0))


class Scorer:
    """The parts of a network and their parameters, which it does not change."""

    solver: SGD = NO_SOLVER
    dropout: Dropout = NO_DROPOUT
    # Id of the first word of the output rows; above 0 if processes share them.
    first = 0
    # Of processes that each score a share: the number of this one, and of all.
    share = 0, 1
    _run_length = 1  # of the mini-batches of all members

    def __init__(
        self,
        parts: Parts,
        parameters: Parameters,
        precision: str,
        threads: Threads | None,
    ) -> None:
        self.parts, self.parameters = parts, parameters
        self.tier = Tier(kernel_tier(precision), precision)
        self.threads = Threads(1) if threads is None else threads
        self.solver_state: State = {}
        self.output_state: State = {}
        self.memory: State = {}
        self.clock = Clock(0, 0)

    def kernel_parameters(self) -> Trained:
        """Return the parameters in the form that kernels take."""
        return self.solver.kernel_parameters(self.parameters, self.solver_state)

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return len(self.parameters.C)

    def log_prob(self, X: Ids, y: Ids) -> Floats:
        """Return the natural-log probability of each next word."""
        return self.combined(self._totals(X, y))

    def log_prob_of_distinct(self, X: Ids, y: Ids) -> Floats:
        """Return the same, computed once for windows that are equal."""
        # The bits of a window do not depend on the others.
        distinct = distinct_windows(X, y)
        if distinct is None:
            return self.log_prob(X, y)
        first, group = distinct
        return self.log_prob(X[first], y[first])[group]

    def combined(self, totals: Floats) -> Floats:
        """Return the natural-log probabilities from the totals of all output rows."""
        high, total, target = totals
        return target - high - np.log(total)

    def reader(self, batch_size: int) -> Callable[[Ids, Ids, Index], Floats]:
        """Return a function that returns the totals of rows of X, for `combined`.

        The state of the hidden units goes on from row to row, also between calls.
        """
        memory = self.parts.hidden.lowest.initial_memory(
            1, batch_size, self.parameters.dtype
        )
        trained = self.kernel_parameters()
        team = self._team(batch_size, trained, memory=memory)

        def totals(X: Ids, y: Ids, rows: Index) -> Floats:
            out = np.empty((3, len(rows)))
            _network.score(team, X, y, rows, out)
            return out

        return totals

    def log_prob_of_texts(self, texts: Texts) -> Floats:
        """Return the log-probability of each token; the state goes on within a text."""
        X, y, out = texts.X, texts.y, np.empty(len(texts))

        def read(part: slice) -> None:
            totals, n, total = self.reader(READ_AT_ONCE), 0, 0.0
            for step, (rows, tokens) in enumerate(columns_of(texts, part), 1):
                out[tokens] = scores = self.combined(totals(X, y, rows))
                n, total = n + len(scores), total + float(scores.sum())
                # One thread tells of all: they have about as much to do.
                if shown is not None and part.start == 0 and step % STEPS_SHOWN == 0:
                    shown(n, texts.lengths[part].sum(), -total / n)

        ends = np.linspace(0, len(out), self.threads.n + 1)[1:-1]
        inner = np.searchsorted(texts.begin, ends).tolist()
        cuts = sorted({0, *inner, len(texts.first)})
        with bar(0, "network", "{:.2f} nats".format) as shown, blas_threads(1):
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
        trained = self.kernel_parameters()
        team = self._team(READ_AT_ONCE, trained, memory=memory)
        with blas_threads(1):
            for rows in blocks(len(X), READ_AT_ONCE):
                index = np.arange(rows.start, rows.stop)
                shape = len(index), hidden.n_activations
                out = np.empty(shape, self.parameters.dtype)
                _network.hidden(team, X, index, out.view(np.uint8))
        return memory["memory"][0, 0].tobytes()

    def step(self, X: Ids, states: Sequence[bytes | None]) -> tuple[Array, list[bytes]]:
        """Return log-probabilities of all words after contexts, and the states."""
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
        trained = self.kernel_parameters()
        team = self._team(n, trained, memory=memory)
        index = np.arange(1, 2 * n, 2)
        filled = out.view(np.uint8)
        with blas_threads(1):
            _network.probabilities(team, rows, index, filled, logarithm=True)
        return out, [row.tobytes() for row in numbers]

    def normalizers(self, X: Ids) -> Floats:
        """Return the log of the sum of exponentiated logits after each context."""
        high, total, _ = self._totals(X, np.zeros(len(X), dtype=np.int32))
        return high + np.log(total)

    def _totals(self, X: Ids, y: Ids) -> Floats:
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

    def candidates(self, X: Ids, words: Ids, *, normalize: bool) -> Floats:
        """Return log-probabilities or logits of given words for each window."""
        out = np.empty(words.shape)

        def fill(team: Team, part: slice, index: Index) -> None:
            _network.candidates(
                team, X, index, words[part], out[part], normalize=normalize
            )

        self._map(fill, X)
        return out

    def _map(self, work: Callable[[Team, slice, Index], None], X: Ids) -> None:
        """Call `work` for short parts of windows, each with a team of its own."""
        n, n_columns = X.shape
        batch = max(1, min(SCORING_BATCH, -(-n // self.threads.n)))
        trained = self.kernel_parameters()

        def score(part: slice) -> None:
            index = np.arange(part.start, part.stop)
            team = self._team(batch, trained, memory={}, n_columns=n_columns)
            work(team, part, index)

        with blas_threads(1):
            self.threads.map(score, self.threads.split(n, batch, SCORING_PART))

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
        """Make the kernels of a team; it scores texts with a `memory`, else windows."""
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
        dropout = NO_DROPOUT if scoring else self.dropout
        masks = Masks(dropout, scratch, self.clock, worker, self._run_length)
        team = Workspace(
            tier if output.rounds else tier.unrounded(), scratch, activations, trained,
            table, inputs, masks, output_state=self.output_state,
            memory=(memory or {}) if scoring else self.memory, first=self.first,
            n_members=n_members, member=member, worker=worker, n_workers=n_workers,
            solver=solver,
        )  # fmt: skip
        outputs = output.kernels(team)
        below = (
            masks.of_inputs(activations, table, inputs.kernel(team, activations)),
            hidden.kernel(team, activations),
        )
        n_outcomes = output.n_outcomes(self.n_words)
        options = {"size": len(outputs), "n_outcomes": n_outcomes} | options
        return Team(tier, activations, *below, tuple(outputs), solver, **options)


def columns_of(texts: Texts, part: slice) -> Iterator[tuple[Index, Index]]:
    """Yield the rows of mini-batches of texts side by side, and their tokens."""
    first, lengths = texts.first[part].tolist(), texts.lengths[part].tolist()
    begin = texts.begin[part].tolist()
    waiting = (text for text in zip(first, begin, lengths) if text[2])
    going: list[tuple[int, int, int]] = []
    while True:
        going += islice(waiting, MOST_COLUMNS - len(going))
        if not going:
            return
        share = READ_AT_ONCE // len(going)
        pieces = [(row, at, min(left, share)) for row, at, left in going]
        yield (
            np.concatenate([np.arange(row, row + n) for row, _, n in pieces]),
            np.concatenate([np.arange(at, at + n) for _, at, n in pieces]),
        )
        going = [
            (row + n, at + n, left - n)
            for (row, at, n), (_, _, left) in zip(pieces, going)
            if left > n
        ]


def distinct_windows(X: Ids, y: Ids) -> tuple[Index, Index] | None:
    """Return the first of each group of equal windows, and the group of each window.

    The result is None if most windows are distinct, or there are few.
    """
    if len(y) < MIN_WINDOWS:
        return None
    words = [y, *X.T]
    hashes = np.zeros(len(y), np.uint64)
    for column in words:
        hashes ^= column.astype(np.uint64)
        hashes *= MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) > MAX_DISTINCT_SHARE * len(y):
        return None
    if not all(np.array_equal(column[first[group]], column) for column in words):
        return None  # two windows have one hash
    # In the order of the text: windows that begin alike share steps of LSTM cells.
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group]
