from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural.outputs._output cimport Totals


cdef class Chunks:
    """Exponentials of logits, and their totals, by chunks of words."""

    cdef const Loops *loops
    cdef Py_ssize_t itemsize, columns, wide
    cdef Py_ssize_t size, n   # words of a chunk, and chunks
    cdef int *targets         # (K,) next words, counted from the first
    cdef void *highs          # (n, wide) maxima of the logits
    cdef void *sums           # (n, wide) of their exponentials
    cdef void *factors        # (chunks of a tile, columns)
    cdef void begin(
        self, const int *words, Py_ssize_t first, Py_ssize_t K,
        const Totals *own) noexcept nogil
    cdef void add(
        self, char *p, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t K,
        const Totals *own) noexcept nogil
    cdef void total(self, Py_ssize_t K, const Totals *own) noexcept nogil
    cdef void share(
        self, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t K,
        const Totals *all) noexcept nogil
