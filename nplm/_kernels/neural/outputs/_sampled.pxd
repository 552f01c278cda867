from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural.outputs._estimates cimport Estimate
from nplm._kernels.neural.outputs._output cimport Rows


cdef class Sampled(Rows):
    cdef Estimate estimate
    cdef Solver solver
    cdef Products products
    cdef int *nowhere         # (K,) -1
    cdef void *tile           # (most + K, stride) the visited rows, then the gradients
    cdef void *p              # (n_drawn, columns) in panels: logits of the drawn, ..., dL/dy
    cdef void *logits         # (columns,) of the next words
    cdef void *below          # (K, stride) dL/dz through the next words
    cdef void *nothing        # (stride,) zeros
    cdef void *tile_row(self, Py_ssize_t row) noexcept nogil
    cdef void gather(self) noexcept nogil
