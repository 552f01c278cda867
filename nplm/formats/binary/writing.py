"""Write binary files of n-grams, in memory or on disk."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.base.blocks import blocks
from nplm.base.files.tensors import filling_arrays
from nplm.formats._words import StoredWords
from nplm.formats.binary.arrays import ARRAYS, dtypes_of_trie, sizes_of_hashed
from nplm.formats.binary.headers import header_of, metadata_of
from nplm.models.ngrams.stages.quantizing import Quantizing
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie
from nplm.models.ngrams.trie.hash_table import HashTable
from nplm.models.ngrams.trie.hashing import (
    MAX_HASHED_ORDER,
    TableFullError,
    buckets_of_levels,
    fill_table,
    is_hashable,
)
from nplm.models.ngrams.trie.packed_trie import fill_packed
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.models.ngrams.trie.work import Work

__all__ = ["check_bits", "write_mapped", "write_quantized"]


def write_mapped(
    path: str | os.PathLike[str],
    words: StoredWords,
    trie: BackoffTrie,
    work: Work,
    *,
    index: HashTable | None = None,
) -> None:
    """Write a file of mapped n-grams, with their hash table if their order has one.

    - `index`: the hash table, if it is there
    """
    trie, metadata = trie.verified(), metadata_of(header_of(words))
    if not is_hashable(trie.order):
        dtypes = dtypes_of_trie()
        own = {name: getattr(trie, name) for name in ARRAYS}
        lengths = {name: (dtype, len(own[name])) for name, dtype in dtypes.items()}
        with filling_arrays(path, words.sizes | lengths, metadata) as arrays:
            words.fill(arrays)
            for name in ARRAYS:
                _copy(own[name], arrays[name], work)
        return
    n_contexts, n_ngrams = len(trie.context_word), len(trie.words)
    starts = buckets_of_levels(trie.n_ngrams, trie.level_start)
    for bucket_start in starts if index is None else [index.bucket_start]:
        sizes = sizes_of_hashed(trie.n_words, n_contexts, n_ngrams, bucket_start)
        with (
            suppress(TableFullError),
            filling_arrays(path, words.sizes | sizes, metadata) as arrays,
        ):
            words.fill(arrays)
            arrays["bucket_start"][:] = bucket_start
            arrays["prob"][:] = trie.prob[: trie.n_words]
            arrays["bow"][:] = trie.bow[1 : trie.n_words + 1]
            if index is None:
                closed = fill_table(trie, arrays["buckets"], bucket_start, work)
            else:
                closed = index.closed
                _copy(index.buckets, arrays["buckets"], work)
            arrays["closed"][:] = closed
            fill_packed(trie, arrays, work)
            return


def _copy(values: NDArray[Any], out: NDArray[Any], work: Work) -> None:
    for part in blocks(len(values), work.block):
        out[part] = values[part]
        work.forget(values, out)


def write_quantized(
    path: str | os.PathLike[str],
    words: StoredWords,
    trie: BackoffTrie,
    bits: int,
    work: Work,
) -> None:
    """Write a quantized file in bounded memory.

    - `bits`: bits of a code
    """
    quantizing = Quantizing(trie, bits, work)
    metadata = metadata_of(header_of(words) | {"quantized": quantizing.header})
    sizes = words.sizes | quantizing.sizes
    with filling_arrays(path, sizes, metadata) as arrays:
        words.fill(arrays)
        quantizing.fill(arrays)


def check_bits(bits: Any, order: int) -> int:
    """Return the number of bits of a code, or raise."""
    if not isinstance(bits, int | np.integer) or not MIN_BITS <= bits <= MAX_BITS:
        raise ValueError(
            f"bits must be None or {MIN_BITS} to {MAX_BITS}, got {bits!r}."
        )
    if not is_hashable(order):
        raise ValueError(
            f"bits={bits} quantizes orders 2 to {MAX_HASHED_ORDER}, but the model's "
            f"order is {order}: leave bits out."
        )
    return int(bits)
