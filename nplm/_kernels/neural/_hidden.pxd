from cython cimport floating

from nplm._kernels.neural._workspace cimport Workspace


cdef struct Hidden:
    # Sizes of the part of the network below the output units.
    Py_ssize_t n_context      # n - 1
    Py_ssize_t n_features     # m
    Py_ssize_t n_hidden       # h
    bint direct               # whether x feeds the output units too


cdef void hidden_forward(
    Hidden size, floating *C, floating *H, floating *d, const int *contexts,
    Py_ssize_t K, Workspace work,
) noexcept nogil

cdef void hidden_backward(
    Hidden size, floating *C, floating *H, floating *d, const int *contexts,
    Py_ssize_t K, Workspace work, floating rate, floating keep, floating rate_C,
) noexcept nogil
