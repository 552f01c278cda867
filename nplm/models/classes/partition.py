"""Bigrams and Partition: word bigrams, and the class bigrams of a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nplm._kernels.classes._exchange import GAIN, MOVES
from nplm.base.array_types import Ids
from nplm.base.blocks import blocks
from nplm.base.checks import MAX_N_WORDS, trusted_ids

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
