from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter, Solver
from nplm._kernels.neural.outputs._output import Rows
from nplm.base.array_types import Counts, Ids

class Tree(Rows):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        E: Parameter,
        *,
        branches: Ids,
        starts: Counts,
        parents: Ids,
        places: Ids,
        depth: int,
        most_rows: int,
        n_words: int,
        solver: Solver | None,
        **options: Any,
    ) -> None: ...
