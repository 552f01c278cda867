from libc.stdint cimport uint64_t


cdef class Sampler:
    """Words drawn from a proposal; its arrays are of the words drawn last."""

    cdef readonly Py_ssize_t n_words, most
    cdef Py_ssize_t n          # words of a draw
    cdef int *words            # (most,) each once
    cdef double *weights       # (most,) 1 over the chance of being drawn
    cdef double *noise         # (most,) 1 - the chance of being drawn
    cdef double *q             # (most,) their probability in the proposal
    cdef uint64_t[::1] state   # (4,) the generator's
    cdef int[::1] order        # words by falling probability
    cdef double[::1] falling   # (n_words,) their probabilities
    cdef double[::1] rest      # (n_words,) sum of those from here on
    cdef Py_ssize_t n_certain  # words in every draw: the first in order
    cdef double[::1] upto      # (n_words,) sum of the chances up to and with a word
    cdef Py_ssize_t[::1] guide # (most + 1,) where each stratum begins
    cdef void prepare(self, Py_ssize_t n) noexcept nogil
    cdef Py_ssize_t draw(self) noexcept nogil
