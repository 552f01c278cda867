import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._hashed import Table
from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Bytes, Ids

BUCKET_BYTES: int
BUCKET_SLOTS: int
LONG_BUCKET_SLOTS: int

def child_keys(
    trie: Trie,
    level: int,
    first: int,
    last: int,
    keys: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> None: ...

class Window:
    @property
    def n_used(self) -> int: ...
    def __init__(
        self, memory: Bytes, n_buckets: int, first: int, longest: bool
    ) -> None: ...

def put_ngrams(
    trie: Trie,
    keys: NDArray[np.uint64],
    prob: NDArray[np.float32],
    first: int,
    last: int,
    window: Window,
    filters: NDArray[np.uint16],
    missing: Ids,
) -> int: ...
def put_contexts(
    trie: Trie,
    keys: NDArray[np.uint64],
    bow: NDArray[np.float32],
    first: int,
    last: int,
    window: Window,
) -> bool: ...
def put_suffixes(
    trie: Trie,
    keys: NDArray[np.uint64],
    missing: Ids,
    window: Window,
    made: Ids,
) -> int: ...
def stored_values(
    trie: Trie,
    table: Table,
    keys: NDArray[np.uint64],
    level: int,
    first: int,
    last: int,
    window: int,
    n_windows: int,
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
) -> None: ...
