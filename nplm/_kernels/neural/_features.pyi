from typing import Any

from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter, Solver
from nplm.base.array_types import Floats, Ids, Index

class Features:
    @property
    def m(self) -> int: ...
    def __init__(
        self, tier: Tier, C: Parameter, m: int, *args: Any, **kwargs: Any
    ) -> None: ...

class Fixed(Features): ...

class Composed(Features):
    def __init__(
        self,
        tier: Tier,
        C: Parameter,
        m: int,
        own: Parameter,
        G: Parameter,
        start: Index,
        parts: Ids,
        weights: Floats,
        scratch: Scratch,
        *,
        most: int,
    ) -> None: ...

class Shared(Composed):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Gatherer(Solver):
    def __init__(
        self, *args: Any, features: Composed, solver: Solver, **kwargs: Any
    ) -> None: ...
