"""The features C of the words: reading and updates.

In each mini-batch, `visit` brings the rows to be read up to date, `follow` takes the
gradient of one of them, and `end` updates the arrays that they are computed from.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport (
    Parameter, Solver, Step, atomic_read, claim, settle,
)


cdef class Features:
    """Independent features of each word, as in the paper.

    No twin: it is an array.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    C : Parameter
        Features of all words, (n_words, m); further columns are ignored.
    m : int
        Number of features of a word.
    """

    def __cinit__(self, Tier tier, Parameter C, Py_ssize_t m, *args, **kwargs):
        self.loops, self.itemsize = tier.loops, tier.itemsize
        self.C, self.m, self.size = C, m, C.columns * tier.itemsize

    cdef void visit(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil:
        """Bring words up to date before they are read; words may repeat."""
        solver.visit(self.C, words, n)

    cdef void follow(
        self, Solver solver, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        """Take the gradient of a visited word; words may repeat."""
        solver.feature(step, word, gradient)

    cdef void end(self, Solver solver, const Step *step) noexcept nogil:
        """Finish the mini-batch, after all gradients."""
        solver.end_features(step)


cdef class Fixed(Features):
    """Given features, which training does not change.

    No twin: nothing happens.
    """

    cdef void visit(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil:
        """Do nothing: the features do not change."""

    cdef void follow(
        self, Solver solver, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        """Ignore the gradient."""

    cdef void end(self, Solver solver, const Step *step) noexcept nogil:
        """Do nothing."""


cdef class Composed(Features):
    """Own features of a word plus those of its parts (section 5.2, item 4).

    C(w) = own(w) + the sum over the parts f of w of weight(w, f) G(f). A mini-batch
    computes and updates only its words and their parts.

    Equivalent to ``reference.neural.composed``.

    Parameters
    ----------
    tier, C, m
        As in `Features`; C is written.
    own : Parameter
        Own features of each word, (n_words, columns of C).
    G : Parameter
        Features of the parts, (n_parts, m).
    start : ndarray of intp, shape (n_words + 1,)
        Start of the parts of each word in the next two.
    parts : ndarray of int32
        Rows of G.
    weights : ndarray of float64
        Weights of the parts.
    scratch : Scratch
        Memory of the thread.
    most : int
        Maximum number of words of a mini-batch.
    """

    def __cinit__(
        self, Tier tier, Parameter C, Py_ssize_t m, Parameter own, Parameter G,
        const Py_ssize_t[::1] start, const int[::1] parts, const double[::1] weights,
        Scratch scratch, *, Py_ssize_t most,
    ):
        cdef Py_ssize_t n_words = C.rows, n_parts = G.rows
        self.own, self.G, self.arrays = own, G, (start, parts, weights)
        if own.rows != n_words or own.columns != C.columns or G.columns != m:
            raise ValueError("features of other shapes than those of their words")
        if len(start) != n_words + 1 or len(parts) != len(weights):
            raise ValueError(f"{len(start)} starts for {n_words} words")
        self.start = &start[0]
        self.parts = &parts[0] if len(parts) else NULL
        self.weights = &weights[0] if len(parts) else NULL
        most = min(most, n_words)
        self.slot = <int *>scratch.bytes(n_words * sizeof(int))
        self.slot_of_part = <int *>scratch.bytes(n_parts * sizeof(int))
        self.words = <int *>scratch.bytes(most * sizeof(int))
        self.parts_here = <int *>scratch.bytes(n_parts * sizeof(int))
        memset(self.slot, 0xff, n_words * sizeof(int))
        memset(self.slot_of_part, 0xff, n_parts * sizeof(int))
        self.d_own = scratch.numbers(most * C.columns)
        self.dG = scratch.numbers(n_parts * m)

    cdef void note(self, int word) noexcept nogil:
        """Add a word and its parts to the slots of this mini-batch, once."""
        cdef Py_ssize_t i
        cdef int part
        if self.slot[word] >= 0:
            return
        self.slot[word] = <int>self.n_words
        self.words[self.n_words] = word
        self.n_words += 1
        for i in range(self.start[word], self.start[word + 1]):
            part = self.parts[i]
            if self.slot_of_part[part] < 0:
                self.slot_of_part[part] = <int>self.n_parts
                self.parts_here[self.n_parts] = part
                self.n_parts += 1

    cdef void forget(self) noexcept nogil:
        """Clear all slots, and their gradients."""
        cdef Py_ssize_t i
        memset(self.d_own, 0, self.n_words * self.size)
        memset(self.dG, 0, self.n_parts * self.m * self.itemsize)
        for i in range(self.n_words):
            self.slot[self.words[i]] = -1
        for i in range(self.n_parts):
            self.slot_of_part[self.parts_here[i]] = -1
        self.n_words = self.n_parts = 0

    cdef void meet(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil:
        """Add words to the slots, and compute their features."""
        cdef Py_ssize_t first = self.n_words, first_part = self.n_parts, i
        for i in range(n):
            self.note(words[i])
        self.make(solver, first, first_part)

    cdef void make(
        self, Solver solver, Py_ssize_t first, Py_ssize_t first_part,
    ) noexcept nogil:
        """Compute C of the words in slots, from given slots of words and parts on."""
        cdef Py_ssize_t i, j, size = self.m * self.itemsize
        cdef double now, then
        cdef int word
        cdef char *made
        solver.visit(self.own, self.words + first, self.n_words - first)
        solver.visit(self.G, self.parts_here + first_part, self.n_parts - first_part)
        if self.C.values == self.own.values:  # there are no parts
            return
        now = -atomic_read(&solver.clock.updates)
        for i in range(first, self.n_words):
            word = self.words[i]
            # Threads may meet a word together: the first makes it, others wait.
            if not claim(&self.C.made[word], now, &then):
                continue
            made = <char *>self.C.values + word * self.size
            memcpy(made, <char *>self.own.values + word * self.size, self.size)
            for j in range(self.start[word], self.start[word + 1]):
                self.loops.add(made, <char *>self.G.values + self.parts[j] * size,
                               self.m, self.weights[j])
            settle(&self.C.made[word], now)

    cdef void visit(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil:
        self.forget()
        self.meet(solver, words, n)

    cdef void follow(
        self, Solver solver, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        self.loops.add(<char *>self.d_own + self.slot[word] * self.size, gradient,
                       self.m, 1)

    cdef void end(self, Solver solver, const Step *step) noexcept nogil:
        cdef Py_ssize_t i, j, size = self.m * self.itemsize
        cdef int word
        for i in range(self.n_words):
            word = self.words[i]
            for j in range(self.start[word], self.start[word + 1]):
                self.loops.add(
                    <char *>self.dG + self.slot_of_part[self.parts[j]] * size,
                    <char *>self.d_own + i * self.size, self.m, self.weights[j])
        solver.scattered(step, self.own, self.words, self.n_words, 0, self.d_own)
        # They stay until the next mini-batch.
        solver.scattered(step, self.G, self.parts_here, self.n_parts, 0, self.dG)


cdef class Shared(Composed):
    """Features that are also the output weights: each update changes all words.

    A row is [C | b | 0 ...]: the output bias is a column of `own`, without parts.

    Equivalent to ``reference.neural.composed``.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `Composed`; ``most`` is the number of words.
    """

    def __init__(self, *args, **kwargs):
        cdef Py_ssize_t word
        for word in range(self.C.rows):
            self.note(<int>word)

    cdef void visit(self, Solver solver, const int *words, Py_ssize_t n) noexcept nogil:
        memset(self.d_own, 0, self.n_words * self.size)
        memset(self.dG, 0, self.n_parts * self.m * self.itemsize)
        self.make(solver, 0, 0)


cdef class Gatherer(Solver):
    """Add the gradients of tied output rows to those of the features.

    It has the interface of a solver. The gradients of the inputs come later, and the
    features take the sum. With `Shared`, all rows have gradients; an output of few rows
    visits them, and their gradients are scattered.

    No twin: functions hand each other gradients.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `Solver`.
    features : Composed
        Features that collect the gradients.
    solver : Solver
        Solver that updates the features.
    """

    def __cinit__(self, *args, Composed features, Solver solver, **kwargs):
        self.features, self.solver = features, solver

    cdef void visit(self, Parameter p, const int *rows, Py_ssize_t n) noexcept nogil:
        self.features.meet(self.solver, rows, n)

    cdef void scattered(
        self, const Step *step, Parameter p, const int *rows, Py_ssize_t n,
        Py_ssize_t n_alike, void *gradients,
    ) noexcept nogil:
        cdef Py_ssize_t size = self.features.size, i
        for i in range(n):
            self.loops.add(
                <char *>self.features.d_own + self.features.slot[rows[i]] * size,
                <char *>gradients + i * size, p.columns, 1)

    cdef void begin_rows(
        self, const Step *step, void *keep, Py_ssize_t n_outputs, Py_ssize_t stride,
    ) noexcept nogil:
        self.loops.fill(keep, stride, 1, 1)

    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory,
    ) noexcept nogil:
        products.update(
            <char *>self.features.d_own + first * self.features.size, rows, g,
            <Py_ssize_t>step.examples, 1, keep)

    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory,
    ) noexcept nogil:
        cdef Py_ssize_t at = first * self.features.size + column * self.itemsize
        self.loops.row_updates(
            <char *>E.values + at, rows, E.columns, n, z, g, 0, keep, dz)
        self.loops.outer(
            g, rows, z, n, 1, <char *>self.features.d_own + at, E.columns)
