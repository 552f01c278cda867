"""MappedTrie: a hash table, beside the bit-packed structure of its trie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams import _hashed, _hashing, _packed
from nplm._kernels.ngrams._quantized import SAMPLED
from nplm.base.array_types import Bytes, Counts, Floats, Ids
from nplm.base.blocks import blocks, blocks_of_rows
from nplm.base.exceptions import damaged_file
from nplm.base.files.tensors import put
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.bits import (
    READ_BYTES,
    pack_records,
    put_offsets,
    set_bits,
    unpack_records,
    word_bits,
)
from nplm.models.ngrams.trie.context_trie import ContextTrie
from nplm.models.ngrams.trie.hash_table import HashTable, WindowLookUps
from nplm.models.ngrams.trie.hashing import keys_of
from nplm.models.ngrams.trie.trie_checks import check_structure, check_values
from nplm.models.ngrams.trie.work import Work

# Records unpacked together, a multiple of 64.
BLOCK = 1 << 18
RECORDS = ("context_word", "words")
OFFSETS = {"child": "child_start", "start": "start"}


@dataclass(frozen=True, eq=False)
class PackedTrie:
    """Structure of a `ContextTrie`, bit-packed.

    Words take no more bits than the vocabulary needs. Offsets are in Elias-Fano codes
    whose numbers have no low parts (`high`, and `sample`, the position of every 32nd
    bit that is set): one bit per context, and one per child or follower. Probabilities
    and weights are in the hash table of the same n-grams.
    """

    n_words: int
    n_ngrams: Counts
    level_start: Ids
    context_word: Bytes
    child_high: NDArray[np.uint64]
    child_sample: NDArray[np.uint32]
    start_high: NDArray[np.uint64]
    start_sample: NDArray[np.uint32]
    words: Bytes

    @classmethod
    def of(cls, trie: ContextTrie, work: Work) -> Self:
        """Pack the structure of a trie, in memory or on disk."""
        n_contexts, n_ngrams = len(trie.context_word), len(trie.words)
        sizes = packed_sizes(trie.n_words, trie.order, n_contexts, n_ngrams)
        arrays = {n: work.array(kind, size) for n, (kind, size) in sizes.items()}
        fill_packed(trie, arrays, work)
        return cls(trie.n_words, **arrays)

    @cached_property
    def arrays(self) -> _packed.PackedTrie:
        """The arrays in the form that kernels take."""
        n_contexts, n_ngrams = int(self.level_start[-1]), int(self.n_ngrams.sum())
        return _packed.PackedTrie(
            self.context_word,
            self.child_high,
            self.child_sample,
            self.start_high,
            self.start_sample,
            self.words,
            word_bits(self.n_words),
            n_contexts,
            n_ngrams,
        )

    def has_valid_sizes(self) -> bool:
        """Whether the sizes of the arrays are consistent: kernels trust them."""
        levels, n_ngrams = self.level_start.astype(np.int64), self.n_ngrams
        order = len(n_ngrams)
        if not (
            2 <= order == len(levels) - 1
            and levels[:3].tolist() == [0, 1, 1 + self.n_words]
            and (np.diff(levels) >= 0).all()
            and n_ngrams[0] == self.n_words
            and 0 <= n_ngrams.min() <= n_ngrams.max() < 1 << 31
        ):
            return False
        sizes = packed_sizes(self.n_words, order, int(levels[-1]), int(n_ngrams.sum()))
        return all(len(getattr(self, n)) == size for n, (_, size) in sizes.items())

    def structure(self, work: Work) -> ContextTrie:
        """Unpack the structure, block by block; raise ValueError if it is invalid."""
        n_contexts, n_ngrams = int(self.level_start[-1]), int(self.n_ngrams.sum())
        sizes = {"context_word": n_contexts, "child_start": n_contexts + 1}
        sizes |= {"start": n_contexts + 1, "words": n_ngrams}
        arrays = {name: work.array(np.int32, size) for name, size in sizes.items()}
        work.stage("unpacking", sum(map(len, arrays.values())))
        width = word_bits(self.n_words)
        for name in RECORDS:
            packed = getattr(self, name)
            for part in blocks(len(arrays[name]), BLOCK):
                rest = packed[part.start * width // 8 :]
                n = part.stop - part.start
                arrays[name][part] = unpack_records(rest, width, n)
                work.advance(n)
                work.release_pages(packed)
        for code, name in OFFSETS.items():
            n_found = 0
            high = getattr(self, f"{code}_high")
            for places in set_bits(high):
                out = arrays[name][n_found : n_found + len(places)]
                out[:] = places[: len(out)] - np.arange(n_found, n_found + len(out))
                n_found += len(places)
                work.advance(len(places))
                work.release_pages(high)
            if n_found != len(arrays[name]):
                raise ValueError(
                    f"there are {n_found} high parts, but {len(arrays[name])} offsets"
                )
        trie = ContextTrie(self.n_words, self.level_start, **arrays)
        check_structure(trie)
        if trie.n_ngrams.tolist() != self.n_ngrams.tolist():
            raise ValueError("n_ngrams has values out of range")
        return trie


@dataclass(frozen=True, eq=False)
class MappedTrie(WindowLookUps):
    """The n-grams of a mapped file, unpacked and checked when they are needed.

    Probabilities need no unpacking: they come from the hash table, and the words that
    follow a context from the structure.
    """

    packed: PackedTrie
    table: HashTable
    file: Path

    @property
    def n_ngrams(self) -> Counts:  # type: ignore[override]
        """Number of n-grams of each order."""
        return self.packed.n_ngrams

    @property
    def kernel(self) -> _hashed.Table:
        """The values in the form that kernels take."""
        return self.table.kernel

    @cached_property
    def _in_memory(self) -> BackoffTrie:
        return self.unpacked(Work())

    def unpacked(self, work: Work | None = None) -> BackoffTrie:
        """Return the trie in `work`, or in memory, where it stays; raise if damaged."""
        if work is None:
            return self._in_memory
        try:
            return unpacked(self.packed, self.table, work)
        except ValueError as error:
            raise damaged_file(self.file, error) from error

    def distribution(self, X: Ids) -> Floats:
        """Return the probability of every word after each context."""
        out = np.empty((len(X), self.n_words))
        arrays = self.packed.arrays, self.table.kernel
        for rows in blocks_of_rows(len(X), self.n_words):
            _packed.packed_distribution(*arrays, X[rows], out[rows])
        return out

    def __reduce__(self) -> Any:
        # The file may be gone where it is unpickled.
        trie = self.unpacked()
        return BackoffTrie, tuple(getattr(trie, field.name) for field in fields(trie))


def packed_sizes(
    n_words: int, order: int, n_contexts: int, n_ngrams: int
) -> dict[str, tuple[type[np.generic], int]]:
    """Return the type and length of each array of a `PackedTrie`, in their order."""

    def bits(n: int, last: int) -> int:
        return (n - 1 + last) // 64 + 1

    def samples(n: int) -> int:
        return (n - 1) // SAMPLED + 1

    def n_bytes(n: int) -> int:
        return -(-n // 8) * word_bits(n_words) + READ_BYTES

    n_offsets = n_contexts + 1
    return {
        "n_ngrams": (np.int64, order),
        "level_start": (np.int32, order + 1),
        "context_word": (np.uint8, n_bytes(n_contexts)),
        "child_high": (np.uint64, bits(n_offsets, n_contexts)),
        "child_sample": (np.uint32, samples(n_offsets)),
        "start_high": (np.uint64, bits(n_offsets, n_ngrams)),
        "start_sample": (np.uint32, samples(n_offsets)),
        "words": (np.uint8, n_bytes(n_ngrams)),
    }


def fill_packed(
    trie: ContextTrie, arrays: Mapping[str, NDArray[Any]], work: Work
) -> None:
    """Fill the arrays of a `PackedTrie`, zeros of `packed_sizes`, block by block."""
    # Records begin at a byte, and offsets at a sample.
    size = -(-min(work.block, BLOCK) // SAMPLED) * SAMPLED
    arrays["n_ngrams"][:] = trie.n_ngrams
    arrays["level_start"][:] = trie.level_start
    width = word_bits(trie.n_words)
    for name in RECORDS:
        values: NDArray[Any] = getattr(trie, name)
        for part in blocks(len(values), size):
            packed = pack_records(values[part], width)[:-READ_BYTES]
            first = part.start * width // 8
            put(arrays[name][first : first + len(packed)], packed)
            work.release_pages(values, arrays[name])
    for code, name in OFFSETS.items():
        offsets: NDArray[Any] = getattr(trie, name)
        high, sample = arrays[f"{code}_high"], arrays[f"{code}_sample"]
        for part in blocks(len(offsets), size):
            put_offsets(offsets[part], part.start, 0, high, sample)
            work.release_pages(offsets, high, sample)


def unpacked(
    packed: PackedTrie, table: HashTable, work: Work, window_bytes: int | None = None
) -> BackoffTrie:
    """Unpack a structure, and read its values in the hash table of the same n-grams.

    Each window of buckets, by default half of the memory, is read together.
    """
    trie = packed.structure(work)
    n_bytes = max(work.memory // 2 if window_bytes is None else window_bytes, 64)
    n_windows = -(-len(table.buckets) // n_bytes)
    prob = work.array(np.float32, len(trie.words))
    bow = work.array(np.float32, len(trie.context_word))
    bow[0] = 1  # the root has no weight
    keys = keys_of(trie, work)
    work.stage("reading values", n_windows * len(trie.words))
    for level in range(trie.order):
        for window in range(n_windows):
            for first, end in trie.blocks(level, work.block):
                arguments = trie.arrays, table.kernel, keys, level, first, end
                _hashing.stored_values(*arguments, window, n_windows, prob, bow)
                work.release_pages(table.buckets)
                work.advance(int(trie.start[end] - trie.start[first]))
    work.drop(keys)
    arrays = trie.context_word, trie.child_start, trie.start, trie.words
    result = BackoffTrie(trie.n_words, trie.level_start, *arrays, prob, bow)
    check_values(result)
    return result
