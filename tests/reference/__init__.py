"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification against which the compiled kernels are tested; the
docstring of a kernel without a twin gives the reason.
"""

import numpy as np
from numpy.typing import NDArray

# Arrays, by the type of their numbers.
Array = NDArray[np.floating]
Int32, Int64, Index = NDArray[np.int32], NDArray[np.int64], NDArray[np.intp]
UInt64, Float64 = NDArray[np.uint64], NDArray[np.float64]
