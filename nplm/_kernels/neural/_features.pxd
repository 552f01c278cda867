cimport cython

from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Features:
    """The features of the words: how they are read and updated."""

    cdef Parameter C          # (n_words, m or more), to be read
    cdef readonly Py_ssize_t m
    cdef Py_ssize_t itemsize, size  # bytes of a number and of a row of C
    cdef const Loops *loops

    @cython.final
    cdef inline const void *of(self, int word) noexcept nogil:
        """The features of a word, (m,)."""
        return <char *>self.C.values + word * self.size

    cdef void visit(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil
    cdef void follow(
        self, Solver solver, const Step *step, int word,
        const void *gradient) noexcept nogil
    cdef void end(self, Solver solver, const Step *step) noexcept nogil


cdef class Fixed(Features):
    pass


cdef class Composed(Features):
    cdef Parameter own, G
    cdef tuple arrays
    cdef const Py_ssize_t *start  # (n_words + 1,) of a word's parts
    cdef const int *parts         # their rows of G
    cdef const double *weights    # their weights
    cdef int *slot            # (n_words,) a word's place in this mini-batch, or -1
    cdef int *slot_of_part    # (rows of G,)
    cdef int *words           # those of this mini-batch
    cdef int *parts_here
    cdef Py_ssize_t n_words, n_parts
    cdef void *d_own          # (places, columns of own) their gradients
    cdef void *dG             # (places, m)
    cdef void note(self, int word) noexcept nogil
    cdef void forget(self) noexcept nogil
    cdef void meet(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil
    cdef void make(
        self, Solver solver, Py_ssize_t first, Py_ssize_t first_part) noexcept nogil


cdef class Shared(Composed):
    pass


cdef class Gatherer(Solver):
    cdef Composed features
    cdef Solver solver        # updates from the gathered gradients
