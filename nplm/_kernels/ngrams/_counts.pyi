import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Bytes, Counts, Ids

def rank_pairs(
    left: Ids, right: Ids, n_right: int, start: Ids, words: Ids, rank: Ids
) -> int: ...
def continuation_counts(trie: Trie, counts: Counts, slot: Ids, out: Counts) -> None: ...
def rename(words: Ids, new_ids: Ids, out: Ids) -> None: ...
def record_bytes(n_columns: int, n_bits: int) -> int: ...
def pack_by_range(
    ngrams: Ids,
    values: NDArray[np.float32],
    column: int,
    range_of_word: Ids,
    n_bits: int,
    starts: Counts,
    records: Bytes,
) -> None: ...
def unpack_rows(
    records: Bytes,
    n_bits: int,
    places: Counts,
    ngrams: Ids,
    values: NDArray[np.float32],
) -> None: ...
