from typing import Any

from nplm._kernels.neural._features import Features
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter, Solver
from nplm._kernels.neural.outputs._energy import Energies
from nplm._kernels.neural.outputs._estimates import Estimate

class SampledEnergy(Energies):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        E: Parameter,
        C: Parameter,
        *args: Any,
        estimate: Estimate,
        features: Features,
        solver: Solver | None,
        **options: Any,
    ) -> None: ...
