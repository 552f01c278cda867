"""Check a mapped file of n-grams in bounded memory."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import forget
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie.checks import BLOCK_ENTRIES
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.hashing import (
    TableFullError,
    buckets_of_levels,
    fill_table,
)
from nplm.models.ngrams.trie.packed_trie import PackedTrie, unpacked
from nplm.models.training.parallel.threads import Threads

__all__ = ["check_hashed"]

# Memory of buffers, and of the buckets that are mapped at once.
CHECKING_BYTES = 1 << 24


def check_hashed(packed: PackedTrie, table: HashTable) -> None:
    """Raise ValueError unless a structure and a hash table are those of one trie.

    The trie is unpacked to temporary files, and its structure packed and its table
    built again: both are unique.

    - `packed`: the structure
    - `table`: the table, with the values
    """
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
