"""The arrays of a file with a hash table: their sizes, reading and checks."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.base.blocks import blocks
from nplm.base.files.atomic_files import release_pages
from nplm.base.fitted import Fitted
from nplm.models.ngrams.trie.checks import BLOCK_ENTRIES
from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES, HashTable
from nplm.models.ngrams.trie.hashing import (
    TableFullError,
    buckets_of_levels,
    fill_table,
    is_hashable,
)
from nplm.models.ngrams.trie.packed_trie import (
    MappedTrie,
    PackedTrie,
    packed_sizes,
    unpacked,
)

__all__ = ["check_hashed", "read_mapped", "sizes_of_hashed"]

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
        release_pages(expected, array)
    if not same:
        raise ValueError(f"{name} does not match its n-grams")
