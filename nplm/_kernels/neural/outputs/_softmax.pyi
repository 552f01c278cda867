from typing import Any

from nplm._kernels.neural._features import Gatherer
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Solver
from nplm._kernels.neural.outputs._output import Rows

class Softmax(Rows):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        n_words: int,
        solver: Solver | None,
        start_row: int = 0,
        **options: Any,
    ) -> None: ...

class TiedSoftmax(Softmax):
    def __init__(self, *args: Any, gatherer: Gatherer, **options: Any) -> None: ...
