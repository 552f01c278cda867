"""Score held-out windows: a sample after each epoch, and all at the end of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.array_types import Ids, Index, Scores
from nplm.models.neural.network.network import Network
from nplm.models.training import pace
from nplm.models.training.parallel.processes import Processes

__all__ = ["MAX_SCORED_WINDOWS", "Scoring", "TextScoring", "scored_each_epoch"]

# The standard error of a change between epochs is 0.002 nats at first and 0.0002 with
# a small learning rate, where it is below the default `tol`.
MAX_SCORED_WINDOWS = 50_000  # held-out windows that an epoch scores
# Training windows scored after an epoch without held-out data, because the loss of the
# epoch precedes its last updates, which may diverge.
SCORED_TRAINING_WINDOWS = 1000
WINDOWS_A_CALL = 64  # of each thread, at first
WINDOWS_A_SHARED_CALL = 2048  # of processes that share the network
# Parts of a text that are read side by side, and windows of each in a mini-batch.
N_PARTS, N_STEPS = 16, 32

Reader = Callable[[Ids, Ids, Index], Scores]


def scored_each_epoch(windows: Windows) -> Windows:
    """Return the windows of which those to score after each epoch are.

    They are held out, or the last ones of training.
    """
    if windows.held_out is not None:
        return windows.held_out
    # Processes with windows of their own each score a share of as many.
    n = windows.min_windows or SCORED_TRAINING_WINDOWS
    return windows.part(slice(-min(n, SCORED_TRAINING_WINDOWS), None))


class Scoring:
    """Scores of windows, as closing work of the training loop (`loop.Closing`).

    - `processes`: processes that share the network
    - `scored`: the windows
    - `weight`: duration of a scored window, in windows of training
    - `most`: number of windows that a sample has, evenly spread. It draws no random
      number, so that it is the same in a resumed fit and in all processes. All by
      default
    """

    def __init__(
        self,
        network: Network,
        processes: Processes,
        scored: Windows,
        text: str,
        weight: float,
        most: int | None = None,
    ) -> None:
        self.network, self.processes = network, processes
        self.text, self.weight = text, weight
        self.n_scored = min(len(scored), most or len(scored))
        self._choose(scored)
        n_threads = network.threads.n
        self.least = self._n_together or WINDOWS_A_CALL * n_threads
        # The main thread waits for others, if there are any, and handles interrupts.
        self.seconds_a_call = pace.SECONDS_A_CALL * (5 if n_threads > 1 else 1)
        if processes.size > 1:
            # Sums over processes may round by their length: it must not depend on time.
            self.least = self._n_together or WINDOWS_A_SHARED_CALL
            self.seconds_a_call = 0.0
        self._scores = np.empty(0)

    # Number of windows that a call scores a multiple of; any by default.
    _n_together = 0

    def _choose(self, windows: Windows) -> None:
        """Set the windows that are scored."""
        n = self.n_steps = self.n_scored
        if n < len(windows):
            some = np.linspace(0, len(windows), n, endpoint=False).astype(np.intp)
            windows = replace(windows, rows=windows.index(some))
        self._scored = windows

    def begin(self) -> None:
        """Settle the network, and make room for the scores."""
        self.network.settle()
        self._scores = np.empty(self.n_steps)

    def work(self, start: int, stop: int) -> None:
        """Score these windows."""
        X, y = self._scored.part(slice(start, stop)).whole()
        self._scores[start:stop] = self.network.log_prob(X, y)

    def loss(self) -> float:
        """Return the mean loss of the windows, in nats per token; frees the scores."""
        loss = -float(np.mean(self._own_scores()))
        self._scores = np.empty(0)
        return float(self.processes.agree(loss))

    def _own_scores(self) -> Scores:
        """Return the score of each window, once."""
        return self._scores


class TextScoring(Scoring):
    """Scores of consecutive windows as a text, over which the hidden units' state goes.

    Parts of the text are read side by side, as the runs of training are. Each but the
    first begins with as many windows as a window has words, which are not counted: by
    then the state is almost that of the whole text.
    """

    _n_together = N_PARTS * N_STEPS

    def _choose(self, windows: Windows) -> None:
        n, ahead = len(windows), self.network.parts.n_columns
        n_parts = max(1, min(N_PARTS, self.n_scored // (4 * ahead)))
        length = -(-(self.n_scored + (n_parts - 1) * ahead) // n_parts)
        firsts = np.linspace(0, n - length, n_parts).astype(np.intp)[:, None]
        examples = firsts + np.arange(length)
        from_ = np.maximum(firsts + ahead, np.roll(firsts, 1) + length)
        from_[0] = 0
        self._counted = examples >= from_
        self._scored, self._rows = windows, windows.index(examples)
        self.n_steps, self._n_together = examples.size, n_parts * N_STEPS

    def begin(self) -> None:
        """Settle the network, and begin with an empty state."""
        super().begin()
        (rank, size), n = self.network.share, self.network.threads.n
        n_parts, n_workers = len(self._rows), n * size
        starts = [n_parts * i // n_workers for i in range(n_workers + 1)]
        own = starts[rank * n : (rank + 1) * n + 1]
        self._own = slice(own[0], own[-1])
        self._scores = np.zeros(self._rows.shape)
        self._readers = [
            (slice(a, b), self.network.reader((b - a) * N_STEPS))
            for a, b in pairwise(own)
            if b > a
        ]

    def work(self, start: int, stop: int) -> None:
        """Score the next windows of each part."""
        X, y = self._scored.X, self._scored.y
        n_parts = len(self._rows)
        steps = slice(start // n_parts, stop // n_parts)
        totals = np.zeros((3, n_parts, steps.stop - steps.start))

        def read(worker: tuple[slice, Reader]) -> None:
            parts, reader = worker
            rows = self._rows[parts, steps]
            for first in range(0, rows.shape[1], N_STEPS):
                some = rows[:, first : first + N_STEPS]
                found = reader(X, y, np.ascontiguousarray(some).ravel())
                part = totals[:, parts, first : first + N_STEPS]
                part[...] = found.reshape(3, *some.shape)

        self.network.threads.map(read, self._readers)
        scores = np.zeros(totals.shape[1:])
        scores[self._own] = self.network.combined(totals[:, self._own])
        if self.network.share[1] > 1:
            self.processes.sum(scores)
        self._scores[:, steps] = scores

    def _own_scores(self) -> Scores:
        self._readers = []
        return self._scores[self._counted]
