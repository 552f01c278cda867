import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Counts, Floats, Ids

GAIN: int
MOVES: int
VISITED: int

class Neighbours:
    def __init__(
        self, start: Ids, neighbour: Ids, count: Ids, totals: Counts, table: Floats
    ) -> None: ...

class Classes:
    def __init__(
        self,
        n_open: int,
        labels: Ids,
        counts: Ids,
        nonzero: NDArray[np.uint64],
        totals: Counts,
        tally: Floats,
    ) -> None: ...

def exchange(
    words: Ids,
    uniforms: Floats,
    temperatures: Floats,
    neighbours: Neighbours,
    classes: Classes,
) -> None: ...
