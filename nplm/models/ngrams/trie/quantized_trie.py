"""The n-grams of a back-off model in a few bytes each."""

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
# The numbers that the first codes stand for.
NO_PROB, NO_WEIGHT, ZERO = -1.0, 1.0, 0.0
N_FIXED = 2
# Rounds of Lloyd's algorithm; it stops before when no number changes its code.
MAX_ROUNDS = 200


def codebook(
    values: NDArray[np.float32], bits: int, absent: float
) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
    """Choose few numbers to stand for many: close in their logarithms.

    Code 0 stands for `absent` and code 1 for zero, exactly. The logarithms of the
    others fall into ranges, and each range's code stands for its mean, so that the
    squares of the differences are least (Lloyd 1982).

    Parameters
    ----------
    values : ndarray of float32, shape (n,)
        Probabilities or weights.
    bits : int
        Of a code.
    absent : float
        What stands for no number.

    Returns
    -------
    codes : ndarray of uint64, shape (n,)
    book : ndarray of float32, shape (2**bits,)
        What each code stands for.

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
    means, ends = _clusters(log, len(book) - N_FIXED)
    book[N_FIXED : N_FIXED + len(means)] = np.exp(means)
    codes[kept] = np.searchsorted(ends, log) + N_FIXED
    return codes, book


def _clusters(
    values: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of at most so many ranges, and what divides these."""
    distinct, counts = np.unique(values, return_counts=True)
    n_up_to = np.concatenate([[0], np.cumsum(counts)])
    sum_up_to = np.concatenate([[0.0], np.cumsum(distinct * counts)])
    if len(distinct) <= most:
        return distinct, (distinct[1:] + distinct[:-1]) / 2
    # To begin with, half of the ranges have about as many values each, and the others
    # are as wide as each other, so that no rare number is far from what stands for it.
    shares = np.linspace(0, len(values), most // 2 + 1)[1:-1]
    steps = np.linspace(distinct[0], distinct[-1], most - most // 2 + 1)[1:-1]
    places = np.concatenate(
        [np.searchsorted(n_up_to, shares), np.searchsorted(distinct, steps)]
    )
    for _ in range(MAX_ROUNDS):
        edges = np.unique(np.concatenate([[0], places, [len(distinct)]]))
        means = np.diff(sum_up_to[edges]) / np.diff(n_up_to[edges])
        ends = (means[1:] + means[:-1]) / 2
        again = np.searchsorted(distinct, ends)
        if np.array_equal(again, places):
            break
        places = again
    return means, ends


@dataclass(frozen=True, eq=False)
class QuantizedLevel:
    """The n-grams of one length.

    Attributes
    ----------
    n : int
        How many there are, suffixes of longer ones that are none themselves included.
    low : int
        Bits of the offset of their extensions that are in a record.
    records : ndarray of uint8
        For each a word, the oldest; the codes of its probability and its weight;
        and the low bits of an offset. The longest have no weights and offsets, and
        the others one record more, for the last offset.
    high : ndarray of uint64
        The high bits of the offsets.
    sample : ndarray of uint32
        Where each 32nd of them is.
    prob, bow : ndarray of float32, shape (2**bits,)
        What the codes stand for.
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
    """A trie of n-grams, the newest word first, in numbers of few bits.

    Attributes
    ----------
    n_words : int
        Size of the vocabulary.
    bits : int
        Of the code of a probability or a weight.
    n_ngrams : ndarray of int64, shape (order,)
        n-grams of each order.
    prob, bow : ndarray of float32, shape (n_words,)
        Those of each word, as a unigram and as a context.
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
            Of order 2 to 16.
        bits : int
            Of a code.

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
            # As many as make the high parts rise by about one an n-gram.
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
        """Bits of a record of level `i`."""
        ends = i + 1 == len(self.levels)
        more = 0 if ends else self.bits + self.levels[i].low
        return word_bits(self.n_words) + self.bits + more

    def unpacked(
        self, i: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
        """Unpack level `i`.

        Returns
        -------
        words : ndarray of int64, shape (n,)
            The oldest word of each n-gram.
        prob, bow : ndarray of int64, shape (n,)
            Codes; no weights of the longest.
        offsets : ndarray of int64, shape (n + 1,)
            Where the n-grams one older word longer begin; None of the longest.

        Raises
        ------
        ValueError
            If there are fewer offsets than n-grams.
        """
        level, ends = self.levels[i], i + 1 == len(self.levels)
        word, n = word_bits(self.n_words), level.n
        values = unpack_records(level.records, self.width(i), n if ends else n + 1)
        values = values.astype(np.int64)  # at most 57 bits
        code = (1 << self.bits) - 1
        words, prob = values[:n] & ((1 << word) - 1), values[:n] >> word & code
        if ends:
            return words, prob, None, None
        bow = values[:n] >> (word + self.bits) & code
        low = values >> (word + 2 * self.bits)
        return words, prob, bow, unpack_offsets(level.high, low, level.low)

    @cached_property
    def arrays(self) -> _quantized.QuantizedTrie:
        """The same as kernels take it."""
        word = word_bits(self.n_words)
        levels = [
            (own.records, own.high, own.sample, own.prob, own.bow, own.n, word,
             self.bits, own.low)
            for own in self.levels
        ]  # fmt: skip
        return _quantized.QuantizedTrie(self.prob, self.bow, self.start, levels)

    def __getstate__(self) -> dict[str, Any]:
        # What is kept beside the fields is quickly made again.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Probability of each next word given its context.

        Parameters
        ----------
        X : ndarray of int32, shape (n_samples, order - 1)
            Contexts, the nearest word in the last column; ids are unchecked.
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
    """Bits of a word's id."""
    return max(1, (n_words - 1).bit_length())


def _nodes(
    trie: WeightedTrie,
) -> dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
    """Sort the n-grams of each length by their words, the newest first.

    Gives their oldest words, probabilities, weights, and the offsets of those one
    older word longer (None of the longest).
    """
    # In the trie of all n-grams as contexts, the nearest word first. Besides the
    # n-grams there are in it the contexts with a weight and whatever ends in it.
    builder = TrieBuilder(trie.n_words)
    every = np.arange(trie.n_words, dtype=np.int32)
    builder.add_context_level(np.array([0, trie.n_words], dtype=np.int32), every)
    rows = {k: trie.ngrams(k - 1) for k in range(2, trie.order + 1)}
    weighty = {}
    for k in range(2, trie.order):
        first, last = trie.level_start[k : k + 2]
        weighty[k] = first + np.flatnonzero(trie.bow[first:last] != NO_WEIGHT)
        rows[-k] = trie.context_words(weighty[k], k)
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
        if k in weighty:
            bow[made[-k]] = trie.bow[weighty[k]]
        offsets = None
        if k < trie.order:
            n_longer = builder.level_start[k + 2] - last
            offsets = np.append(builder.child_start[k] - np.int64(last), n_longer)
        nodes[k] = builder.context_word[k], prob, bow, offsets
    return nodes
