from nplm._kernels.neural.hidden._hidden cimport Hidden, Weighted
from nplm._kernels.neural._inputs cimport Activations, Contexts, Inputs
from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._products cimport Recurrence
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Cell(Hidden):
    """Cells of several texts, which all take a step at once."""

    cdef Parameter d, V
    cdef Weighted by_H, by_V  # by_V: of all steps at once, in updates
    cdef Recurrence by_V_before
    cdef const Loops *loops
    cdef Py_ssize_t h, n_sums, itemsize  # n_sums: 3 h
    cdef void *rows           # (K, n_sums) sums of all examples; gates; slopes
    # of a step, in panels: a column for each text
    cdef void *sums           # (n_sums, columns), unless `rows` are in panels
    cdef void *recurrent      # V a_before; what comes through V, (h, columns)
    cdef void *a              # (h, columns)
    cdef void *c
    cdef void *row(self, void *rows, Py_ssize_t k) noexcept nogil
    cdef void clear(
        self, void *panels, Py_ssize_t rows, Py_ssize_t column) noexcept nogil
    cdef void step(
        self, void *sums, Py_ssize_t n, void *a_before, void *c_before, void *a,
        void *c) noexcept nogil


cdef class Continuing(Cell):
    cdef Py_ssize_t n_carried  # runs whose state is kept for the next mini-batch
    cdef unsigned char[:, ::1] memory
    cdef Py_ssize_t[::1] last
    cdef Py_ssize_t *starts    # (runs,) the first example of each run, longest first
    cdef Py_ssize_t *lengths   # (runs,)
    cdef Py_ssize_t *numbers   # (runs,) of the runs, from the first of the mini-batch
    cdef Py_ssize_t *order     # (K,) the examples, step by step
    cdef Py_ssize_t *steps     # (steps + 1,) the first of each step among these
    cdef Py_ssize_t n_steps
    cdef bint even             # `whole`, and all runs have one length
    cdef bint whole            # steps are whole panels, and `rows` and these are in panels:
    cdef void *activations     # (K, h) a after each example
    cdef void *states          # and c
    cdef void *distinct        # (n_distinct, n_sums) H x of the contexts; slopes
    cdef void *step_rows       # (columns, n_sums) those of the examples of a step
    # in the order of steps
    cdef void *before          # (K, h) a before each example; if `even`, then the last a
    cdef void *c_first         # (runs, h) c before the first step
    cdef void *da
    # of a step, in panels
    cdef void *slopes_a        # (h, columns)
    cdef void *c_before
    cdef void *dc
    cdef void *dd_panel        # (n_sums, 16)
    cdef void *dd              # (16, n_sums)
    cdef bint begins(self, Activations at, Py_ssize_t k) noexcept nogil
    cdef void find_order(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef void *before_step(
        self, Activations at, Py_ssize_t t, void *after, void *panels) noexcept nogil
    cdef void *sums_of(
        self, Activations at, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void add_slopes(
        self, Activations at, void *sums, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void find_state(self, Activations at) noexcept nogil
    cdef void *load(
        self, void *array, Py_ssize_t rows, Py_ssize_t n, void *panels) noexcept nogil
    cdef void store(
        self, void *panels, Py_ssize_t rows, Py_ssize_t n, void *array) noexcept nogil
    cdef void take_row(self, void *array, Py_ssize_t place, void *to) noexcept nogil
    cdef void leave_state(self, Activations at) noexcept nogil


cdef class Windows(Cell):
    cdef Inputs inputs
    cdef Activations positions
    cdef Py_ssize_t n_window  # words of the context of a position
    cdef Py_ssize_t n_words   # words of a window
    cdef Py_ssize_t *order    # (K,) the windows, those with most contexts first
    cdef Py_ssize_t *lengths  # (K,) their numbers of contexts
    cdef Py_ssize_t *starts   # (n_words + 2,)
    # of a step: windows with the same words so far are one
    cdef Py_ssize_t *of       # (K,) which of them a window is
    cdef Contexts here        # after which of the step before
    cdef void *a_rows         # (K, h)
    cdef void *c_rows
    cdef void *some_rows
    cdef Contexts known       # of the steps so far, whose H x are known
    cdef Py_ssize_t most_known
    cdef int *known_words     # (most_known, n_window)
    cdef void *known_sums     # (most_known, n_sums)
    cdef Py_ssize_t n_contexts(self, Activations at, Py_ssize_t k) noexcept nogil
    cdef void sort(self, Activations at, Py_ssize_t K) noexcept nogil
    cdef Py_ssize_t group(self, Activations at, Py_ssize_t t) noexcept nogil
    cdef void take_state(self, Py_ssize_t n, Py_ssize_t n_before) noexcept nogil
    cdef int *context(self, Activations at, Py_ssize_t i, Py_ssize_t t) noexcept nogil
    cdef void learn(self, Activations at, Py_ssize_t t) noexcept nogil
    cdef void take_sums(self, Activations at, Py_ssize_t t, Py_ssize_t n) noexcept nogil
