"""Kneser-Ney estimation: counts, discounts, probabilities, cut-offs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _kneser_ney
from nplm.base.array_types import Counts, Floats
from nplm.base.blocks import blocks
from nplm.base.exceptions import parameter_error
from nplm.models.ngrams.stages.counts import MAX_TOTAL, NgramCounts
from nplm.models.ngrams.stages.discounts import (
    check_fallback,
    counts_of_counts,
    find_discounts,
)
from nplm.models.ngrams.stages.levels import STRUCTURE, counted
from nplm.models.ngrams.stages.pruning import cut
from nplm.models.ngrams.stages.runs import Packing, Source
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.context_trie import ContextTrie
from nplm.models.ngrams.trie.work import Work


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Parameters of an estimation, as of `KneserNeyLM`, for each order.

    The word `impossible` is in no n-gram and has probability 0; -1 for none.
    """

    discounts: Literal["modified", "plain"]
    fallback: tuple[float, float, float] | None
    interpolate: Sequence[bool]
    min_counts: Counts
    of_text: bool
    impossible: int = -1

    @classmethod
    def of(
        cls,
        order: int,
        *,
        discounts: Literal["modified", "plain"] = "modified",
        discount_fallback: float | Sequence[float] | None = None,
        interpolate: bool = True,
        interpolate_unigrams: bool = True,
        min_counts: Sequence[int] | None = None,
        min_counts_of: Literal["modified", "text"] = "modified",
    ) -> Self:
        """Check parameters of `KneserNeyLM`; raise ValueError if one is invalid."""
        unigrams = interpolate and interpolate_unigrams
        fallback = check_fallback(discount_fallback, interpolate=unigrams)
        minimums = (1,) if min_counts is None else min_counts
        if (
            np.ndim(minimums) != 1
            or len(minimums) == 0
            or not all(isinstance(n, Integral) and 1 <= n < MAX_TOTAL for n in minimums)
        ):
            raise parameter_error(
                "{min_counts} must be None or whole numbers from 1 (below 2**53), one "
                "per order (the last applies to all higher orders), got {0!r}.",
                min_counts,
            )
        of_text = min_counts_of == "text"
        if of_text and list(minimums) != sorted(minimums):
            raise parameter_error(
                "{min_counts} decreases, but with {min_counts_of} the suffixes of an "
                "n-gram are kept with it: give each order at least the minimum count "
                "of the one below.", min_counts=min_counts, min_counts_of="text",
            )  # fmt: skip
        highest = [minimums[-1]] * (order - len(minimums))
        of_orders = np.array([*minimums, *highest][:order], dtype=np.int64)
        orders = [unigrams, *[interpolate] * (order - 1)]
        return cls(discounts, fallback, orders, of_orders, of_text)

    @property
    def order(self) -> int:
        """Words in the longest n-gram."""
        return len(self.min_counts)

    @property
    def cuts(self) -> bool:
        """Whether n-grams may be dropped."""
        return bool((self.min_counts > 1).any())

    @property
    def cuts_by_text(self) -> bool:
        """Whether n-grams may be dropped by their counts in the text."""
        return self.of_text and self.cuts


class Estimate(NamedTuple):
    """An estimated model.

    It `is_whole` if each n-gram below the highest order that does not end a sentence is
    a context, each context is an n-gram, and all suffixes are there.
    """

    trie: BackoffTrie
    discounts: Floats
    is_whole: bool


def estimated(
    source: Source,
    packing: Packing,
    smoothing: Smoothing,
    work: Work,
    *,
    keep_counts: bool = False,
    warned_from: int = 1,
) -> tuple[Estimate, NgramCounts | None]:
    """Estimate a model, and keep its counts if asked: all stages, in their order."""
    wanted = ["counts"] + ["raw"] * (keep_counts or smoothing.cuts_by_text)
    arrays = counted(source, packing, work, *wanted)
    modified = arrays.pop("counts")
    raw = arrays.pop("raw", modified)
    trie = ContextTrie(packing.n_words, **arrays)
    estimate = smoothed(trie, modified, raw, smoothing, work, warned_from=warned_from)
    if keep_counts:
        return estimate, NgramCounts(packing.n_words, counts=raw, **arrays)
    work.drop(modified, raw)
    return estimate, None


def smoothed(
    trie: ContextTrie,
    counts: Counts,
    raw: Counts,
    smoothing: Smoothing,
    work: Work,
    *,
    warned_from: int = 1,
) -> Estimate:
    """Estimate a model from modified counts (n_ngrams,), block by block.

    The arrays of the trie are those of the model unless n-grams are dropped. `raw`, the
    counts in the text, are only used if ``smoothing.cuts_by_text``.
    """
    n_of_counts = []
    for level in range(trie.order):
        n_of_counts.append(np.zeros(6, dtype=np.int64))
        of_level = counts[trie.followers(level)]
        for part in blocks(len(of_level), work.block):
            n_of_counts[-1] += counts_of_counts(of_level[part])
            work.release_pages()
    discounts = find_discounts(
        n_of_counts,
        smoothing.discounts,
        interpolate=smoothing.interpolate,
        fallback=smoothing.fallback,
        warned_from=warned_from,
    )
    tested = raw if smoothing.cuts_by_text else counts
    prob, bow = _weighted(trie, counts, tested, discounts, smoothing, work)
    structure = {name: getattr(trie, name) for name in STRUCTURE}
    model = BackoffTrie(trie.n_words, trie.level_start, **structure, prob=prob, bow=bow)
    if not smoothing.cuts:
        return Estimate(model, discounts, smoothing.impossible < 0)
    keep = work.array(np.bool_, len(tested))
    for level, min_count in enumerate(smoothing.min_counts):
        rows = trie.followers(level)
        for part in blocks(rows.stop - rows.start, work.block):
            at = slice(rows.start + part.start, rows.start + part.stop)
            keep[at] = tested[at] >= min_count
            work.release_pages()
    return Estimate(cut(model, keep, work), discounts, False)


def _weighted(
    trie: ContextTrie,
    counts: Counts,
    tested: Counts,
    discounts: Floats,
    smoothing: Smoothing,
    work: Work,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return probabilities and back-off weights, from the root to long contexts."""
    lengths = len(counts), len(trie.context_word)
    exact: list[Floats] = [work.array(np.float64, n) for n in lengths]
    lower = np.empty((work.n_threads, trie.n_words))
    arguments = counts, discounts, tested, smoothing.min_counts
    work.stage("estimating", len(counts))
    for level in range(trie.order):

        def estimate(
            thread: int, contexts: tuple[int, int], level: int = level
        ) -> None:
            # int32, the type of the array: otherwise searchsorted would copy it.
            above = np.searchsorted(trie.child_start, np.int32(contexts[0]), "right")
            place = level, int(above) - 1, *contexts
            _kneser_ney.kneser_ney(
                trie.arrays, *place, *arguments, smoothing.interpolate[level],
                smoothing.cuts_by_text, smoothing.impossible, lower[thread], *exact,
            )  # fmt: skip
            work.release_pages(*trie.every_array)
            work.advance(int(trie.start[contexts[1]] - trie.start[contexts[0]]))

        work.each(estimate, trie.blocks(level, work.block))
    rounded: list[NDArray[Any]] = []
    for values in exact:
        rounded.append(work.array(np.float32, len(values)))
        for part in blocks(len(values), work.block):
            rounded[-1][part] = values[part]
            work.release_pages()
    work.drop(*exact)
    return rounded[0], rounded[1]
