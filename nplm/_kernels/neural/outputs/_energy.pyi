from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter
from nplm._kernels.neural.outputs._output import Output

class Energies(Output):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        E: Parameter,
        C: Parameter,
        H_next: Parameter,
        v: Parameter,
        *,
        leader: Energies | None,
        **options: Any,
    ) -> None: ...

class Energy(Energies):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        E: Parameter,
        C: Parameter,
        *args: Any,
        n_words: int,
        row: int,
        leader: Energy | None,
        tile_rows: int = 64,
        **options: Any,
    ) -> None: ...
