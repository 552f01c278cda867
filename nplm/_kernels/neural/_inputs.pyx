"""From the words of a context to x, the features that the network sees.

Step 1(a) of section 3.2, and 2(d) on the way back.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Activations:
    """What the parts of a network hand each other, for K examples.

    No twin: functions hand each other arrays.

    Parameters
    ----------
    tier : Tier
        Whose loops.
    scratch : Scratch
        Where memory is taken.
    batch_size : int
        K at most.
    scoring : bool
        To score, not to train. What scoring computes of an example depends on that
        example only, to the last bit, not on its neighbours, its place among them or
        their number: its loops add up each number's terms in one order, whatever
        block it falls into.
    n_context, n_inputs, n_hidden : int
        Words of a context; length of x and of a.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t batch_size, bint scoring,
        Py_ssize_t n_context, Py_ssize_t n_inputs, Py_ssize_t n_hidden,
    ):
        cdef Py_ssize_t K = batch_size
        self.scratch = scratch
        self.tier, self.loops, self.itemsize = tier, tier.loops, tier.itemsize
        self.batch_size = K
        self.scoring = scoring
        # Loops of their own for one example, but with products of bfloat16.
        alone = K == 1 and not (scoring and tier.bfloat16 != NULL)
        self.columns = 1 if alone else round_up(K, 16)
        self.n_context, self.n_inputs, self.n_hidden = n_context, n_inputs, n_hidden
        self.contexts = <int *>scratch.bytes(K * n_context * sizeof(int))
        self.words = <int *>scratch.bytes(K * sizeof(int))
        self.x = scratch.numbers(K * n_inputs)
        self.a = scratch.numbers(K * n_hidden)
        self.dx = scratch.numbers(K * n_inputs)
        self.da = scratch.numbers(K * n_hidden)

    def apart(self):
        """Others of the same sizes, for a part that keeps an a of its own."""
        return Activations(
            self.tier, self.scratch, batch_size=self.batch_size, scoring=self.scoring,
            n_context=0, n_inputs=self.n_inputs, n_hidden=self.n_hidden)


cdef class Inputs:
    """From the words of a context to x.

    Equivalent to ``reference.neural.inputs``.

    Parameters
    ----------
    features : Features
        Those of all words.
    """

    def __cinit__(self, Features features, *args, **kwargs):
        self.features = features

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Fill x for the contexts of K examples."""

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Let the features follow dL/dx."""


cdef class Concatenation(Inputs):
    """The paper's x = (C(w_{t-1}), ..., C(w_{t-n+1})).

    Equivalent to ``reference.neural.concatenation``.

    Parameters
    ----------
    features : Features
        Those of all words.
    n_window : int
        Words of the window, n - 1.
    """

    def __cinit__(self, Features features, Py_ssize_t n_window, *args, **kwargs):
        self.n_window = n_window

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t size = self.features.m * at.itemsize, i, k
        cdef char *x = <char *>at.x
        cdef const int *words
        for k in range(K):
            words = at.contexts + k * at.n_context
            for i in range(self.n_window):
                memcpy(x + k * at.n_inputs * at.itemsize + i * size,
                       self.features.of(words[i]), size)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t size = self.features.m * at.itemsize, i, k
        cdef char *dx = <char *>at.dx
        cdef const int *words
        for k in range(K):
            words = at.contexts + k * at.n_context
            for i in range(self.n_window):
                self.features.follow(
                    solver, step, words[i],
                    dx + k * at.n_inputs * at.itemsize + i * size)


cdef inline double number(void *numbers, Py_ssize_t i, Py_ssize_t itemsize) noexcept nogil:
    return (<float *>numbers)[i] if itemsize == 4 else (<double *>numbers)[i]


cdef class DistantAverages(Concatenation):
    """The window's features, and averages of those of words near and far.

    Average j of a context is the sum over its words i of ``P[j, i] C(w_{t-1-i})``,
    with learned weights P by position (nearest first).

    Equivalent to ``reference.neural.distant_averages``.

    Parameters
    ----------
    features : Features
        Those of all words.
    n_window : int
        Words of the window, n - 1.
    P : Parameter
        Weights by position, (n_averages, n_distant).
    scratch : Scratch
        Where memory is taken.
    """

    def __cinit__(
        self, Features features, Py_ssize_t n_window, Parameter P, Scratch scratch,
        *args,
    ):
        self.P = P
        self.dP = scratch.numbers(P.rows * P.columns)
        self.dC = scratch.numbers(features.m)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, size = m * at.itemsize, i, j, k
        cdef Py_ssize_t n_distant = self.P.columns
        cdef const int *words
        cdef char *averages
        Concatenation.forward(self, at, K)
        for k in range(K):
            words = at.contexts + k * at.n_context
            averages = (
                <char *>at.x + k * at.n_inputs * at.itemsize + self.n_window * size)
            memset(averages, 0, self.P.rows * size)
            # A word's features come from memory: once, for all averages.
            for i in range(n_distant):
                for j in range(self.P.rows):
                    at.loops.add(averages + j * size, self.features.of(words[i]), m,
                                 number(self.P.values, j * n_distant + i, at.itemsize))

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, size = m * at.itemsize, i, j, k
        cdef Py_ssize_t n_averages = self.P.rows, n_distant = self.P.columns
        cdef const int *words
        cdef char *slopes
        cdef double slope
        # P's gradient comes first, for it is of the features as they were.
        memset(self.dP, 0, n_averages * n_distant * at.itemsize)
        for k in range(K):
            words = at.contexts + k * at.n_context
            slopes = (
                <char *>at.dx + k * at.n_inputs * at.itemsize + self.n_window * size)
            for i in range(n_distant):
                for j in range(n_averages):
                    slope = at.loops.dot(
                        slopes + j * size, self.features.of(words[i]), m)
                    if at.itemsize == 4:
                        (<float *>self.dP)[j * n_distant + i] += <float>slope
                    else:
                        (<double *>self.dP)[j * n_distant + i] += slope
        Concatenation.backward(self, at, K, solver, step)
        for k in range(K):
            words = at.contexts + k * at.n_context
            slopes = (
                <char *>at.dx + k * at.n_inputs * at.itemsize + self.n_window * size)
            for i in range(n_distant):
                memset(self.dC, 0, size)
                for j in range(n_averages):
                    at.loops.add(self.dC, slopes + j * size, m,
                                 number(self.P.values, j * n_distant + i, at.itemsize))
                self.features.follow(solver, step, words[i], self.dC)
        solver.vector(step, self.P, self.dP)
