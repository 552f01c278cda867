from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Ngrams
from nplm.base.array_types import Bytes, Counts

SAMPLED: int

def pack_records(values: NDArray[Any], width: int, packed: Bytes) -> None: ...

class QuantizedTrie(Ngrams):
    def __init__(
        self,
        prob: NDArray[np.float32],
        bow: NDArray[np.float32],
        start: Counts,
        levels: Sequence[tuple[Any, ...]],
    ) -> None: ...
