from typing import Any

from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock, Parameter, Solver
from nplm.base.array_types import Bytes

class Gradients(Solver):
    def __init__(
        self,
        tier: Tier,
        clock: Clock,
        C: Parameter | None,
        *,
        solver: Solver,
        parameters: list[Parameter],
        scratch: Scratch,
        whole: Bytes | None = None,
        **options: Any,
    ) -> None: ...
