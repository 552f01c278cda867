"""n-gram counts of all orders, in a context trie (see ``trie``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from nplm._kernels.ngrams import _backoff, _counts
from nplm.base.array_types import Counts, Ids
from nplm.base.checks import refuse_where
from nplm.base.fitted import Fitted
from nplm.models.ngrams.stages.levels import counted
from nplm.models.ngrams.stages.runs import Packing, Source, Windows
from nplm.models.ngrams.trie.context_trie import ContextTrie, TrieBuilder
from nplm.models.ngrams.trie.trie_checks import check_structure, restored
from nplm.models.ngrams.trie.work import Work

# float64 represents whole numbers exactly up to this one.
MAX_TOTAL = 1 << 53
_ONE_TEXT = (
    "Pass counts of one text, with no higher cut-off for an order than for the longer "
    "ones, or only the table of the longest n-grams."
)


@dataclass(frozen=True, eq=False)
class NgramCounts(ContextTrie):
    """Counts (n_ngrams,) of each follower after its context, of every order."""

    counts: Counts

    @classmethod
    def from_windows(
        cls, X: Ids, y: Ids, *, n_words: int, boundary: int | None = None
    ) -> Self:
        """Count the n-grams that end in the next words `y` (n,) of contexts `X` (n, m).

        Ids are not checked. A context ends at the nearest `boundary`.
        """
        packing = Packing.of(X.shape[1] + 1, n_words, boundary)
        return cls.of_source(Windows(X, y), packing, Work())

    @classmethod
    def of_source(cls, source: Source, packing: Packing, work: Work) -> Self:
        """Count the n-grams of a source, in memory or on disk."""
        arrays = counted(source, packing, work, "raw")
        return cls(packing.n_words, counts=arrays.pop("raw"), **arrays)

    @classmethod
    def from_tables(
        cls,
        ngrams: Sequence[Ids],
        counts: Sequence[Counts],
        *,
        n_words: int,
        boundary: int | None = None,
    ) -> Self:
        """Build the trie from tables of n-grams of 1, 2, ... words and counts (n,).

        Counts of equal rows add up. Ids are not checked. N-grams with the boundary
        between two words are left out. Raises ValueError if there are too many.
        """
        if boundary is not None:
            within = [(table[:, 1:-1] != boundary).all(axis=1) for table in ngrams]
            ngrams = [table[rows] for table, rows in zip(ngrams, within)]
            counts = [of_table[rows] for of_table, rows in zip(counts, within)]
        for of_table in counts:
            check_total(float(of_table.sum(dtype=np.float64)))
        builder = TrieBuilder(n_words)
        positions, _ = builder.add_tables(ngrams)
        summed = [
            # Sums below 2**53 are exact in float64.
            np.bincount(position, weights=of_table, minlength=n).astype(np.int64)
            for position, of_table, n in zip(positions, counts, builder.n_followers)
        ]
        return cls(**builder.structure(), counts=np.concatenate(summed))

    def check_suffixes(self) -> None:
        """Raise ValueError if a suffix is counted less often than its n-grams.

        In the counts of one text, the suffix of an n-gram, without its oldest word,
        occurs at least as often as all n-grams that end with it. Other counts define no
        Kneser-Ney model. The first words of a text occur only as a context.
        """
        parent = self.parents()
        for level in range(1, self.order):
            first, last = self.level_start[level : level + 2]
            place, shorter = self.followers(level), self.followers(level - 1)
            n_followers = np.diff(self.start[first : last + 1])
            above = np.repeat(parent[first:last], n_followers)
            suffix = np.empty(len(above), dtype=np.int32)
            _backoff.find_ngrams(self.arrays, above, self.words[place], suffix)
            if (suffix < 0).any():
                gram = self.ngrams(level)[np.argmax(suffix < 0)].tolist()
                raise ValueError(
                    f"the n-gram {gram} is counted, but its suffix {gram[1:]} is not. "
                    f"{_ONE_TEXT}"
                )
            # Sums below 2**53 are exact in float64.
            longer = np.bincount(
                suffix - shorter.start,
                weights=self.counts[place],
                minlength=shorter.stop - shorter.start,
            )
            excess = longer > self.counts[shorter]
            if excess.any():
                i = int(np.argmax(excess))
                gram = self.ngrams(level - 1)[i].tolist()
                raise ValueError(
                    f"the n-gram {gram} has count {self.counts[shorter][i]}, but the "
                    f"counts of the {level + 1}-grams that end with it add up to "
                    f"{longer[i]:.0f}. {_ONE_TEXT}"
                )

    def merged(self, other: NgramCounts) -> Self:
        """Return the sum with other counts of the same order and vocabulary."""
        levels = range(self.order)
        return self.from_tables(
            [np.concatenate([self.ngrams(k), other.ngrams(k)]) for k in levels],
            [
                np.concatenate(
                    [self.counts[self.followers(k)], other.counts[other.followers(k)]]
                )
                for k in levels
            ],
            n_words=self.n_words,
        )

    def continuation_counts(self) -> Counts:
        """Return the modified counts a(c, w) of Kneser-Ney smoothing.

        The count of an n-gram is the number of distinct words before it. n-grams of
        the highest order and those whose context begins at a boundary keep their raw
        count (Kneser and Ney 1995; section 3 of Chen and Goodman 1999).
        """
        out = np.empty_like(self.counts)
        slot = np.empty(self.n_words, dtype=np.int32)
        _counts.continuation_counts(self.arrays, self.counts, slot, out)
        return out

    def totals(self) -> Counts:
        """Return how often each context was seen, shape (n_contexts,)."""
        cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        return np.diff(cumulative[self.start])


def check_counts(counts: ArrayLike, n: int) -> Counts:
    """Return counts as int64, or raise ValueError naming the first invalid one."""
    values = np.asarray(counts)
    if values.shape != (n,):
        raise ValueError(
            f"counts must have one entry per n-gram, shape ({n},), got an array of "
            f"shape {values.shape}."
        )
    if values.dtype.kind not in "iuf":
        raise ValueError(f"counts must be whole numbers, got type {values.dtype}.")
    for bad, why in [
        (~np.isfinite(values), "is not a finite number"),
        (values < 0, "is negative"),
        (values >= MAX_TOTAL, f"overflows: counts must be below {MAX_TOTAL}"),
        (values != np.floor(values), "is not a whole number"),
    ]:
        refuse_where(bad, values, "counts", f"which {why}")
    return values.astype(np.int64)


def check_total(
    total: float, what: str = "counts", advice: str = "divide them, or count less text"
) -> None:
    """Raise ValueError if the sum of counts is more than float64 holds exactly."""
    if total >= MAX_TOTAL:
        raise ValueError(
            f"{what} add up to {total:.3g}, more than {MAX_TOTAL}: they overflow; "
            f"{advice}."
        )


def taken_counts(fitted: Fitted, name: str) -> NgramCounts:
    """Take the counts of a saved model; raise ValueError if they are invalid."""
    counts: NgramCounts = restored(NgramCounts, fitted.inner(name))
    check_structure(counts)
    words, longer = np.split(counts.counts, [counts.n_words])
    total = float(words.sum(dtype=np.float64))
    # A unigram may have count 0; a longer n-gram is stored only if it occurs.
    if (words < 0).any() or (longer < 1).any() or not 0 < total < MAX_TOTAL:
        raise ValueError("counts has values out of range")
    counts.check_suffixes()
    return counts
