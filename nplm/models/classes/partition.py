"""Bigrams of words, and of the classes of a partition, which annealing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nplm._kernels.classes import _exchange
from nplm._kernels.classes._exchange import GAIN, MOVES, VISITED
from nplm.base.array_types import AnyArray, Ids
from nplm.base.blocks import blocks
from nplm.base.checks import MAX_N_WORDS, trusted_ids
from nplm.base.fitted import Fitted
from nplm.models.training import pace
from nplm.models.training.loop import Job

# Number of tabulated values of i log i (8 MB); larger ones are computed.
TABLE_SIZE = 1 << 20
# Bigrams of a text that are counted at once.
BIGRAMS_A_BLOCK = 1 << 20


class Bigrams:
    """Counts of word bigrams, indexed by the second word (side 0) or the first (1).

    - `start` (2, n_words + 1): offsets of the neighbours of each word
    - `neighbour`, `count` (2, n_distinct): distinct neighbours of words, their counts
    - `totals` (2, n_words): tokens of each word with a neighbour on that side
    """

    def __init__(self, before: Ids, after: Ids, n_words: int) -> None:
        if len(after) > MAX_N_WORDS:
            raise ValueError(
                f"{len(after)} bigrams are too many to count; pass at most "
                f"{MAX_N_WORDS}."
            )
        followers = csr_array((n_words, n_words), dtype=np.int32)
        for part in blocks(len(after), BIGRAMS_A_BLOCK):
            words = [trusted_ids(ids[part], n_words) for ids in (before, after)]
            ones = np.ones(len(words[0]), dtype=np.int32)
            followers += csr_array((ones, tuple(words)), shape=followers.shape)
        sides, self.n = [followers.T.tocsr(), followers], len(after)
        self.start = np.array([m.indptr for m in sides], dtype=np.int32)
        self.neighbour = np.array([m.indices for m in sides], dtype=np.int32)
        self.count = np.array([m.data for m in sides], dtype=np.int32)
        self.totals = np.array([m.sum(axis=1) for m in sides], dtype=np.int64)
        # i log i of every possible count, up to the size of the table.
        self.table = np.arange(min(len(after) + 1, TABLE_SIZE), dtype=np.float64)
        self.table[1:] *= np.log(self.table[1:])

    def arrays(self, kind: Callable[..., object]) -> Any:
        """Return the neighbours of the words, as the argument of a kernel."""
        return kind(self.start, self.neighbour, self.count, self.totals, self.table)


class Partition:
    """A class for each word, that of the boundary last, and counts of class bigrams.

    - `labels` (n_words,): the class of each word
    - `counts` (2, n_classes, n_classes): ``counts[0, g, h]`` counts g before h
    - `tally` (3,): gain in log-likelihood, moves in the pass, words visited
    """

    def __init__(self, bigrams: Bigrams, n_classes: int, boundary: int | None) -> None:
        self.bigrams = bigrams
        self.n_classes = n_classes
        # The kernel moves no word into the last class, that of the boundary.
        self.n_open = n_classes - (boundary is not None)
        occurrences = bigrams.totals.sum(axis=0)
        by_frequency = np.argsort(-occurrences, kind="stable")
        movable = (occurrences[by_frequency] > 0) & (by_frequency != boundary)
        self.words = by_frequency[movable].astype(np.int32)
        self.heat = np.sqrt(occurrences[self.words] / 2)
        # Each of the most frequent words starts a class; all others share the last.
        self.labels = np.full(len(occurrences), self.n_open - 1, dtype=np.int32)
        self.labels[self.words[: self.n_open]] = np.arange(
            min(self.n_open, len(self.words))
        )
        if boundary is not None:
            self.labels[boundary] = n_classes - 1
        self.tally = np.zeros(3)
        n_blocks = -(-n_classes // 64)
        self.counts = np.empty((2, n_classes, n_classes), dtype=np.int32)
        self.totals = np.empty((2, n_classes), dtype=np.int64)
        self.nonzero = np.empty((2, n_classes, n_blocks), dtype=np.uint64)
        self._count()
        n = bigrams.n
        cells = self.counts[0][self.counts[0] > 0]
        sums = self.totals[self.totals > 0]
        log_likelihood = (cells * np.log(cells)).sum() - (sums * np.log(sums)).sum()
        self._information = float(log_likelihood / n + np.log(n))

    def set_labels(self, labels: Ids) -> None:
        """Set the class of each word, or raise ValueError if one may not have it."""
        fixed = np.ones(len(labels), dtype=bool)
        fixed[self.words] = False
        changed = labels != self.labels
        if changed[fixed].any() or (labels[~fixed] >= self.n_open).any():
            raise ValueError("labels has a class that is not allowed for its word")
        self.labels[:] = labels
        self._count()

    def _count(self) -> None:
        """Count the class bigrams, in place."""
        C, bigrams = self.n_classes, self.bigrams
        [_, start], [_, after] = bigrams.start, bigrams.neighbour
        left = np.repeat(C * self.labels.astype(np.int64), np.diff(start))
        # Sums of counts are exact in float64.
        pairs = np.bincount(left + self.labels[after], bigrams.count[1], C * C)
        self.counts[0] = pairs.reshape(C, C)
        self.counts[1] = self.counts[0].T
        self.totals[:] = self.counts.sum(axis=1, dtype=np.int64)
        bits = np.zeros((2, C, 64 * self.nonzero.shape[2]), dtype=np.uint8)
        bits[:, :, :C] = self.counts > 0
        bitmap = np.packbits(bits, axis=2, bitorder="little")
        self.nonzero[:] = bitmap.view(np.uint64)

    def arrays(self, kind: Callable[..., object]) -> Any:
        """Return the classes and counts, as the argument of a kernel."""
        return kind(
            self.n_open,
            self.labels,
            self.counts,
            self.nonzero,
            self.totals,
            self.tally,
        )

    @property
    def mutual_information(self) -> float:
        """Mutual information of neighbouring classes, in nats."""
        return self._information + float(self.tally[GAIN]) / self.bigrams.n

    @property
    def n_moves(self) -> int:
        """Number of words that changed class in the pass."""
        return int(self.tally[MOVES])

    def labels_by_size(self) -> Ids:
        """Return the class of each word, numbered by decreasing number of tokens."""
        occurrences = self.bigrams.totals.sum(axis=0)
        seen = occurrences > 0
        labels = self.labels.copy()
        if not seen.all():
            labels[~seen] = self._class_of_new_words()
        sizes = np.bincount(labels, occurrences, minlength=self.n_classes)
        rank = np.empty(self.n_classes, dtype=np.int32)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(self.n_classes)
        return rank[labels]

    def _class_of_new_words(self) -> int:
        """Return the class under which neighbours of rare words are most likely."""
        rare = np.zeros(len(self.labels), dtype=bool)
        rare[self.words[-max(1, len(self.words) // 10) :]] = True
        log_likelihood = np.zeros(self.n_classes)
        bigrams = self.bigrams
        for side, counts in enumerate(self.counts[::-1]):
            near = np.repeat(rare, np.diff(bigrams.start[side]))
            classes = self.labels[bigrams.neighbour[side, near]]
            beside = np.bincount(classes, bigrams.count[side, near], self.n_classes)
            smoothed = counts + 0.5
            smoothed /= smoothed.sum(axis=1, keepdims=True)
            log_likelihood += np.log(smoothed) @ beside
        log_likelihood[self.totals.sum(axis=0) == 0] = -np.inf
        return int(log_likelihood[: self.n_open].argmax())


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
