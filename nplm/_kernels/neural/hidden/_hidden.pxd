from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Loops, Scratch
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Weighted:
    """Products of K vectors and weights, and their gradients."""

    cdef Parameter weights
    cdef const Loops *loops
    cdef Py_ssize_t itemsize, columns
    cdef Py_ssize_t column, n  # of the weights: the first, and how many
    cdef bint scoring, carries, adds
    cdef Products products
    cdef void *sums           # (rows of the weights, columns), in panels; their slopes
    cdef void *keep           # (n,) what the decay leaves of a row of the weights
    cdef void *memory         # the solver's, as the weights
    cdef void *panels(self, void *v, Py_ssize_t K) noexcept nogil
    cdef void forward(self, void *v, void *out, Py_ssize_t K) noexcept nogil
    cdef void follow(
        self, void *slopes, void *dv, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil
    cdef void backward(
        self, void *v, void *slopes, void *dv, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Hidden:
    """Hidden units, which compute a from x; this base class has none."""

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Linear(Hidden):
    cdef Parameter d
    cdef Weighted by_H
    cdef void *dd
    cdef void activate(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void slopes(self, Activations at, Py_ssize_t K) noexcept nogil


cdef class Tanh(Linear):
    pass


cdef class Rectified(Linear):
    pass


cdef class Block(Hidden):
    cdef Hidden below, units
    cdef Weighted by_U
    cdef Activations inner    # of `below`
    cdef Activations wide     # of `units`, whose x is the layer norm
    cdef double epsilon
    cdef void *by             # (K,) of the layer norm


cdef class Projected(Hidden):
    cdef Hidden hidden
    cdef Weighted by_a
    cdef Weighted by_x        # None without direct connections
    cdef Activations inner    # of `hidden`
    cdef void *of_x           # (K, m) products of x; their slopes
