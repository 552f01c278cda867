from typing import Any

from nplm._kernels.neural._inputs import Activations, Inputs
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._solvers import Parameter
from nplm._kernels.neural.hidden._hidden import Hidden
from nplm.base.array_types import Bytes, Index

class Cell(Hidden):
    def __init__(
        self,
        H: Parameter,
        d: Parameter,
        V: Parameter,
        at: Activations,
        scratch: Scratch,
        **options: Any,
    ) -> None: ...

class Continuing(Cell):
    def __init__(
        self,
        H: Parameter,
        d: Parameter,
        V: Parameter,
        at: Activations,
        scratch: Scratch,
        *,
        memory: Bytes,
        last: Index,
    ) -> None: ...

class Windows(Cell):
    def __init__(
        self,
        H: Parameter,
        d: Parameter,
        V: Parameter,
        positions: Activations,
        scratch: Scratch,
        *,
        inputs: Inputs,
        windows: Activations,
    ) -> None: ...
