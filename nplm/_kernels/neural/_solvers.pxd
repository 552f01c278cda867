from nplm._kernels.neural._loops cimport Loops, Moments, Scratch
from nplm._kernels.neural._products cimport Products

cdef extern from "shared_updates.h" nogil:
    ctypedef struct Lock:
        int taken
    void lock_acquire(Lock *)
    void lock_release(Lock *)
    double atomic_read(const double *)
    void atomic_add(double *, double)
    bint claim(double *stamp, double now, double *old)
    void settle(double *stamp, double now)
    void lower(double *stamp, double by, double most)


cdef class Clock:
    """The time of a fit, shared by all threads that train its parameters."""

    cdef double examples      # seen, the t of the paper's schedule
    cdef double updates       # of the parameters
    # since rows were last settled:
    cdef double log_decay     # log of the product of all weight decay
    cdef double pause         # minus the number of updates: falls, as stamps do


cdef class Parameter:
    """A trained array, with the state that a solver keeps for it."""

    cdef void *values
    cdef void *first          # Adam's moments, or NULL
    cdef void *second
    cdef double *decayed      # the clock's log_decay at a row's last visit, or NULL
    cdef double *paused       # (rows, 2) the pause of its moments, and its last rate
    cdef readonly Py_ssize_t rows, columns
    cdef Py_ssize_t n_decaying  # numbers of a row that decay, before those that do not
    cdef double *made         # the clock's time when a derived row was made, or NULL
    cdef int number           # among those whose gradients are collected
    cdef Parameter next       # of them, or None
    cdef tuple arrays


cdef struct Step:
    double rate               # of the gradient of one example
    double decay              # share of the weights that this update takes
    double examples           # of this mini-batch
    double pause              # of the clock after this update
    Moments moments


cdef class Solver:
    """Updates of parameters from gradients, with the learning rate of the clock."""

    cdef const Loops *loops
    cdef Py_ssize_t itemsize
    cdef Clock clock
    cdef Lock *lock           # of the team whose updates it makes, or NULL
    cdef double learning_rate_init, learning_rate_decay, alpha, begun, span
    cdef Parameter C
    cdef Step step(self, Py_ssize_t K) noexcept nogil
    cdef void advance(self, const Step *step) noexcept nogil
    # arrays of which an update visits few rows
    cdef void catch_up(self, Parameter p, Py_ssize_t row) noexcept nogil
    cdef void visit(self, Parameter p, const int *rows, Py_ssize_t n) noexcept nogil
    cdef void visit_block(
        self, Parameter p, Py_ssize_t first, Py_ssize_t n) noexcept nogil
    cdef void decayed(
        self, const Step *step, Parameter p, Py_ssize_t first,
        Py_ssize_t n) noexcept nogil
    cdef void scattered(
        self, const Step *step, Parameter p, const int *rows, Py_ssize_t n,
        Py_ssize_t n_alike, void *gradients) noexcept nogil
    cdef void block(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        const void *g, Py_ssize_t g_stride, const void *z, Py_ssize_t n,
        void *memory) noexcept nogil
    cdef void visited(
        self, const Step *step, Parameter p, Py_ssize_t row,
        void *gradient) noexcept nogil
    cdef void dense(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        void *gradients) noexcept nogil
    # the features
    cdef void feature(
        self, const Step *step, int word, const void *gradient) noexcept nogil
    cdef void features(self, const Step *step, void *gradients) noexcept nogil
    cdef void end_features(self, const Step *step) noexcept nogil
    # whole arrays
    cdef void vector(
        self, const Step *step, Parameter p, const void *gradient) noexcept nogil
    # rows of the output units
    cdef void begin_rows(
        self, const Step *step, void *keep, Py_ssize_t n_outputs,
        Py_ssize_t stride) noexcept nogil
    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory) noexcept nogil
    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory) noexcept nogil
    cdef Py_ssize_t room(self, Py_ssize_t tile_rows, Py_ssize_t stride) noexcept nogil


cdef class SGD(Solver):
    pass


cdef class Adam(Solver):
    cdef double beta_1, beta_2, epsilon
    cdef void *gradient_C     # (words met, m), of those in slots if C is visited
    cdef int *words           # those of this mini-batch
    cdef int *slots           # (n_words,) a word's place among them, or -1
    cdef Py_ssize_t n_words
    cdef void *gradient       # of the largest whole array
    cdef void row(
        self, const Step *step, const Moments *decaying, Parameter p, Py_ssize_t row,
        char *gradient) noexcept nogil
    cdef void follow(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *keep, char *gradient) noexcept nogil
