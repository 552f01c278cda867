"""QuantizedTrie: the n-grams of a back-off model in a few bytes each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _quantized
from nplm._kernels.ngrams._quantized import SAMPLED
from nplm.base.array_types import Bytes, Counts, Floats
from nplm.base.blocks import blocks
from nplm.base.checks import MAX_N_WORDS
from nplm.base.fitted import Fitted
from nplm.models.ngrams.trie.bits import (
    MAX_WIDTH,
    READ_BYTES,
    set_bits,
    unpack_records,
    word_bits,
)
from nplm.models.ngrams.trie.hash_table import WindowLookUps
from nplm.models.ngrams.trie.hashing import MAX_HASHED_ORDER
from nplm.models.ngrams.trie.trie_checks import (
    SuffixTrie,
    are_probabilities,
    are_weights,
    check_suffix_trie,
    offsets_in_order,
)

MIN_BITS, MAX_BITS = 3, 12
# Values of the reserved codes: code 0 is an absent value, code 1 is zero.
NO_PROB, NO_WEIGHT, ZERO = -1.0, 1.0, 0.0
N_RESERVED_CODES = 2
# Values are counted in bins of equal upper bits, 65,536 for each power of two; the
# lower bits are added up.
LOW_BITS = 7
MAX_LOW = np.uint32((1 << LOW_BITS) - 1)
N_BINS = 1 << 31 - LOW_BITS
# Records unpacked together, each to about 100 bytes.
BLOCK_RECORDS = 1 << 16
MAX_SIZE = int(np.iinfo(np.int32).max)
TRIE_ARRAYS = "prob", "bow", "start"
LEVEL_ARRAYS = "records", "high", "sample", "prob", "bow"
# Iterations of Lloyd's algorithm; it stops earlier when no code changes.
MAX_ITERATIONS = 200


class Codebook:
    """Quantize values to codes of a few bits, by k-means of their logarithms.

    Code 0 stands for `absent` and code 1 for zero, exactly. The other codes stand for
    ranges of the logarithm, and their values are the means of these, which minimize the
    squared error (Lloyd 1982). Bounds of ranges do not divide bins, and each bin counts
    as its mean; the sums are of whole numbers. So the result does not depend on the
    order of the values, and memory not on their number. After `learn`, `values`
    (2**bits,) has the value of each code.
    """

    def __init__(self, bits: int, absent: float) -> None:
        self._absent = absent
        self.values = np.zeros(1 << bits, dtype=np.float32)
        self.values[0] = absent
        # Memory that is not used stays unallocated.
        self._counts, self._low = np.zeros((2, N_BINS), dtype=np.int64)
        self._first, self._end = N_BINS, 0  # of the bins that are used

    def add(self, values: NDArray[np.float32]) -> None:
        """Count values; those that are absent or zero are left out."""
        kept = np.ascontiguousarray(values[(values != self._absent) & (values > ZERO)])
        if not len(kept):
            return
        bins, low = _bins(kept), kept.view(np.uint32) & MAX_LOW
        first, end = int(bins.min()), int(bins.max()) + 1
        self._first, self._end = min(self._first, first), max(self._end, end)
        bins_used = slice(first, end)
        bins -= np.uint32(first)
        self._counts[bins_used] += np.bincount(bins)
        # Sums below 2**53 are exact in float64.
        self._low[bins_used] += np.bincount(bins, weights=low).astype(np.int64)

    def learn(self) -> None:
        """Choose the values of the codes."""
        bins_used = slice(self._first, self._end)
        used = np.flatnonzero(self._counts[bins_used])
        counts, low = self._counts[bins_used][used], self._low[bins_used][used]
        lowest = ((self._first + used) << LOW_BITS).astype(np.uint32).view(np.float32)
        step = np.spacing(lowest).astype(np.float64)
        log = np.log(lowest + step * (low / counts))
        means, ends = _clusters(log, counts, len(self.values) - N_RESERVED_CODES)
        self.values[N_RESERVED_CODES : N_RESERVED_CODES + len(means)] = np.exp(means)
        del self._counts, self._low
        self._codes = np.ones(max(self._end - self._first, 1), dtype=np.uint16)
        self._codes[used] = np.searchsorted(ends, log) + N_RESERVED_CODES

    def codes(self, values: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return the codes of values, which were added before."""
        codes = np.zeros(len(values), dtype=np.uint16)
        codes[values == ZERO] = 1
        is_there = (values != self._absent) & (values > ZERO)
        kept = np.ascontiguousarray(values[is_there])
        codes[is_there] = self._codes[_bins(kept) - np.uint32(self._first)]
        return codes


def _bins(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the bin of each number that is not negative."""
    # Bit patterns of positive floats increase with the floats.
    bins: NDArray[np.uint32] = values.view(np.uint32) >> np.uint32(LOW_BITS)
    return np.maximum(bins, np.uint32(1), out=bins)


def _clusters(
    distinct: Floats, counts: Counts, max_clusters: int
) -> tuple[Floats, Floats]:
    """Return the means of at most `max_clusters` clusters, and the bounds between."""
    cumulative_n = np.concatenate([[0], np.cumsum(counts)])
    cumulative_sum = np.concatenate([[0.0], np.cumsum(distinct * counts)])
    if len(distinct) <= max_clusters:
        return distinct, (distinct[1:] + distinct[:-1]) / 2
    # Half of the initial bounds are quantiles. The others are evenly spaced, so that
    # rare values are not far from the mean of their cluster.
    n_quantiles = max_clusters // 2
    shares = np.linspace(0, cumulative_n[-1], n_quantiles + 1)[1:-1]
    steps = np.linspace(distinct[0], distinct[-1], max_clusters - n_quantiles + 1)[1:-1]
    bounds = np.concatenate(
        [np.searchsorted(cumulative_n, shares), np.searchsorted(distinct, steps)]
    )
    for _ in range(MAX_ITERATIONS):
        edges = np.unique(np.concatenate([[0], bounds, [len(distinct)]]))
        means = np.diff(cumulative_sum[edges]) / np.diff(cumulative_n[edges])
        ends = (means[1:] + means[:-1]) / 2
        new_bounds = np.searchsorted(distinct, ends)
        if np.array_equal(new_bounds, bounds):
            break
        bounds = new_bounds
    return means, ends


def record_bits(n_words: int, bits: int, low: int, *, ends: bool) -> int:
    """Return the number of bits of a record; `ends`: of the longest n-grams."""
    return word_bits(n_words) + bits + (0 if ends else bits + low)


def quantized_sizes(
    n_words: int, bits: int, n_nodes: Sequence[int], low: Sequence[int]
) -> dict[str, tuple[type[np.generic], int]]:
    """Return the type and length of each array of a file, in its order."""
    n_codes = 1 << bits
    sizes: dict[str, tuple[type[np.generic], int]] = {
        "prob": (np.float32, n_words), "bow": (np.float32, n_words),
        "start": (np.int64, n_words + 1),
    }  # fmt: skip
    for k, n, n_low in zip(range(2, len(n_nodes) + 2), n_nodes, low):
        ends = k == len(n_nodes) + 1
        n_high = 0 if ends else ((n_nodes[k - 1] >> n_low) + n) // 64 + 1
        width = record_bits(n_words, bits, n_low, ends=ends)
        n_records = n if ends else n + 1  # the last one has the last offset
        sizes |= {
            f"records_{k}": (np.uint8, -(-n_records // 8) * width + READ_BYTES),
            f"high_{k}": (np.uint64, n_high),
            f"sample_{k}": (np.uint32, 0 if ends else n // SAMPLED + 1),
            f"prob_{k}": (np.float32, n_codes),
            f"bow_{k}": (np.float32, 0 if ends else n_codes),
        }
    return sizes


@dataclass(frozen=True, eq=False)
class QuantizedLevel:
    """The n-grams of one length in a quantized trie, with suffixes of longer ones.

    - `records`: for each n-gram its oldest word, the codes of its probability and
      weight, and the `low` low bits of the offset of its extensions. The longest
      n-grams have no weights and offsets; the others have one more record, for the last
      offset
    - `high`, `sample`: the high bits of the offsets (see `put_offsets`)
    - `prob`, `bow` (2**bits,): codebooks: the value of each code
    """

    n: int
    low: int
    records: Bytes
    high: NDArray[np.uint64]
    sample: NDArray[np.uint32]
    prob: NDArray[np.float32]
    bow: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class QuantizedTrie(WindowLookUps, SuffixTrie):
    """Quantized, bit-packed trie of n-grams, with the newest word first.

    - `prob`, `bow` (n_words,): probability and back-off weight of each word
    - `start` (n_words + 1,): the first bigram that ends with each word
    - `levels`: the n-grams of 2 words, 3, ...
    """

    bits: int
    n_ngrams: Counts
    prob: NDArray[np.float32]
    bow: NDArray[np.float32]
    start: Counts
    levels: list[QuantizedLevel]

    @property
    def closed(self) -> bool:
        """Whether each context and each suffix is an n-gram; see `HashTable`."""
        n_ngrams = self.n_ngrams[1:].tolist()
        return all(level.n == n for level, n in zip(self.levels, n_ngrams))

    def width(self, i: int) -> int:
        """Return the number of bits of a record of level `i`."""
        ends = i + 1 == len(self.levels)
        return record_bits(self.n_words, self.bits, self.levels[i].low, ends=ends)

    def records(
        self, i: int, first: int, last: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Unpack records `first` to `last` of level `i`.

        Returns (n,) oldest words, codes of probabilities and weights, and low bits of
        the offsets of extensions; the last level has 0 for weights and offsets.
        """
        width, word, code = self.width(i), word_bits(self.n_words), (1 << self.bits) - 1
        skipped = first % 8  # 8 records take `width` bytes
        packed = self.levels[i].records[first // 8 * width :]
        values = unpack_records(packed, width, skipped + last - first)[skipped:]
        numbers = values.astype(np.int64)  # at most 57 bits
        words, prob = numbers & ((1 << word) - 1), numbers >> word & code
        rest = numbers >> (word + self.bits)
        return words, prob, rest & code, rest >> self.bits

    def offsets(self, i: int) -> Iterator[NDArray[Any]]:
        """Unpack the offsets of level `i`, but the last, in blocks, and the end."""
        level, done = self.levels[i], 0
        for places in set_bits(level.high):
            end = done + len(places)
            sample = level.sample[-(-done // SAMPLED) : -(-end // SAMPLED)]
            if end > level.n + 1 or not np.array_equal(
                places[-done % SAMPLED :: SAMPLED], sample
            ):
                break
            low = self.records(i, done, end)[3]
            yield ((places - np.arange(done, end)) << level.low) | low
            done = end
        if done != level.n + 1:
            raise ValueError(f"in its {i + 2}-grams, high parts of offsets are wrong")

    def word_values(self) -> tuple[Floats, Floats]:
        if not (are_probabilities(self.prob) and are_weights(self.bow)):
            raise ValueError("its n-grams have numbers out of range")
        return self.prob.astype(np.float64), self.bow.astype(np.float64)

    def n_nodes(self, i: int) -> int:
        return self.levels[i].n

    def starts(self, i: int, size: int) -> Iterator[Counts]:
        parts = (self.start[part] for part in blocks(len(self.start), size))
        offsets = self.offsets(i - 1) if i else parts
        return offsets_in_order(offsets, i + 1, self.n_nodes(i))

    def nodes(self, i: int, begin: int, end: int) -> tuple[NDArray[Any], ...]:
        words, prob_code, bow_code, _ = self.records(i, begin, end)
        level, ends = self.levels[i], i + 1 == len(self.levels)
        if not (
            words.max(initial=0) < self.n_words
            and level.prob[0] == NO_PROB
            and are_probabilities(level.prob[1:])
            and (ends or (level.bow[0] == NO_WEIGHT and are_weights(level.bow)))
        ):
            raise ValueError(f"in its {i + 2}-grams, words or numbers are out of range")
        prob = level.prob[prob_code].astype(np.float64)
        prob[prob_code == 0] = np.nan
        bow = np.ones(1) if ends else level.bow.astype(np.float64)
        return words, prob, bow[bow_code]

    def mapped(self, i: int) -> list[NDArray[Any]]:
        return [self.levels[i].records, self.levels[i].high]

    @cached_property
    def kernel(self) -> _quantized.QuantizedTrie:
        """The trie in the form that kernels take."""
        word = word_bits(self.n_words)
        levels = [
            (level.records, level.high, level.sample, level.prob, level.bow, level.n,
             word, self.bits, level.low)
            for level in self.levels
        ]  # fmt: skip
        return _quantized.QuantizedTrie(self.prob, self.bow, self.start, levels)

    def __getstate__(self) -> dict[str, object]:
        # Cached properties are quick to compute again.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def quantized_items(
    trie: QuantizedTrie,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the sizes of a trie, as JSON has them, and its arrays, by name."""
    sizes = {
        "bits": trie.bits,
        "n_ngrams": trie.n_ngrams.tolist(),
        "n_nodes": [level.n for level in trie.levels],
        "low": [level.low for level in trie.levels],
    }
    arrays = {name: getattr(trie, name) for name in TRIE_ARRAYS}
    for k, level in enumerate(trie.levels, 2):
        arrays |= {f"{name}_{k}": getattr(level, name) for name in LEVEL_ARRAYS}
    return sizes, arrays


def restored_quantized(fitted: Fitted, *, check: bool = True) -> QuantizedTrie:
    """Make a trie of the items of `quantized_items`, sizes and arrays together.

    Sizes are always checked, the numbers of the arrays if `check`.
    """
    bits = fitted.whole("bits", MIN_BITS, MAX_BITS)
    n_ngrams, n_nodes, low = (
        _sizes(fitted, name) for name in ("n_ngrams", "n_nodes", "low")
    )
    misfit = ValueError("its arrays do not fit together")
    if not (
        2 <= len(n_ngrams) <= MAX_HASHED_ORDER
        and len(n_nodes) == len(low) == len(n_ngrams) - 1
        and 1 <= n_ngrams[0] <= MAX_N_WORDS
    ):
        raise misfit
    sizes = quantized_sizes(n_ngrams[0], bits, n_nodes, low)
    arrays = {n: fitted.array(n, kind, (None,)) for n, (kind, _) in sizes.items()}
    levels = [
        QuantizedLevel(n, n_low, *(arrays[f"{name}_{k}"] for name in LEVEL_ARRAYS))
        for k, n, n_low in zip(range(2, len(n_ngrams) + 1), n_nodes, low)
    ]
    of_words = {name: arrays[name] for name in TRIE_ARRAYS}
    counts = np.array(n_ngrams, dtype=np.int64)
    trie = QuantizedTrie(bits, counts, levels=levels, **of_words)
    # Kernels trust sizes.
    if (
        any(len(arrays[name]) != size for name, (_, size) in sizes.items())
        or [int(trie.start[0]), int(trie.start[-1])] != [0, n_nodes[0]]
        or max(map(trie.width, range(len(levels)))) > MAX_WIDTH
    ):
        raise misfit
    if check:
        check_suffix_trie(trie, BLOCK_RECORDS)
    return trie


def _sizes(fitted: Fitted, name: str) -> list[int]:
    sizes: list[int] = fitted.take(name, list)
    if not all(type(n) is int and 0 <= n <= MAX_SIZE for n in sizes):
        raise fitted.invalid_item(name, sizes)
    return sizes
