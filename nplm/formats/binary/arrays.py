"""The arrays of binary files of n-grams: names, types and sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm.models.ngrams.trie.hash_table import BUCKET_BYTES
from nplm.models.ngrams.trie.packed_trie import packed_sizes

__all__ = ["HASHED", "PACKED", "sizes_of_hashed"]

# The arrays of a packed trie, and of its hash table.
PACKED: dict[str, DTypeLike] = {
    name: kind for name, (kind, _) in packed_sizes(1, 2, 2, 1).items()
}
HASHED = PACKED | {
    "prob": np.float32, "bow": np.float32, "buckets": np.uint8,
    "bucket_start": np.int64, "closed": np.bool_,
}  # fmt: skip


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
