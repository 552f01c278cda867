from nplm._kernels.neural._features cimport Gatherer
from nplm._kernels.neural._output cimport Rows
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Solver, Step


cdef class Softmax(Rows):
    cdef Products products
    cdef Py_ssize_t tile_rows, n_tiles, chunk, n_chunks, piece
    cdef Py_ssize_t start_row, start_tile  # where an update begins
    cdef Py_ssize_t rows_ahead  # that it asks memory for
    cdef int *targets         # (K,) rows of the next words, counted from the first
    cdef void *p              # (n_words, columns), or one tile
    cdef void *highs          # (n_chunks, columns) maxima of the logits
    cdef void *sums           # (n_chunks, columns) of their exponentials
    cdef void *factors        # (chunks of a tile, columns)
    cdef void *memory         # the solver's
    cdef double row_max       # of one example
    cdef void exponentials(
        self, char *p, Py_ssize_t first, Py_ssize_t start, Py_ssize_t rows,
        Py_ssize_t K) noexcept nogil
    cdef void forward_one(self) noexcept nogil
    cdef void backward_one(self, Solver solver, const Step *step) noexcept nogil


cdef class TiedSoftmax(Softmax):
    cdef Gatherer gatherer
