from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._team cimport Team

cdef void take_windows(
    Team team, Activations at, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index, Py_ssize_t start, Py_ssize_t K) noexcept nogil
