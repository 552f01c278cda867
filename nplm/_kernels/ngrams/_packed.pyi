import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._hashed import Table
from nplm.base.array_types import Bytes, Floats, Ids

class PackedTrie:
    def __init__(
        self,
        context_word: Bytes | bytes | memoryview,
        child_high: NDArray[np.uint64],
        child_sample: NDArray[np.uint32],
        start_high: NDArray[np.uint64],
        start_sample: NDArray[np.uint32],
        words: Bytes | bytes | memoryview,
        width: int,
        n_contexts: int,
        n_ngrams: int,
    ) -> None: ...

def packed_distribution(
    trie: PackedTrie, table: Table, X: Ids, out: Floats
) -> None: ...
