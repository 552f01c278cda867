from nplm._kernels.neural._output cimport Rows
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._sampler cimport Sampler
from nplm._kernels.neural._solvers cimport Solver


cdef class Sampled(Rows):
    cdef Sampler sampler
    cdef Solver solver
    cdef Products products
    cdef Py_ssize_t n_drawn
    cdef Py_ssize_t n_visited
    cdef int *visited         # (most + K,) words: the drawn, then other next words
    cdef int *place           # (n_words,) where a word is among these, or -1
    cdef int *targets         # (K,) where the next words are among these
    cdef int *nowhere         # (K,) -1
    cdef void *tile           # (most + K, stride) their rows, then the gradients
    cdef double *shifts       # (most,) to be added to the logits of the drawn
    cdef void *p              # (n_drawn, columns) in panels: logits of the drawn, ..., dL/dy
    cdef void *factor         # (columns,) by which p becomes dL/dy
    cdef void *logits         # (columns,) of the next words
    cdef double *slope        # (K,) dL/dy of the next words
    cdef void *below          # (K, stride) dL/dz through the next words
    cdef void *of_next        # (stride, columns) the same transposed
    cdef void *nothing        # (stride,) zeros
    cdef Py_ssize_t place_in_p(self, Py_ssize_t row, Py_ssize_t k) noexcept nogil
    cdef void *tile_row(self, Py_ssize_t row) noexcept nogil
    cdef void gather(self, Py_ssize_t K) noexcept nogil
    cdef void weigh(self) noexcept nogil
    cdef void total(self, Py_ssize_t K) noexcept nogil
    cdef void find_slopes(self, Py_ssize_t K) noexcept nogil


cdef class Importance(Sampled):
    cdef double[::1] watched  # words of a draw; mean relative variance; of how many
    cdef double least         # effective samples
    cdef void *tile_max       # (columns,)
    cdef void *tile_sum       # (columns,)
    cdef double *squares      # (columns,)
    cdef void watch(self, Py_ssize_t K) noexcept nogil


cdef class NoiseContrastive(Sampled):
    cdef double n_noise
    cdef double[::1] proposal


cdef class Unnormalised(Rows):
    pass
