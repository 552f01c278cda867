"""Types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[np.generic]
Array = NDArray[np.floating]  # parameters, activations
Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]  # of words, and offsets in files and hash tables
Floats = NDArray[np.float64]  # scores, probabilities, weights
Ids = NDArray[np.int32]  # of words, contexts and nodes, and offsets among these
Index = NDArray[np.intp]  # rows of windows
Mask = NDArray[np.bool_]
State = dict[str, NDArray[Any]]  # arrays by name: parameters, moments, seeds
Shapes = dict[str, tuple[int, ...]]
