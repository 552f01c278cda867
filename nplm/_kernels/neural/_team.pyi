from nplm._kernels.neural._inputs import Activations, Inputs
from nplm._kernels.neural._loops import Tier
from nplm._kernels.neural._solvers import Solver
from nplm._kernels.neural.hidden._hidden import Hidden
from nplm._kernels.neural.outputs._output import Output
from nplm.base.array_types import Bytes, Floats

def block_starts(n_words: int, size: int) -> list[int]: ...

class UpdateLock: ...

class Team:
    @property
    def at(self) -> Activations: ...
    @property
    def outputs(self) -> tuple[Output, ...]: ...
    loss: float
    @property
    def size(self) -> int: ...
    @property
    def here(self) -> int: ...
    def __init__(
        self,
        tier: Tier,
        at: Activations,
        inputs: Inputs,
        hidden: Hidden,
        outputs: tuple[Output, ...],
        solver: Solver | None = None,
        *,
        n_outcomes: int,
        size: int = 1,
        here: int = 0,
        totals: Floats | None = None,
        slopes: Bytes | None = None,
        lock: UpdateLock | None = None,
    ) -> None: ...
    @property
    def batch_size(self) -> int: ...
    def give_up(self) -> None: ...
