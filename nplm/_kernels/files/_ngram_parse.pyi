import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams.decoding._word_ids import WordIds
from nplm.base.array_types import Bytes, Counts, Floats, Ids

MORE: int
SECTION: int
BAD_LENGTH: int
BAD_NUMBER: int
OUT_OF_RANGE: int
UNKNOWN_WORD: int
TOO_HEAVY: int

def parse_ngrams(
    lines: Bytes | bytes | memoryview,
    begin: int,
    words: WordIds,
    weights: bool,
    lowest: float,
    highest: float,
    heaviest: float,
    row: int,
    ids: Ids,
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
) -> tuple[int, int, int, int]: ...
def parse_unigrams(
    lines: Bytes | bytes | memoryview,
    lowest: float,
    highest: float,
    heaviest: float,
    words: Bytes,
    numbers: Floats,
    weight: Floats,
) -> tuple[int, int, int]: ...
def parse_counts(
    lines: Bytes | bytes | memoryview,
    words: WordIds,
    ids: Ids,
    length: Ids,
    counts: Counts,
) -> tuple[int, int, int, int]: ...
