import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Counts, Ids

def pack_windows(
    stream: Ids, n_context: int, boundary: int, n_bits: int, rows: NDArray[np.uint64]
) -> None: ...
def pack_counted(
    ngrams: Ids,
    counts: Counts | None,
    boundary: int,
    n_bits: int,
    rows: NDArray[np.uint64],
) -> None: ...
def sort_rows(
    rows: NDArray[np.uint64], spare: NDArray[np.uint64], n_words: int, n_bits: int
) -> bool: ...
def count_rows(
    rows: NDArray[np.uint64], at: int, out: NDArray[np.uint64]
) -> tuple[int, int]: ...
def make_heap(buffers: NDArray[np.uint64], at: Counts, heap: Ids) -> None: ...
def merge_runs(
    buffers: NDArray[np.uint64],
    at: Counts,
    end: Counts,
    heap: Ids,
    n_live: int,
    out: NDArray[np.uint64],
    n: int,
) -> tuple[int, int, int]: ...
