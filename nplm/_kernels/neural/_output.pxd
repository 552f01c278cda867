from cython cimport floating

from nplm._kernels.neural._workspace cimport Workspace


cdef void output_forward(
    floating *E, Py_ssize_t n_rows, Py_ssize_t n_outputs, const int *target,
    Py_ssize_t K, Workspace work, floating *logits,
) noexcept nogil

cdef void output_backward(
    floating *E, Py_ssize_t n_rows, Py_ssize_t n_outputs, const int *target,
    Py_ssize_t K, Workspace work, floating rate, floating decay,
) noexcept nogil
