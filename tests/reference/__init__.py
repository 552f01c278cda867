"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification against which the compiled kernels are tested; the
docstring of a kernel without a twin gives the reason.
"""

import numpy as np
from numpy.typing import NDArray

# Arrays, by the type of their numbers.
Int32, Int64, Index = NDArray[np.int32], NDArray[np.int64], NDArray[np.intp]
UInt8, UInt64 = NDArray[np.uint8], NDArray[np.uint64]
Float32, Float64 = NDArray[np.float32], NDArray[np.float64]
