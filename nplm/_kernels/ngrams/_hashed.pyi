import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Ngrams
from nplm.base.array_types import Bytes, Counts

MAX_ORDER: int

class Table(Ngrams):
    def __init__(
        self,
        memory: Bytes | bytes | memoryview,
        bucket_start: Counts,
        prob: NDArray[np.float32],
        bow: NDArray[np.float32],
        closed: bool,
    ) -> None: ...
