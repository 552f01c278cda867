import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Trie
from nplm._kernels.ngrams.decoding._word_ids import WordIds
from nplm.base.array_types import Bytes, Counts, Ids

NUMBER_BYTES: int

class Spelling:
    def __init__(
        self,
        trie: Trie,
        parent: Ids,
        words: WordIds,
        boundary_text: Bytes | bytes | memoryview,
        boundary: int,
    ) -> None: ...

def format_ngrams(
    spelling: Spelling,
    prob: NDArray[np.float32],
    weight: NDArray[np.float32],
    context: int,
    first: int,
    last: int,
    n_context_words: int,
    longest: int,
    out: Bytes,
) -> tuple[int, int, int]: ...
def format_counts(
    spelling: Spelling,
    counts: Counts,
    context: int,
    first: int,
    last: int,
    n_context_words: int,
    longest: int,
    out: Bytes,
) -> tuple[int, int, int]: ...
