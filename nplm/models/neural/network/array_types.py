"""Types of the arrays of networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]  # parameters, activations
Ids = NDArray[np.int32]  # of words
Index = NDArray[np.intp]  # rows of windows
Counts = NDArray[np.int64]  # of words
Scores = NDArray[np.float64]
State = dict[str, NDArray[Any]]  # arrays by name: parameters, moments, seeds
Shapes = dict[str, tuple[int, ...]]
