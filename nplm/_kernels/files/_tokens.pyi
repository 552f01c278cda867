import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Bytes, Counts, Ids

ENDED: int
WORDS_FULL: int
TEXT_FULL: int
MARK_INSIDE: int

def encode_text(
    chunk: Bytes | bytes | memoryview,
    at: int,
    is_last: bool,
    blank_lines: bool,
    n_marks: int,
    slots: NDArray[np.uint64],
    text: Bytes,
    start: Counts,
    counts: Counts,
    state: Counts,
    ids: Ids,
    n: int,
) -> tuple[int, int, int]: ...
