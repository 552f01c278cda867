from typing import Any

from nplm._kernels.neural._loops import Scratch, Tier
from nplm.base.array_types import Array, Floats

class Clock:
    def __init__(
        self,
        examples: float = 0,
        updates: float = 0,
        log_decay: float = 0,
        pause: float = 0,
    ) -> None: ...
    @property
    def n_examples(self) -> int: ...
    def read(self) -> tuple[float, float, float, float]: ...
    def set(
        self, examples: float, updates: float, log_decay: float, pause: float
    ) -> None: ...

class Parameter:
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    def __init__(
        self,
        values: Array,
        first: Array | None = None,
        second: Array | None = None,
        *,
        decayed: Floats | None = None,
        paused: Floats | None = None,
        made: Floats | None = None,
        n_decaying: int | None = None,
    ) -> None: ...

class Solver:
    def __init__(
        self,
        tier: Tier,
        clock: Clock,
        C: Parameter | None,
        *args: Any,
        learning_rate_init: float,
        learning_rate_decay: float,
        alpha: float,
        begun: float,
        span: float,
        **kwargs: Any,
    ) -> None: ...

class SGD(Solver): ...

class Adam(Solver):
    def __init__(
        self,
        *args: Any,
        scratch: Scratch,
        largest: int,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        **kwargs: Any,
    ) -> None: ...
