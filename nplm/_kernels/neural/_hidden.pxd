from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Hidden:
    """From x to a; this one, of a network without hidden units, has nothing to do."""

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Tanh(Hidden):
    cdef Parameter H, d
    cdef Products products    # by H
    cdef void *sums           # (n_hidden, columns), in panels; then their slopes
    cdef void *dd
    cdef void *keep           # (n_inputs,) what the decay leaves of a row of H
    cdef void *memory         # the solver's, (n_hidden, n_inputs)
