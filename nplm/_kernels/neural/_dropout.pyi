import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural._features import Features
from nplm._kernels.neural._inputs import Activations, Inputs
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural.hidden._hidden import Hidden

class Mask:
    def __init__(
        self,
        at: Activations,
        scratch: Scratch,
        clock: Clock,
        seed: NDArray[np.uint64],
        *,
        n: int,
        rate: float,
        run_length: int = 1,
    ) -> None: ...

class DroppedInputs(Inputs):
    def __init__(self, features: Features, inputs: Inputs, mask: Mask) -> None: ...

class DroppedUnits(Hidden):
    def __init__(self, hidden: Hidden, inner: Activations, mask: Mask) -> None: ...
