from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural.outputs._output cimport Totals
from nplm._kernels.neural.outputs._sampler cimport Sampler


cdef class Estimate:
    """Noise samples of a mini-batch, and the gradient estimated from their logits."""

    cdef Sampler sampler
    cdef const Loops *loops
    cdef Py_ssize_t itemsize, columns, wide
    cdef Py_ssize_t n_drawn
    cdef Py_ssize_t n_visited
    cdef int *visited         # (most + K,) words: noise samples, then other next words
    cdef int *place           # (n_words,) where a word is among these, or -1
    cdef int *targets         # (K,) where the next words are among these
    cdef double *shifts       # (most,) to be added to the logits of noise samples
    cdef void *factor         # (columns,) by which their p becomes dL/dy
    cdef double *slope        # (K,) dL/dy of the next words
    cdef double noise         # relative variance of the sums, of all examples
    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil
    cdef Py_ssize_t place_in_p(self, Py_ssize_t row, Py_ssize_t k) noexcept nogil
    cdef void draw(self, const int *words, Py_ssize_t K) noexcept nogil
    cdef void weigh(self) noexcept nogil
    cdef void total(self, Py_ssize_t K, void *p, const Totals *own) noexcept nogil
    cdef void find_slopes(
        self, const int *words, Py_ssize_t K, void *p, const Totals *own,
        const Totals *all) noexcept nogil


cdef class Importance(Estimate):
    cdef double[::1] watched  # number of samples; mean relative variance; its count
    cdef double least         # minimum effective samples
    cdef void *tile_max       # (columns,)
    cdef void *tile_sum       # (columns,)
    cdef double *squares      # (columns,)
    cdef double variance(self, Py_ssize_t K, void *p, const Totals *own) noexcept nogil


cdef class NoiseContrastive(Estimate):
    cdef double n_noise
    cdef double[::1] proposal
