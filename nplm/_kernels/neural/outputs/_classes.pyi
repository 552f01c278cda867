from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Solver
from nplm._kernels.neural.outputs._output import Rows
from nplm._kernels.neural.outputs._softmax import Softmax
from nplm.base.array_types import Ids, Index

class Classes(Rows):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        classes: Softmax,
        rest: Softmax | None,
        labels: Ids,
        order: Ids,
        starts: Index,
        n_words: int,
        solver: Solver | None,
        **options: Any,
    ) -> None: ...
