"""Annealing: exchange clustering in passes at falling temperatures."""

from __future__ import annotations

import numpy as np

from nplm._kernels.classes import _exchange
from nplm._kernels.classes._exchange import GAIN, MOVES, VISITED
from nplm.base.array_types import AnyArray
from nplm.base.fitted import Fitted
from nplm.models.classes.partition import Partition
from nplm.models.training import pace
from nplm.models.training.loop import Job

# Temperatures of the first and the last cooling pass, in nats for a word with one
# neighbour on each side. The gains of a word that occurs n times vary by about sqrt(n),
# so its temperature is sqrt(n) times as high: frequent and rare words then settle
# together. With one temperature for all, frequent words are frozen while rare ones
# still move.
HOTTEST, COOLEST = 1.5, 0.1


class Annealing(Job):
    """Anneal a partition: a job of the training loop (`nplm.models.training.loop.Job`).

    After `n_cooling` passes at a falling temperature, the passes are at 0 until no word
    moves.
    """

    pass_name = "pass"
    least = 1

    def __init__(
        self, partition: Partition, n_cooling: int, verbose: int, name: str
    ) -> None:
        self.partition, self.n_cooling = partition, n_cooling
        self.verbose, self.name = verbose, name
        self.cooling = [0.0] * n_cooling
        if n_cooling:
            self.cooling = list(np.geomspace(HOTTEST, COOLEST, n_cooling))
        self.n_steps = len(partition.words)
        self.seconds_a_call = pace.SECONDS_A_CALL
        self.history: dict[str, list[float]] = {
            name: [] for name in ("mutual_information", "n_moves", "seconds")
        }
        self._neighbours = partition.bigrams.arrays(_exchange.Neighbours)
        self._classes = partition.arrays(_exchange.Classes)
        self._uniforms = np.empty(0)
        self._temperature = 0.0

    # -- a pass -------------------------------------------------------------------

    @property
    def n_ended(self) -> int:
        return len(self.history["seconds"])

    def n_passes(self, done: int) -> int:
        """Return the least number of passes: the number of greedy ones is unknown."""
        return max(self.n_cooling, done) + 1

    def more(self, done: int) -> bool:
        return done <= self.n_cooling or self.history["n_moves"][-1] > 0

    def begin(self, rng: np.random.RandomState, *, anew: bool) -> None:
        """Draw a random number for every word."""
        done = self.n_ended
        self._temperature = self.cooling[done] if done < self.n_cooling else 0.0
        self._uniforms = rng.random_sample(self.n_steps)
        if anew:
            self.partition.tally[MOVES] = 0

    def work(self, start: int, stop: int) -> None:
        rows, partition = slice(start, stop), self.partition
        _exchange.exchange(
            partition.words[rows], self._uniforms[rows],
            self._temperature * partition.heat[rows], self._neighbours, self._classes,
        )  # fmt: skip

    def steps_done(self, passes: int) -> int:
        return int(self.partition.tally[VISITED]) - passes * self.n_steps

    def figure(self, done: int) -> float:
        return self.partition.mutual_information

    def end(self, number: int, seconds: float, closing_seconds: float) -> None:
        partition = self.partition
        figures = {
            "mutual_information": partition.mutual_information,
            "n_moves": partition.n_moves,
            "seconds": seconds,
        }
        self.history = {k: [*self.history[k], value] for k, value in figures.items()}
        if self.verbose:
            print(
                f"[{self.name}] pass {number}, temperature {self._temperature:.2f}: "
                f"mutual information {partition.mutual_information:.4f} nats, "
                f"{partition.n_moves} moves, {seconds:.1f} s"
            )

    def kept(self) -> str:
        information = self.partition.mutual_information
        return f"the classes reached (mutual information {information:.4f} nats)"

    # -- saves --------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        return {"labels": self.partition.labels, "tally": self.partition.tally}

    def facts(self) -> dict[str, object]:
        return {"history": self.history}

    def resume(self, arrays: Fitted, facts: Fitted, *, passes: int, steps: int) -> None:
        history = facts.history("history", *self.history)
        if len(history["seconds"]) != passes or history.keys() != self.history.keys():
            raise facts.invalid_item("history", history)
        partition = self.partition
        labels = arrays.ids("labels", partition.labels.shape, partition.n_classes)
        tally = arrays.array("tally", np.float64, partition.tally.shape)
        gain, moves, visited = tally[[GAIN, MOVES, VISITED]]
        if (
            not np.isfinite(gain)
            or moves not in range(self.n_steps + 1)
            or visited != passes * self.n_steps + steps
        ):
            raise facts.invalid_item("tally", tally.tolist())
        partition.set_labels(labels)
        partition.tally[:] = tally
        self.history = history
