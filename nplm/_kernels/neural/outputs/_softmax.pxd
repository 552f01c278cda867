from nplm._kernels.neural._features cimport Gatherer
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural.outputs._chunks cimport Chunks
from nplm._kernels.neural.outputs._output cimport Rows


cdef class Softmax(Rows):
    cdef Products products
    cdef Chunks chunks
    cdef Py_ssize_t tile_rows, n_tiles, piece
    cdef Py_ssize_t start_row, start_tile  # where an update starts
    cdef Py_ssize_t rows_ahead  # to prefetch
    cdef void *p              # (n_words, columns), or one tile
    cdef void *memory         # the solver's
    cdef double row_max       # of one example
    cdef void forward_one(self) noexcept nogil
    cdef void backward_one(self, Solver solver, const Step *step) noexcept nogil


cdef class TiedSoftmax(Softmax):
    cdef Gatherer gatherer
