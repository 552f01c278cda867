from libc.stdint cimport uint64_t

from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural._loops cimport Loops, Scratch, Tier
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef uint64_t context_code(
    const int *context, Py_ssize_t n, uint64_t start) noexcept nogil


cdef class Contexts:
    """Distinct contexts, which have numbers in the order in which they are met."""

    cdef Py_ssize_t n         # so far
    cdef Py_ssize_t n_words, n_slots
    cdef const int **words    # (n,) those of each
    cdef Py_ssize_t *before   # (n,) what each continues, another number
    cdef Py_ssize_t *slots    # (n_slots,) a hash table of the numbers
    cdef void clear(self) noexcept nogil
    cdef Py_ssize_t *slot(self, const int *context, Py_ssize_t before) noexcept nogil
    cdef Py_ssize_t number(self, const int *context, Py_ssize_t before) noexcept nogil


cdef class Activations:
    """Arrays that the parts of a network pass to each other, for K examples."""

    cdef Scratch scratch      # memory of all parts of a team
    cdef Tier tier
    cdef const Loops *loops
    cdef readonly bint scoring, learns_inputs
    cdef readonly Py_ssize_t batch_size, columns, itemsize
    cdef readonly Py_ssize_t n_context, n_inputs, n_hidden, n_columns
    cdef Py_ssize_t *places   # (K,) of these examples in the mini-batch
    cdef Contexts distinct    # if hidden units have a state: equal contexts are one
    cdef Py_ssize_t *of       # (K,) the number of the context of each example
    cdef Py_ssize_t *n_distinct
    cdef int *contexts        # (n_distinct, n_context), nearest word first
    cdef int *words           # (K,) next words
    cdef Py_ssize_t *rows     # (K,) the windows
    cdef char *follows        # (K,) whether a window follows the one before it, in X
    cdef void *x              # (n_distinct, n_inputs) word features
    cdef void *a              # (K, n_hidden) hidden activations
    cdef void *dx             # their gradients
    cdef void *da
    cdef void add_to_dx(self, Py_ssize_t k, const void *slopes) noexcept nogil


cdef class Inputs:
    """Inputs, which compute x from the words of a context."""

    cdef Features features
    cdef void visit(self, Activations at, Py_ssize_t K, Solver solver) noexcept nogil
    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver,
        const Step *step) noexcept nogil


cdef class Concatenation(Inputs):
    cdef Py_ssize_t n_window


cdef class DistantAverages(Concatenation):
    cdef Parameter P
    cdef const void **rows    # of the features of a context's words
    cdef void *dP
    cdef void *dC             # of these words
    cdef void look_up(self, const int *words) noexcept nogil


cdef class MixedSenses(Inputs):
    cdef Inputs words         # the inputs without senses
    cdef Parameter S, Q
    cdef const Loops *loops
    cdef Py_ssize_t n_window, n_senses, size
    cdef int *slot            # (rows of S,) a row's place in this mini-batch, or -1
    cdef int *rows            # those of this mini-batch
    cdef Py_ssize_t n_rows
    cdef double *shares       # (K, n_window, n_senses)
    cdef double *slopes       # (n_senses,)
    cdef void *total          # (m,) of the window's features
    cdef void *others         # without those of one word
    cdef void *d_total        # their gradients
    cdef void *d_others
    cdef void *dS             # (places, columns of S)
    cdef void *dQ
    cdef int row(self, int word) noexcept nogil
    cdef void add_up(self, const int *words) noexcept nogil
    cdef void leave_out(self, int word) noexcept nogil
