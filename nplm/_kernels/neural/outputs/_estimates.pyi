from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural.outputs._sampler import Sampler
from nplm.base.array_types import Floats

class Estimate:
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        sampler: Sampler,
        columns: int,
        **options: Any,
    ) -> None: ...

class Importance(Estimate):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *args: Any,
        watched: Floats,
        least: float,
        **options: Any,
    ) -> None: ...

class NoiseContrastive(Estimate):
    def __init__(
        self, *args: Any, proposal: Floats, n_noise: int, **options: Any
    ) -> None: ...
