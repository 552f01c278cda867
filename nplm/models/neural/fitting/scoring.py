"""Score held-out windows: a sample after each epoch, and all at the end of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.network import Network
from nplm.models.training import pace
from nplm.models.training.parallel.processes import Processes

__all__ = ["MAX_SCORED_WINDOWS", "Scoring", "scored_each_epoch"]

# The standard error of a change between epochs is 0.002 nats at first and 0.0002 with
# a small learning rate, where it is below the default `tol`.
MAX_SCORED_WINDOWS = 50_000  # held-out windows that an epoch scores
# Training windows scored after an epoch without held-out data, because the loss of the
# epoch precedes its last updates, which may diverge.
SCORED_TRAINING_WINDOWS = 1000
WINDOWS_A_CALL = 64  # of each thread, at first
WINDOWS_A_SHARED_CALL = 2048  # of processes that share the network


def scored_each_epoch(windows: Windows) -> Windows:
    """Return the windows to score after each epoch.

    Of many held-out windows they are a sample, evenly spread. It draws no random
    number, so that it is the same in a resumed fit and in all processes.
    """
    if windows.held_out is None:
        # Processes with windows of their own each score a share of as many.
        n = windows.min_windows or SCORED_TRAINING_WINDOWS
        return windows.part(slice(-min(n, SCORED_TRAINING_WINDOWS), None))
    held_out = windows.held_out
    n = len(held_out)
    if n <= MAX_SCORED_WINDOWS:
        return held_out
    some = np.linspace(0, n, MAX_SCORED_WINDOWS, endpoint=False).astype(np.intp)
    return replace(held_out, rows=held_out.index(some))


class Scoring:
    """Scores of windows, as closing work of the training loop (`loop.Closing`).

    - `processes`: processes that share the network
    - `scored`: the windows
    - `weight`: duration of a scored window, in windows of training
    """

    def __init__(
        self,
        network: Network,
        processes: Processes,
        scored: Windows,
        text: str,
        weight: float,
    ) -> None:
        self.network, self.processes = network, processes
        self.text, self.weight = text, weight
        self._scored, self.n_steps = scored, len(scored)
        n_threads = network.threads.n
        self.least = WINDOWS_A_CALL * n_threads
        # The main thread waits for others, if there are any, and handles interrupts.
        self.seconds_a_call = pace.SECONDS_A_CALL * (5 if n_threads > 1 else 1)
        if processes.size > 1:
            # Sums over processes may round by their length: it must not depend on time.
            self.least, self.seconds_a_call = WINDOWS_A_SHARED_CALL, 0.0
        self._scores = np.empty(0)

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
        loss = -float(np.mean(self._scores))
        self._scores = np.empty(0)
        return float(self.processes.agree(loss))
