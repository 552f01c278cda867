from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef struct Totals:
    # Of some words: all that their members need to share before the backward pass.
    double *high              # (columns,) maximum of the logits
    double *sum               # (columns,) of the exponentials relative to it
    double *target            # (columns,) the next word's logit, -inf if not here


cdef class Output:
    """One member's output units."""

    cdef readonly Py_ssize_t first, n_words  # this member's words
    cdef readonly Py_ssize_t n_outputs, n_slopes
    cdef Activations at
    cdef Totals own
    cdef void *slopes         # dL/dz of these words, to be added up over members
    cdef void begin(self, Py_ssize_t K) noexcept nogil
    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil
    cdef void combine(
        self, const Totals *parts, int n_parts, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step) noexcept nogil
    cdef void end(self, Py_ssize_t K) noexcept nogil
    cdef double loss(
        self, const Totals *parts, int n_parts, Py_ssize_t K) noexcept nogil


cdef class Softmax(Output):
    cdef const Loops *loops
    cdef Products products
    cdef Parameter E
    cdef Py_ssize_t row       # of E, that of the first word
    cdef bint direct
    cdef Py_ssize_t columns, wide, stride, itemsize, piece
    cdef Py_ssize_t tile_rows, n_tiles, chunk, n_chunks, rows_ahead
    cdef public Py_ssize_t start_row  # where one example's update begins
    cdef int *targets         # (K,) rows of the next words, counted from the first
    cdef void *z              # (K, stride) [a | x | 1 | 0 ...]
    cdef void *p              # (n_words, columns), or one tile
    cdef void *highs          # (n_chunks, columns) maxima of the logits
    cdef void *sums           # (n_chunks, columns) of their exponentials
    cdef void *factors        # (chunks of a tile, columns)
    cdef void *keep           # (stride,)
    cdef void *memory         # the solver's
    cdef double row_max       # of one example
    cdef Totals all           # of all words
    cdef void *tile_of(self, Py_ssize_t first) noexcept nogil
    cdef void exponentials(
        self, char *p, Py_ssize_t first, Py_ssize_t start, Py_ssize_t rows,
        Py_ssize_t K) noexcept nogil
    cdef void forward_one(self) noexcept nogil
    cdef void backward_one(self, Solver solver, const Step *step) noexcept nogil
