"""Score held-out windows: a sample after each epoch, and all at the end of a fit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from nplm.base.array_types import Floats, Ids, Index, Mask
from nplm.models.neural.fitting.training_windows import Windows
from nplm.models.neural.network.network import Network
from nplm.models.training import pace
from nplm.models.training.parallel.processes import Processes

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

Reader = Callable[[Ids, Ids, Index], Floats]


def scored_each_epoch(windows: Windows) -> Windows:
    """Return the windows that epochs score: held out, or the last of training."""
    if windows.held_out is not None:
        return windows.held_out
    # Processes with windows of their own each score a share of as many.
    n = windows.min_windows or SCORED_TRAINING_WINDOWS
    return windows.part(slice(-min(n, SCORED_TRAINING_WINDOWS), None))


class Scoring:
    """Scores of windows, as closing work of the training loop (`loop.Closing`).

    Units with a state read parts of a text side by side, from some windows before each
    part on. `weight` is the duration of a scored window, in windows of training. At
    most `most` are scored, evenly spread: the same ones in a resumed fit.
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
        self._continues = network.parts.hidden.lowest.n_memory > 0
        choose = self._parts if self._continues else self._sample
        examples, self._counted = choose(len(scored))
        self._X, self._y, self._rows = scored.X, scored.y, scored.index(examples)
        self._weights = None
        if scored.weights is not None:
            self._weights = scored.weights[examples[self._counted]]
        self.n_steps, n_threads = examples.size, network.threads.n
        self.least = WINDOWS_A_CALL * n_threads
        # The main thread waits for others, if there are any, and handles interrupts.
        self.seconds_a_call = pace.SECONDS_A_CALL * (5 if n_threads > 1 else 1)
        if processes.size > 1:
            # Sums over processes may round by their length: it must not depend on time.
            self.least, self.seconds_a_call = WINDOWS_A_SHARED_CALL, 0.0
        if self._continues:
            self.least = len(examples) * N_STEPS
        self._scores = np.empty(0)

    def _sample(self, n: int) -> tuple[Index, Mask]:
        """Return examples, evenly spread in one part, which all count."""
        examples = np.linspace(0, n, self.n_scored, endpoint=False).astype(np.intp)
        return examples[None], np.ones((1, len(examples)), np.bool_)

    def _parts(self, n: int) -> tuple[Index, Mask]:
        """Return the examples of parts of a text, and which of them count."""
        ahead = self.network.parts.n_columns
        n_parts = max(1, min(N_PARTS, self.n_scored // (4 * ahead)))
        length = -(-(self.n_scored + (n_parts - 1) * ahead) // n_parts)
        firsts = np.linspace(0, n - length, n_parts).astype(np.intp)[:, None]
        examples = firsts + np.arange(length)
        from_ = np.maximum(firsts + ahead, np.roll(firsts, 1) + length)
        from_[0] = 0
        return examples, examples >= from_

    def begin(self) -> None:
        """Settle the network, and begin with empty states."""
        self.network.settle()
        self._scores = np.zeros(self._rows.shape)
        if not self._continues:
            return
        (rank, size), n = self.network.share, self.network.threads.n
        n_parts, n_workers = len(self._rows), n * size
        starts = [n_parts * i // n_workers for i in range(n_workers + 1)]
        cuts = starts[rank * n : (rank + 1) * n + 1]
        self._mine = slice(cuts[0], cuts[-1])
        self._readers = [
            (slice(a, b), self.network.reader((b - a) * N_STEPS))
            for a, b in pairwise(cuts)
            if b > a
        ]

    def work(self, start: int, stop: int) -> None:
        """Score the next windows of each part."""
        n_parts = len(self._rows)
        steps = slice(start // n_parts, stop // n_parts)
        if self._continues:
            self._scores[:, steps] = self._read(self._rows[:, steps])
        else:
            rows = self._rows[0, steps]
            self._scores[0, steps] = self.network.log_prob(self._X[rows], self._y[rows])

    def _read(self, rows: Index) -> Floats:
        """Return the scores of the next windows, with the states before them."""
        totals, scores = np.zeros((3, *rows.shape)), np.zeros(rows.shape)

        def read(worker: tuple[slice, Reader]) -> None:
            parts, reader = worker
            for first in range(0, rows.shape[1], N_STEPS):
                some = rows[parts, first : first + N_STEPS]
                read = reader(self._X, self._y, np.ascontiguousarray(some).ravel())
                part = totals[:, parts, first : first + N_STEPS]
                part[...] = read.reshape(3, *some.shape)

        self.network.threads.map(read, self._readers)
        scores[self._mine] = self.network.combined(totals[:, self._mine])
        if self.network.share[1] > 1:
            self.processes.sum(scores)
        return scores

    def loss(self) -> float:
        """Return the mean loss of the windows, in nats per token; frees the scores."""
        scores = self._scores[self._counted]
        loss = -float(np.average(scores, weights=self._weights))
        self._scores, self._readers = np.empty(0), []
        return float(self.processes.agree(loss))
