from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef struct Totals:
    # Totals of some words, which members share before the backward pass.
    double *high              # (columns,) maximum of the logits
    double *sum               # (columns,) of the exponentials relative to it
    double *target            # (columns,) the next word's logit, -inf if not here


cdef class Output:
    """The output units of one member."""

    cdef readonly Py_ssize_t first, n_words  # this member's words
    cdef readonly Py_ssize_t n_slopes
    cdef Activations at
    cdef const int *words     # (K,) the next words, or their substitutes
    cdef const Loops *loops
    cdef Py_ssize_t itemsize
    cdef Py_ssize_t columns   # of the examples' arrays: K, or more
    cdef Py_ssize_t wide      # the same in whole vectors
    cdef Totals own           # of this member's words
    cdef Totals all           # of all words
    cdef void *slopes         # dL/dz of these words, to be added up over members
    cdef void begin(self, Py_ssize_t K) noexcept nogil
    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil
    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil
    cdef void combine(
        self, const Totals *parts, int n_parts, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step) noexcept nogil
    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step) noexcept nogil
    cdef void follow(self, Solver solver, const Step *step) noexcept nogil
    cdef void arrange(
        self, const int[:] y, const Py_ssize_t[::1] index, Py_ssize_t start,
        Py_ssize_t K, int n_members, Py_ssize_t *places) noexcept nogil
    cdef void skip(self) noexcept nogil
    cdef double noise(self) noexcept nogil
    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil
    cdef double loss(
        self, const Totals *parts, int n_parts, Py_ssize_t K) noexcept nogil


cdef class Rows(Output):
    """Outputs that are rows of E, times z."""

    cdef Parameter E
    cdef Py_ssize_t row       # of E, this member's first
    cdef Py_ssize_t n_rows    # of E, this member's
    cdef bint direct
    cdef readonly Py_ssize_t n_outputs
    cdef Py_ssize_t stride
    cdef void *z              # (K, stride) [a | x | 1 | 0 ...]
    cdef void *keep           # (stride,) weight decay factors of a row
    cdef void *row_of(self, Py_ssize_t row) noexcept nogil


cdef inline double number(const void *numbers, Py_ssize_t i, Py_ssize_t size) noexcept nogil:
    return (<const float *>numbers)[i] if size == 4 else (<const double *>numbers)[i]


cdef inline void put(void *numbers, Py_ssize_t i, Py_ssize_t size, double x) noexcept nogil:
    if size == 4:
        (<float *>numbers)[i] = <float>x
    else:
        (<double *>numbers)[i] = x
