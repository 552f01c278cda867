import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural._loops import Scratch
from nplm.base.array_types import Floats, Ids

class Sampler:
    @property
    def n_words(self) -> int: ...
    @property
    def most(self) -> int: ...
    def __init__(
        self,
        scratch: Scratch,
        proposal: Floats,
        state: NDArray[np.uint64],
        *,
        most: int,
    ) -> None: ...
    def drawn(self, n: int) -> tuple[Ids, Floats]: ...
