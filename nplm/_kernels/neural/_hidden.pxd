from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Hidden:
    """From x to a; this one, of a network without hidden units, has nothing to do."""

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Linear(Hidden):
    cdef Parameter H, d
    cdef void *xt             # (n_inputs, columns)
    cdef void *sums           # (n_hidden, columns)
    cdef void *dd
    cdef void follow(
        self, Activations at, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Tanh(Linear):
    pass


cdef class Projected(Hidden):
    cdef Hidden hidden
    cdef Parameter R
    cdef Activations inner    # what `hidden` is given; its x and dx are all units'
    cdef Py_ssize_t width     # of v
    cdef void *v              # (K, width) [a | x] or a
    cdef void *vt             # (width, columns)
    cdef void *sums           # (m, columns)
    cdef void *dv
