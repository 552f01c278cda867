"""Types of the arrays of networks, and of the kernels that compute with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Clock
from nplm._kernels.neural._team import Team

__all__ = [
    "Activations", "Array", "Clock", "Counts", "Ids", "Index", "Kernel", "Scores",
    "Scratch", "Shapes", "State", "Team", "Tier", "Trained",
]  # fmt: skip

Array = NDArray[np.floating]  # parameters, activations
Ids = NDArray[np.int32]  # of words
Index = NDArray[np.intp]  # rows of windows
Counts = NDArray[np.int64]  # of words
Scores = NDArray[np.float64]
State = dict[str, NDArray[Any]]  # arrays by name: parameters, moments, seeds
Shapes = dict[str, tuple[int, ...]]
Kernel = Any  # a compiled object of a part or a solver: its module has no types
Trained = dict[str, Kernel]  # parameters in the form that kernels take, by name
