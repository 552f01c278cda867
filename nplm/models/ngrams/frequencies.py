"""Relative frequencies of words after contexts of every length (section 4.1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nplm._kernels.ngrams import _interpolation
from nplm.base.array_types import Counts, Floats, Ids, Index
from nplm.base.blocks import BLOCK_WINDOWS, blocks, blocks_of_rows
from nplm.models.ngrams.stages.counts import NgramCounts
from nplm.models.training.em import FrequencyBins


class RelativeFrequencies:
    """Members of the mixture of the interpolated trigram, for any order.

    p_0 is uniform. p_k is the relative frequency of a word after the nearest ``k - 1``
    words, or p_{k-1} if these were never seen as a context. The ids of `X` (n_samples,
    order - 1), the nearest word last, are not checked.
    """

    def __init__(self, counts: NgramCounts) -> None:
        self.counts = counts
        self.totals = counts.totals()

    @property
    def n_tokens(self) -> int:
        """Number of windows of the training corpus."""
        return int(self.totals[0])

    @cached_property
    def bins(self) -> FrequencyBins:
        """Bins of the frequency of contexts of full length."""
        whole = self.totals[self.counts.level_start[-2] :]
        return FrequencyBins.of_training(int(whole.max()), self.n_tokens)

    def bin_of(self, X: Ids, bins: FrequencyBins | None = None) -> Index:
        """Return the row of each context, among the `bins` of other counts if given."""
        return (bins or self.bins).row(self.frequency(X), self.n_tokens)

    def frequency(self, X: Ids) -> Counts:
        """Return how often each whole context was seen in training."""
        trie = self.counts
        out = np.empty(len(X), dtype=np.int64)
        path = trie.path()
        for rows in blocks(len(X), BLOCK_WINDOWS):
            _interpolation.context_frequencies(
                trie.arrays, self.totals, X[rows], path, out[rows]
            )
        return out

    def prob(self, X: Ids, y: Ids) -> Floats:
        """Return the probability of each next word under each member, uniform first."""
        out = np.empty((len(y), self.counts.order + 1))
        arrays, path = self._arrays(), self.counts.path()
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _interpolation.relative_frequencies(
                *arrays, X[rows], y[rows], path, out[rows]
            )
        return out

    def mixture(self, X: Ids, weights: Floats) -> Floats:
        """Return the probability of every word by weights (n_samples, order + 1)."""
        out = np.empty((len(X), self.counts.n_words))
        arrays, path = self._arrays(), self.counts.path()
        for rows in blocks_of_rows(len(X), self.counts.n_words):
            _interpolation.mixed_frequencies(
                *arrays, weights[rows], X[rows], path, out[rows]
            )
        return out

    def _arrays(self) -> tuple[object, ...]:
        return self.counts.arrays, self.counts.counts, self.totals
