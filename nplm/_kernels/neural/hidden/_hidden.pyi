from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._solvers import Parameter

class Weighted:
    def __init__(
        self,
        weights: Parameter,
        at: Activations,
        scratch: Scratch,
        *,
        carries: bool = True,
        adds: bool = True,
        column: int = 0,
        n: int = -1,
    ) -> None: ...

class Hidden: ...

class Linear(Hidden):
    def __init__(
        self, H: Parameter, d: Parameter, at: Activations, scratch: Scratch
    ) -> None: ...

class Tanh(Linear): ...
class Rectified(Linear): ...

class Block(Hidden):
    def __init__(
        self,
        below: Hidden,
        units: Hidden,
        U: Parameter,
        inner: Activations,
        wide: Activations,
        at: Activations,
        scratch: Scratch,
        *,
        epsilon: float,
    ) -> None: ...

class Projected(Hidden):
    def __init__(
        self,
        hidden: Hidden,
        R: Parameter,
        inner: Activations,
        at: Activations,
        scratch: Scratch,
    ) -> None: ...
