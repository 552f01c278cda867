"""MappedTrie: the n-grams of a mapped file, unpacked when they are needed."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import BLOCK_WINDOWS, blocks
from nplm.base.fitted import Fitted
from nplm.formats.binary.arrays import HASHED, PACKED
from nplm.formats.binary.headers import damaged
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES, HashTable
from nplm.models.ngrams.trie.hashing import is_hashable
from nplm.models.ngrams.trie.packed_trie import PackedTrie, unpacked
from nplm.models.ngrams.trie.work import Work

__all__ = ["MappedTrie", "read_mapped"]


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
            raise damaged(self.file, error) from error

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
        # Imported here: few files are verified, and it needs estimation.
        from nplm.formats.binary.checking import check_hashed

        check_hashed(packed, table)
    return trie, table
