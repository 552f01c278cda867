from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter

class Output:
    @property
    def first(self) -> int: ...
    @property
    def n_words(self) -> int: ...
    @property
    def n_slopes(self) -> int: ...
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        first: int,
        n_words: int,
        **kwargs: Any,
    ) -> None: ...

class Rows(Output):
    @property
    def n_outputs(self) -> int: ...
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        E: Parameter,
        *,
        direct: bool,
        row: int,
        n_rows: int,
        leader: Rows | None,
        **options: Any,
    ) -> None: ...
