from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural._loops cimport Scratch
from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural.outputs._energy cimport Energies, Words
from nplm._kernels.neural.outputs._estimates cimport Estimate


cdef class SampledEnergy(Energies):
    cdef Estimate estimate
    cdef Features features
    cdef Solver solver
    cdef Words visited        # (most + K,) drawn words, then the other next words
    cdef Words next           # (K,) the next words, one an example
    cdef void *p              # (n_drawn, columns) in panels: logits of the drawn, ..., dL/dy
    cdef Words room(self, Scratch scratch, Py_ssize_t n, Py_ssize_t n_made) except *
    cdef Words next_of(self, Py_ssize_t k) noexcept nogil
    cdef void gather(self, Py_ssize_t K) noexcept nogil
