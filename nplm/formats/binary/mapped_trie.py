"""MappedTrie: the n-grams of a mapped file, unpacked when they are needed."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.exceptions import damaged_file
from nplm.base.files.atomic_files import forget
from nplm.base.fitted import Fitted
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.checks import BLOCK_ENTRIES
from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES, HashTable
from nplm.models.ngrams.trie.hashing import (
    TableFullError,
    buckets_of_levels,
    fill_table,
    is_hashable,
)
from nplm.models.ngrams.trie.packed_trie import PackedTrie, packed_sizes, unpacked
from nplm.models.ngrams.trie.work import Work

__all__ = ["MappedTrie", "check_hashed", "read_mapped", "sizes_of_hashed"]

# The arrays of a packed trie, and of its hash table.
PACKED: dict[str, DTypeLike] = {
    name: kind for name, (kind, _) in packed_sizes(1, 2, 2, 1).items()
}
HASHED = PACKED | {
    "prob": np.float32, "bow": np.float32, "buckets": np.uint8,
    "bucket_start": np.int64, "closed": np.bool_,
}  # fmt: skip
# Memory of buffers, and of the buckets that are mapped at once.
CHECKING_BYTES = 1 << 24


def _unpacked(name: str) -> Any:
    """Return a property: an attribute of the unpacked trie."""
    return property(lambda self: getattr(self.verified(), name))


class MappedTrie(BackoffTrie):
    """A trie in a mapped file, which is unpacked and checked when it is needed.

    Probabilities need no unpacking: they come from the hash table, and the words that
    follow a context from the packed structure.

    - `packed`: the structure
    - `table`: the values
    - `file`: named in error messages
    """

    context_word = _unpacked("context_word")
    child_start = _unpacked("child_start")
    start = _unpacked("start")
    words = _unpacked("words")
    prob = _unpacked("prob")
    bow = _unpacked("bow")
    arrays = _unpacked("arrays")

    packed: PackedTrie
    table: HashTable
    file: Path

    def __init__(self, packed: PackedTrie, table: HashTable, file: Path) -> None:
        vars(self).update(
            packed=packed, table=table, file=file, n_words=packed.n_words,
            level_start=packed.level_start,
        )  # fmt: skip

    @property
    def n_ngrams(self) -> NDArray[np.int64]:
        """Number of n-grams of each order."""
        return self.packed.n_ngrams

    def verified(self) -> BackoffTrie:  # type: ignore[override]
        """Return the trie, unpacked and checked; raise if it is damaged."""
        return self._verified

    @cached_property
    def _verified(self) -> BackoffTrie:
        return self.unpacked(Work())

    def unpacked(self, work: Work) -> BackoffTrie:
        """Return the trie unpacked; raise if it is damaged."""
        try:
            return unpacked(self.packed, self.table, work)
        except ValueError as error:
            raise damaged_file(self.file, error) from error

    def next_word_prob(
        self, X: NDArray[np.int32], y: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of each next word given its context."""
        return self.table.next_word_prob(X, y)

    def words_prob(
        self, X: NDArray[np.int32], words: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the probability of several words after each context."""
        out, n = np.empty(words.shape), words.shape[1]
        for rows in blocks(len(X), max(1, BLOCK_WINDOWS // max(1, n))):
            contexts = np.repeat(X[rows], n, axis=0)
            prob = self.table.next_word_prob(contexts, words[rows].ravel())
            out[rows] = prob.reshape(-1, n)
        return out

    def distribution(self, X: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the probability of every word after each context."""
        return self.packed.distribution(self.table, X)

    def __reduce__(self) -> Any:
        trie = self.verified()
        return BackoffTrie, tuple(getattr(trie, field.name) for field in fields(trie))


def read_mapped(
    fitted: Fitted, n_words: int, path: Path, *, check: bool
) -> tuple[MappedTrie, HashTable]:
    """Return the trie of a file with a hash table, and the table."""
    arrays = {n: fitted.array(n, kind, (None,)) for n, kind in HASHED.items()}
    fitted.done()
    # Kernels read sizes when they are called, and trust them.
    for name in ("n_ngrams", "level_start", "bucket_start"):
        arrays[name] = np.array(arrays[name])
    packed = PackedTrie(n_words, **{name: arrays[name] for name in PACKED})
    closed = arrays["closed"]
    table = HashTable(
        arrays["prob"], arrays["bow"], arrays["buckets"], arrays["bucket_start"],
        len(closed) == 1 and bool(closed[0]),
    )  # fmt: skip
    # Kernels trust sizes. Python's numbers do not overflow.
    starts = arrays["bucket_start"].tolist()
    if not (
        packed.has_valid_sizes()
        and len(arrays["prob"]) == len(arrays["bow"]) == n_words
        and len(starts) == len(packed.level_start)
        and is_hashable(len(starts) - 1)
        and starts[:2] == [0, 0]
        and all(end - start >= 1 for start, end in pairwise(starts[1:]))
        and starts[-1] * BUCKET_BYTES == len(arrays["buckets"])
        and len(closed) == 1
    ):
        raise ValueError("its arrays do not fit together")
    trie = MappedTrie(packed, table, path)
    if check:
        check_hashed(packed, table)
    return trie, table


def sizes_of_hashed(
    n_words: int, n_contexts: int, n_ngrams: int, bucket_start: NDArray[np.int64]
) -> dict[str, tuple[DTypeLike, int]]:
    """Return the type and length of each array of a file with a hash table.

    - `n_words`, `n_contexts`, `n_ngrams`: sizes of the trie
    - `bucket_start` (order + 1,): first bucket of each level

    Returns `sizes`: in the order of the file, after the vocabulary.
    """
    order = len(bucket_start) - 1
    packed = packed_sizes(n_words, order, n_contexts, n_ngrams)
    lengths = {name: size for name, (_, size) in packed.items()}
    lengths |= {"prob": n_words, "bow": n_words, "closed": 1}
    lengths |= {"buckets": int(bucket_start[-1]) * BUCKET_BYTES}
    lengths |= {"bucket_start": order + 1}
    return {name: (kind, lengths[name]) for name, kind in HASHED.items()}


def check_hashed(packed: PackedTrie, table: HashTable) -> None:
    """Raise ValueError unless a structure and a hash table are those of one trie.

    The trie is unpacked to temporary files, and its structure packed and its table
    built again: both are unique.

    - `packed`: the structure
    - `table`: the table, with the values
    """
    # Imported here: few files are verified, and they need estimation.
    from nplm.models.ngrams.stages.scratch import Scratch
    from nplm.models.training.parallel.threads import Threads

    with Scratch(None, CHECKING_BYTES, Threads(1)) as scratch:
        trie = unpacked(packed, table, scratch, CHECKING_BYTES)
        again = PackedTrie.of(trie, scratch)
        for field in fields(packed):
            name = field.name
            if name != "n_words":
                _check_equal(name, getattr(again, name), getattr(packed, name))
        # Sizes below the right ones are too small.
        sizes = buckets_of_levels(trie.n_ngrams, trie.level_start)
        expected = next(size for size in sizes if size[-1] >= table.bucket_start[-1])
        _check_equal("bucket_start", expected, table.bucket_start)
        buckets = scratch.array(np.uint8, len(table.buckets))
        try:
            closed = fill_table(trie, buckets, expected, scratch)
        except TableFullError:
            raise ValueError("bucket_start does not match its n-grams") from None
        _check_equal("buckets", buckets, table.buckets)
        if closed != table.closed:
            raise ValueError("closed does not match its n-grams")


def _check_equal(name: str, expected: NDArray[Any], array: NDArray[Any]) -> None:
    """Raise ValueError unless two arrays are equal; release them if they are mapped."""
    same = len(expected) == len(array)
    for part in blocks(len(array), BLOCK_ENTRIES):
        same = same and np.array_equal(expected[part], array[part])
        forget(expected, array)
    if not same:
        raise ValueError(f"{name} does not match its n-grams")
