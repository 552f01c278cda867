from cython cimport floating

from nplm._kernels.neural._workspace cimport Workspace


cdef void begin_batch(
    floating *z, Py_ssize_t n_outputs, Py_ssize_t K, Workspace work,
) noexcept nogil

cdef void tile_logits(
    floating *E, Py_ssize_t rows, Py_ssize_t n_outputs, floating *logits,
    Py_ssize_t K, Workspace work,
) noexcept nogil

cdef void tile_slopes(
    floating *p, Py_ssize_t first, Py_ssize_t rows, const int *target, Py_ssize_t K,
    Workspace work,
) noexcept nogil

cdef void tile_backward(
    floating *E, Py_ssize_t rows, Py_ssize_t n_outputs, floating *g, Py_ssize_t K,
    floating rate, floating decay, Workspace work,
) noexcept nogil
