from libc.stdint cimport uint64_t


cdef class Sampler:
    """Words sampled from a proposal; the arrays are those of the last sample."""

    cdef readonly Py_ssize_t n_words, most
    cdef Py_ssize_t n          # words of a sample
    cdef int *words            # (most,) each once
    cdef double *weights       # (most,) 1 / inclusion probability
    cdef double *noise         # (most,) 1 - inclusion probability
    cdef double *q             # (most,) their probability in the proposal
    cdef uint64_t[::1] state   # (4,) the generator's
    cdef int[::1] order        # words by falling probability
    cdef double[::1] falling   # (n_words,) their probabilities
    cdef double[::1] rest      # (n_words,) sum of those from here on
    cdef Py_ssize_t n_certain  # words in every sample: the first in order
    cdef double[::1] upto      # (n_words,) cumulative inclusion probabilities
    cdef Py_ssize_t[::1] guide  # (most + 1,) where each stratum begins
    cdef void prepare(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t draw(self) noexcept nogil
