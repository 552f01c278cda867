"""QuantizedTrie: the n-grams of a back-off model in a few bytes each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _quantized
from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.models.ngrams.trie.bits import (
    MAX_WIDTH,
    pack_offsets,
    pack_records,
    unpack_offsets,
    unpack_records,
)
from nplm.models.ngrams.trie.context_trie import TrieBuilder, WeightedTrie

__all__ = [
    "MAX_BITS",
    "MIN_BITS",
    "NO_PROB",
    "NO_WEIGHT",
    "QuantizedLevel",
    "QuantizedTrie",
    "codebook",
]

MIN_BITS, MAX_BITS = 3, 12
# Values of the reserved codes: code 0 is an absent value, code 1 is zero.
NO_PROB, NO_WEIGHT, ZERO = -1.0, 1.0, 0.0
N_RESERVED_CODES = 2
# Iterations of Lloyd's algorithm; it stops earlier when no code changes.
MAX_ITERATIONS = 200


def codebook(
    values: NDArray[np.float32], bits: int, absent: float
) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Quantize values to codes of a few bits, by k-means of their logarithms.

    Code 0 stands for `absent` and code 1 for zero, exactly. The other codes stand for
    ranges of the logarithm, and their values are the means of these, which minimize
    the squared error (Lloyd 1982).

    Parameters
    ----------
    values : ndarray of float32, shape (n,)
        Probabilities or weights.
    bits : int
        Bits of a code.
    absent : float
        The value that marks absent entries.

    Returns
    -------
    codes : ndarray of uint64, shape (n,)
        The code of each value.
    book : ndarray of float32, shape (2**bits,)
        The value of each code.

    Examples
    --------
    >>> import numpy as np
    >>> codes, book = codebook(np.float32([0.5, -1, 0, 0.5, 0.25]), 3, absent=-1)
    >>> book[codes].tolist()
    [0.5, -1.0, 0.0, 0.5, 0.25]
    """
    book = np.zeros(1 << bits, dtype=np.float32)
    book[0] = absent
    codes = np.zeros(len(values), dtype=np.uint64)
    codes[values == ZERO] = 1
    kept = (values != absent) & (values > 0)
    log = np.log(values[kept], dtype=np.float64)
    means, ends = _clusters(log, len(book) - N_RESERVED_CODES)
    book[N_RESERVED_CODES : N_RESERVED_CODES + len(means)] = np.exp(means)
    codes[kept] = np.searchsorted(ends, log) + N_RESERVED_CODES
    return codes, book


def _clusters(
    values: NDArray[np.float64], max_clusters: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of at most `max_clusters` clusters, and the bounds between."""
    distinct, counts = np.unique(values, return_counts=True)
    cumulative_n = np.concatenate([[0], np.cumsum(counts)])
    cumulative_sum = np.concatenate([[0.0], np.cumsum(distinct * counts)])
    if len(distinct) <= max_clusters:
        return distinct, (distinct[1:] + distinct[:-1]) / 2
    # Half of the initial bounds are quantiles. The others are evenly spaced, so that
    # rare values are not far from the mean of their cluster.
    n_quantiles = max_clusters // 2
    shares = np.linspace(0, len(values), n_quantiles + 1)[1:-1]
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


@dataclass(frozen=True, eq=False)
class QuantizedLevel:
    """The n-grams of one length in a quantized trie.

    Attributes
    ----------
    n : int
        Number of n-grams, including suffixes of longer ones that are not n-grams
        themselves.
    low : int
        Number of low bits of an offset, stored in the records.
    records : ndarray of uint8
        For each n-gram its oldest word, the codes of its probability and weight, and
        the low bits of the offset of its extensions. The longest n-grams have no
        weights and offsets; the others have one more record, for the last offset.
    high : ndarray of uint64
        The high bits of the offsets (see ``bits.pack_offsets``).
    sample : ndarray of uint32
        Position of every 32nd set bit of `high`.
    prob, bow : ndarray of float32, shape (2**bits,)
        Codebooks: the value of each code.
    """

    n: int
    low: int
    records: NDArray[np.uint8]
    high: NDArray[np.uint64]
    sample: NDArray[np.uint32]
    prob: NDArray[np.float32]
    bow: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class QuantizedTrie:
    """Quantized, bit-packed trie of n-grams, with the newest word first.

    Attributes
    ----------
    n_words : int
        Size of the vocabulary.
    bits : int
        Bits of the code of a probability or a weight.
    n_ngrams : ndarray of int64, shape (order,)
        Number of n-grams of each order.
    prob, bow : ndarray of float32, shape (n_words,)
        Probability of each word as a unigram, and its back-off weight as a context.
    start : ndarray of int64, shape (n_words + 1,)
        The bigrams that end with word w are those from ``start[w]`` to
        ``start[w + 1]``.
    levels : list of QuantizedLevel
        The n-grams of 2 words, 3, ...
    """

    n_words: int
    bits: int
    n_ngrams: NDArray[np.int64]
    prob: NDArray[np.float32]
    bow: NDArray[np.float32]
    start: NDArray[np.int64]
    levels: list[QuantizedLevel]

    @classmethod
    def of(cls, trie: WeightedTrie, bits: int) -> Self:
        """Quantize the n-grams of a trie.

        Parameters
        ----------
        trie : WeightedTrie
            A trie of order 2 to 16.
        bits : int
            Bits of a code.

        Returns
        -------
        trie : QuantizedTrie
        """
        nodes = _nodes(trie)
        levels = []
        for k in range(2, trie.order + 1):
            words, prob, bow, offsets = nodes[k]
            prob_codes, prob_book = codebook(prob, bits, NO_PROB)
            width = word_bits(trie.n_words)
            records = words.astype(np.uint64) | prob_codes << np.uint64(width)
            width += bits
            if offsets is None:
                packed = pack_records(records, width)
                levels.append(QuantizedLevel(
                    len(words), 0, packed, np.zeros(0, np.uint64),
                    np.zeros(0, np.uint32), prob_book, np.zeros(0, np.float32),
                ))  # fmt: skip
                break
            bow_codes, bow_book = codebook(bow, bits, NO_WEIGHT)
            records |= bow_codes << np.uint64(width)
            width += bits
            # Chosen so that the high parts grow by about one per n-gram.
            low = int(offsets[-1] // max(len(words), 1)).bit_length() - 1
            low = max(0, min(low, MAX_WIDTH - width))
            lowest = (offsets & ((1 << low) - 1)).astype(np.uint64)
            records = np.append(records, np.uint64(0)) | lowest << np.uint64(width)
            packed = pack_records(records, width + low)
            high, sample = pack_offsets(offsets, low)
            levels.append(
                QuantizedLevel(
                    len(words), low, packed, high, sample, prob_book, bow_book
                )
            )
        return cls(
            n_words=trie.n_words,
            bits=bits,
            n_ngrams=trie.n_ngrams,
            prob=np.ascontiguousarray(trie.prob[: trie.n_words]),
            bow=np.ascontiguousarray(trie.bow[1 : trie.n_words + 1]),
            start=cast(NDArray[np.int64], nodes[1][3]),
            levels=levels,
        )

    def width(self, i: int) -> int:
        """Return the number of bits of a record of level `i`."""
        is_last = i + 1 == len(self.levels)
        rest = 0 if is_last else self.bits + self.levels[i].low
        return word_bits(self.n_words) + self.bits + rest

    def unpacked(
        self, i: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
        """Unpack the records of level `i`.

        Returns
        -------
        words : ndarray of int64, shape (n,)
            The oldest word of each n-gram.
        prob, bow : ndarray of int64, shape (n,)
            Codes of the probabilities and weights; `bow` is None for the last level.
        offsets : ndarray of int64, shape (n + 1,)
            First extension of each n-gram by one older word; None for the last level.

        Raises
        ------
        ValueError
            If there are fewer offsets than n-grams.
        """
        level, is_last = self.levels[i], i + 1 == len(self.levels)
        word, n = word_bits(self.n_words), level.n
        values = unpack_records(level.records, self.width(i), n if is_last else n + 1)
        values = values.astype(np.int64)  # at most 57 bits
        code = (1 << self.bits) - 1
        words, prob = values[:n] & ((1 << word) - 1), values[:n] >> word & code
        if is_last:
            return words, prob, None, None
        bow = values[:n] >> (word + self.bits) & code
        low = values >> (word + 2 * self.bits)
        return words, prob, bow, unpack_offsets(level.high, low, level.low)

    @cached_property
    def arrays(self) -> _quantized.QuantizedTrie:
        """The trie in the form that kernels take."""
        word = word_bits(self.n_words)
        levels = [
            (own.records, own.high, own.sample, own.prob, own.bow, own.n, word,
             self.bits, own.low)
            for own in self.levels
        ]  # fmt: skip
        return _quantized.QuantizedTrie(self.prob, self.bow, self.start, levels)

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are quick to compute again.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of each next word given its context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column. Ids are not checked.
        y : ndarray of int32, shape (n_samples,)
            Next words.

        Returns
        -------
        prob : ndarray of float64, shape (n_samples,)
        """
        out = np.empty(len(y))
        for rows in blocks(len(y), BLOCK_WINDOWS):
            _quantized.quantized_prob(self.arrays, X[rows], y[rows], out[rows])
        return out


def word_bits(n_words: int) -> int:
    """Return the number of bits of a word id."""
    return max(1, (n_words - 1).bit_length())


def _nodes(
    trie: WeightedTrie,
) -> dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
    """Return the n-grams of each length, sorted by their words, newest first.

    For each length, returns the oldest words, probabilities, weights, and offsets of
    the extensions by one older word (None for the longest).
    """
    # Build a trie of all n-grams as contexts. Besides the n-grams it contains the
    # contexts with a weight, and the suffixes of both.
    builder = TrieBuilder(trie.n_words)
    all_words = np.arange(trie.n_words, dtype=np.int32)
    builder.add_context_level(np.array([0, trie.n_words], dtype=np.int32), all_words)
    rows = {k: trie.ngrams(k - 1) for k in range(2, trie.order + 1)}
    weighted = {}
    for k in range(2, trie.order):
        first, last = trie.level_start[k : k + 2]
        weighted[k] = first + np.flatnonzero(trie.bow[first:last] != NO_WEIGHT)
        rows[-k] = trie.context_words(weighted[k], k)
    number = {key: own[:, -1] for key, own in rows.items()}
    made: dict[int, NDArray[np.int32]] = {}
    for k in range(2, trie.order + 1):
        ranked = builder.rank_contexts(
            np.concatenate(list(number.values())),
            np.concatenate([rows[key][:, -k] for key in number]),
        )
        ends = np.cumsum([len(own) for own in number.values()])
        number = dict(zip(number, np.split(ranked, ends[:-1])))
        made |= {key: number.pop(key) for key in (k, -k) if key in number}
    nodes = {}
    for k in range(1, trie.order + 1):
        first, last = builder.level_start[k : k + 2]
        prob = np.full(last - first, NO_PROB, dtype=np.float32)
        bow = np.full(last - first, NO_WEIGHT, dtype=np.float32)
        if k > 1:
            prob[made[k]] = trie.prob[trie.followers(k - 1)]
        if k in weighted:
            bow[made[-k]] = trie.bow[weighted[k]]
        offsets = None
        if k < trie.order:
            n_longer = builder.level_start[k + 2] - last
            offsets = np.append(builder.child_start[k] - np.int64(last), n_longer)
        nodes[k] = builder.context_word[k], prob, bow, offsets
    return nodes
