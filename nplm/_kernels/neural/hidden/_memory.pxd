from nplm._kernels.neural.hidden._hidden cimport Hidden, Weighted
from nplm._kernels.neural._inputs cimport Activations, Inputs
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Gates:
    """New values for the memory, and its gates, computed from the units below."""

    cdef Parameter f
    cdef Weighted by_F
    cdef Py_ssize_t h
    cdef void *rows           # (K, 3h) z, then the gates k and o; their slopes
    cdef void *df
    cdef char *row(self, Activations at, Py_ssize_t k) noexcept nogil
    cdef void forward(self, Activations below, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Activations below, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Remembering(Hidden):
    cdef Hidden below
    cdef Activations inner    # of `below`, with the x and dx of the network
    cdef Gates gates
    cdef Py_ssize_t n_carried  # runs whose memory is kept for the next mini-batch
    cdef unsigned char[:, ::1] memory
    cdef Py_ssize_t[::1] last
    cdef void *c              # (K, h) memory after each example
    cdef void *carried        # (n_carried, h) at the start of a run
    cdef void *nothing        # (h,) zeros
    cdef void *dc             # (h,)
    cdef const void **before  # (K,) the memory before each example, in one of these
    cdef bint begins(self, Activations at, Py_ssize_t k) noexcept nogil
    cdef void find_memory(self, Activations at, Py_ssize_t K) noexcept nogil


cdef class Recalling(Hidden):
    cdef Inputs inputs
    cdef Hidden below
    cdef Activations positions
    cdef Gates gates
    cdef Py_ssize_t n_window  # words of the context of a position
    cdef Py_ssize_t n_words   # words of a window
    cdef Py_ssize_t *last     # (K,) the position of the context of each example
    cdef Py_ssize_t end_of_run(
        self, Activations at, Py_ssize_t first, Py_ssize_t K) noexcept nogil
    cdef Py_ssize_t take_run(
        self, Activations at, Py_ssize_t first, Py_ssize_t end,
        Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t n_remembered(self, Activations at, Py_ssize_t k) noexcept nogil
