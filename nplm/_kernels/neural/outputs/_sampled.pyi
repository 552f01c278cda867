from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Solver
from nplm._kernels.neural.outputs._estimates import Estimate
from nplm._kernels.neural.outputs._output import Rows

class Sampled(Rows):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        n_words: int,
        estimate: Estimate,
        solver: Solver | None,
        **options: Any,
    ) -> None: ...
