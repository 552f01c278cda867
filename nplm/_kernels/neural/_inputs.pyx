"""Inputs, which compute x from the words of a context.

Step 1(a) of section 3.2, and 2(d) on the way back.
"""

from libc.math cimport exp
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset

from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef uint64_t context_code(
    const int *context, Py_ssize_t n, uint64_t start,
) noexcept nogil:
    """Return a hash of n words and of a number."""
    cdef uint64_t code = start
    cdef Py_ssize_t i
    for i in range(n):
        code = (code ^ <unsigned int>context[i]) * 0x9E3779B97F4A7C15ULL
        code ^= code >> 29
    return code


cdef class Contexts:
    """Distinct contexts, which have numbers in the order in which they are met.

    No twin: it is a dict.

    Parameters
    ----------
    scratch : Scratch
        Memory of the thread.
    n_words : int
        Number of words of a context.
    most : int
        Maximum number of distinct ones.
    """

    def __cinit__(self, Scratch scratch, Py_ssize_t n_words, Py_ssize_t most):
        self.n_words, self.n_slots = n_words, 4
        while self.n_slots < 2 * most:
            self.n_slots *= 2
        self.slots = <Py_ssize_t *>scratch.bytes(self.n_slots * sizeof(Py_ssize_t))
        self.words = <const int **>scratch.bytes(most * sizeof(int *))
        self.before = <Py_ssize_t *>scratch.bytes(most * sizeof(Py_ssize_t))
        self.clear()

    cdef void clear(self) noexcept nogil:
        """Forget all."""
        memset(self.slots, 0xff, self.n_slots * sizeof(Py_ssize_t))
        self.n = 0

    cdef Py_ssize_t *slot(self, const int *context, Py_ssize_t before) noexcept nogil:
        """Return where the number of a context is, or -1."""
        cdef uint64_t code = context_code(context, self.n_words, before)
        cdef Py_ssize_t place = <Py_ssize_t>(code % <uint64_t>self.n_slots)
        cdef Py_ssize_t i = self.slots[place]
        while i >= 0 and (self.before[i] != before or memcmp(
                self.words[i], context, self.n_words * sizeof(int)) != 0):
            place = (place + 1) % self.n_slots
            i = self.slots[place]
        return &self.slots[place]

    cdef Py_ssize_t number(self, const int *context, Py_ssize_t before) noexcept nogil:
        """Return the number of a context, which stays where it is if that is new."""
        cdef Py_ssize_t *slot = self.slot(context, before)
        if slot[0] < 0:
            slot[0] = self.n
            self.words[self.n], self.before[self.n] = context, before
            self.n += 1
        return slot[0]


cdef class Activations:
    """Arrays that the parts of a network pass to each other, for K examples.

    Where the state of hidden units goes on, examples with equal contexts share an x.

    No twin: functions hand each other arrays.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    scratch : Scratch
        Memory of the thread.
    batch_size : int
        Maximum number K of examples.
    scoring : bool
        Whether to score, instead of train. Scores of an example do not depend, to the
        last bit, on other examples, its position or their number: the loops add up
        the terms of each number in the same order in any block.
    n_context, n_inputs, n_hidden : int
        Number of words of a context; lengths of x and of a.
    learns_inputs : bool
        Whether training needs dL/dx.
    n_columns : int, optional
        Number of words that the network reaches back to; by default `n_context`. If
        more, the state of the hidden units goes on from one row of windows to the next.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t batch_size, bint scoring,
        Py_ssize_t n_context, Py_ssize_t n_inputs, Py_ssize_t n_hidden,
        bint learns_inputs=True, n_columns=None,
    ):
        cdef Py_ssize_t K = batch_size, k
        self.scratch = scratch
        self.tier, self.loops, self.itemsize = tier, tier.loops, tier.itemsize
        self.batch_size = K
        self.scoring, self.learns_inputs = scoring, learns_inputs
        # One example has loops of its own, except with bfloat16 products.
        alone = K == 1 and not (scoring and tier.bfloat16 != NULL)
        self.columns = 1 if alone else round_up(K, 16)
        self.n_context, self.n_inputs, self.n_hidden = n_context, n_inputs, n_hidden
        self.n_columns = n_context if n_columns is None else n_columns
        self.places = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.of = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.n_distinct = <Py_ssize_t *>scratch.bytes(sizeof(Py_ssize_t))
        for k in range(K):
            self.places[k] = self.of[k] = k
        if self.n_columns > n_context:
            self.distinct = Contexts(scratch, n_context, K)
        self.contexts = <int *>scratch.bytes(K * n_context * sizeof(int))
        self.words = <int *>scratch.bytes(K * sizeof(int))
        self.rows = <Py_ssize_t *>scratch.bytes(K * sizeof(Py_ssize_t))
        self.follows = <char *>scratch.bytes(K)
        self.x = scratch.numbers(K * n_inputs)
        self.a = scratch.numbers(K * n_hidden)
        self.dx = scratch.numbers(K * n_inputs)
        self.da = scratch.numbers(K * n_hidden)

    def apart(self, Py_ssize_t n_hidden, n_inputs=None):
        """Return activations for a part with an a of its own, of this length.

        And, with `n_inputs`, an x of its own.
        """
        cdef Activations made = Activations(
            self.tier, self.scratch, batch_size=self.batch_size, scoring=self.scoring,
            n_context=0, n_inputs=n_inputs or 0, n_hidden=n_hidden)
        made.places, made.rows, made.follows = self.places, self.rows, self.follows
        made.of, made.n_distinct = self.of, self.n_distinct
        made.contexts, made.n_context = self.contexts, self.n_context
        made.n_columns = self.n_columns
        if n_inputs is None:
            made.x, made.dx, made.n_inputs = self.x, self.dx, self.n_inputs
            made.learns_inputs = self.learns_inputs
        return made

    def positions(self, Py_ssize_t n_context):
        """Return activations for a context of `n_context` words in each window."""
        return Activations(
            self.tier, self.scratch, batch_size=self.batch_size, scoring=True,
            n_context=n_context, n_inputs=self.n_inputs, n_hidden=self.n_hidden)

    cdef void add_to_dx(self, Py_ssize_t k, const void *slopes) noexcept nogil:
        """Add dL/dx of example k."""
        cdef Py_ssize_t n = self.n_inputs
        self.loops.add(
            <char *>self.dx + self.of[k] * n * self.itemsize, slopes, n, 1)


cdef class Inputs:
    """Inputs, which compute x from the words of a context.

    Equivalent to ``reference.neural.inputs``.

    Parameters
    ----------
    features : Features
        Features of all words.
    """

    def __cinit__(self, Features features, *args, **kwargs):
        self.features = features

    cdef void visit(self, Activations at, Py_ssize_t K, Solver solver) noexcept nogil:
        """Bring the rows that K contexts read up to date, in training."""
        self.features.visit(solver, at.contexts, K * at.n_context)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Compute x for K contexts."""

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Update the features from dL/dx."""


cdef class Concatenation(Inputs):
    """The paper's x = (C(w_{t-1}), ..., C(w_{t-n+1})).

    Equivalent to ``reference.neural.concatenation``.

    Parameters
    ----------
    features : Features
        Features of all words.
    n_window : int
        Number of words of the window, n - 1.
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


cdef class DistantAverages(Concatenation):
    """Features of the window, then weighted averages of those of distant words.

    Average j of a context is the sum over its words i of ``P[j, i] C(w_{t-1-i})``,
    with trained weights P by position (nearest first).

    Equivalent to ``reference.neural.distant_averages``.

    Parameters
    ----------
    features : Features
        Features of all words.
    n_window : int
        Number of words of the window, n - 1.
    P : Parameter
        Weights by position, (n_averages, n_distant).
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(
        self, Features features, Py_ssize_t n_window, Parameter P, Scratch scratch,
        *args,
    ):
        self.P = P
        self.rows = <const void **>scratch.bytes(
            max(P.columns, P.rows) * sizeof(void *))
        self.dP = scratch.numbers(P.rows * P.columns)
        self.dC = scratch.numbers(P.columns * features.m)

    cdef void look_up(self, const int *words) noexcept nogil:
        """Find the features of a context's words."""
        cdef Py_ssize_t i
        for i in range(self.P.columns):
            self.rows[i] = self.features.of(words[i])

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, k, n_averages = self.P.rows
        cdef Py_ssize_t n_distant = self.P.columns
        cdef char *x = <char *>at.x + self.n_window * m * at.itemsize
        Concatenation.forward(self, at, K)
        for k in range(K):
            self.look_up(at.contexts + k * at.n_context)
            at.loops.combine(self.rows, n_distant, m, self.P.values, n_distant, 1,
                             n_averages, x + k * at.n_inputs * at.itemsize)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, size = m * at.itemsize, i, j, k
        cdef Py_ssize_t n_averages = self.P.rows, n_distant = self.P.columns
        cdef char *dx = <char *>at.dx + self.n_window * size
        cdef const int *words
        # P first: its gradient uses the features before the update.
        memset(self.dP, 0, n_averages * n_distant * at.itemsize)
        for k in range(K):
            self.look_up(at.contexts + k * at.n_context)
            at.loops.dots(dx + k * at.n_inputs * at.itemsize, n_averages, self.rows,
                          n_distant, m, self.dP)
        Concatenation.backward(self, at, K, solver, step)
        for k in range(K):
            words = at.contexts + k * at.n_context
            for j in range(n_averages):
                self.rows[j] = dx + k * at.n_inputs * at.itemsize + j * size
            at.loops.combine(self.rows, n_averages, m, self.P.values, 1, n_distant,
                             n_distant, self.dC)
            for i in range(n_distant):
                self.features.follow(
                    solver, step, words[i], <char *>self.dC + i * size)
        solver.vector(step, self.P, self.dP)


cdef void softmax(double *values, Py_ssize_t n) noexcept nogil:
    """Of a few numbers, in place."""
    cdef double high = values[0], total = 0
    cdef Py_ssize_t i
    for i in range(1, n):
        high = max(high, values[i])
    for i in range(n):
        values[i] = exp(values[i] - high)
        total += values[i]
    for i in range(n):
        values[i] /= total


cdef class MixedSenses(Inputs):
    """Several senses of a word, mixed according to the other words of the window.

    The features of word i gain ``sum_s p_s S_s(w_i)``, where p is the softmax of
    ``Q_s(w_i) . (the sum of C(w_j), j != i)`` (section 5.2, item 6).

    Equivalent to ``reference.neural.mixed_senses``.

    Parameters
    ----------
    features : Features
        Features of all words.
    words : Inputs
        Inputs whose x starts with the features of the words of the window.
    at : Activations
        Activations of the team.
    n_window : int
        Number of words of the window, n - 1.
    S, Q : Parameter
        Senses, and the weights that select them, (rows, n_senses * m): a row for each
        frequent word, and the last for all others.
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(
        self, Features features, Inputs words, Activations at, Py_ssize_t n_window,
        Parameter S, Parameter Q, Scratch scratch,
    ):
        cdef Py_ssize_t m = features.m, most = min(at.batch_size * n_window, S.rows)
        if S.columns % m or (S.rows, S.columns) != (Q.rows, Q.columns):
            raise ValueError(f"senses of {S.columns} and {Q.columns} numbers for {m}")
        self.words, self.S, self.Q, self.loops = words, S, Q, at.loops
        self.n_window, self.n_senses = n_window, S.columns // m
        self.size = m * at.itemsize
        self.shares = <double *>scratch.bytes(
            at.batch_size * n_window * self.n_senses * sizeof(double))
        self.total = scratch.numbers(m)
        self.others = scratch.numbers(m)
        if at.scoring:
            return
        self.slopes = <double *>scratch.bytes(self.n_senses * sizeof(double))
        self.d_total = scratch.numbers(m)
        self.d_others = scratch.numbers(m)
        self.dS = scratch.numbers(most * S.columns)
        self.dQ = scratch.numbers(most * S.columns)
        self.rows = <int *>scratch.bytes(most * sizeof(int))
        self.slot = <int *>scratch.bytes(S.rows * sizeof(int))
        memset(self.slot, 0xff, S.rows * sizeof(int))

    cdef int row(self, int word) noexcept nogil:
        """The row of a word."""
        return <int>min(<Py_ssize_t>word, self.S.rows - 1)

    cdef void add_up(self, const int *words) noexcept nogil:
        """Compute the sum of the features of a window."""
        cdef Py_ssize_t i
        memset(self.total, 0, self.size)
        for i in range(self.n_window):
            self.loops.add(self.total, self.features.of(words[i]), self.features.m, 1)

    cdef void leave_out(self, int word) noexcept nogil:
        """Compute the sum without one of the words."""
        memcpy(self.others, self.total, self.size)
        self.loops.add(self.others, self.features.of(word), self.features.m, -1)

    cdef void visit(self, Activations at, Py_ssize_t K, Solver solver) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef int row
        self.words.visit(at, K, solver)
        memset(self.dS, 0, self.n_rows * self.n_senses * self.size)
        memset(self.dQ, 0, self.n_rows * self.n_senses * self.size)
        for i in range(self.n_rows):
            self.slot[self.rows[i]] = -1
        self.n_rows = 0
        for k in range(K):
            for i in range(self.n_window):
                row = self.row(at.contexts[k * at.n_context + i])
                if self.slot[row] < 0:
                    self.slot[row] = <int>self.n_rows
                    self.rows[self.n_rows] = row
                    self.n_rows += 1
        solver.visit(self.S, self.rows, self.n_rows)
        solver.visit(self.Q, self.rows, self.n_rows)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, n = self.n_senses, i, k, s, first
        cdef char *x
        cdef const int *words
        cdef double *shares = self.shares
        self.words.forward(at, K)
        for k in range(K):
            words = at.contexts + k * at.n_context
            x = <char *>at.x + k * at.n_inputs * at.itemsize
            self.add_up(words)
            for i in range(self.n_window):
                self.leave_out(words[i])
                first = self.row(words[i]) * n * self.size
                for s in range(n):
                    shares[s] = self.loops.dot(
                        <char *>self.Q.values + first + s * self.size, self.others, m)
                softmax(shares, n)
                for s in range(n):
                    self.loops.add(
                        x, <char *>self.S.values + first + s * self.size, m, shares[s])
                x += self.size
                shares += n

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t m = self.features.m, n = self.n_senses, _, i, k, s, first, place
        cdef char *dx
        cdef const int *words
        cdef const double *shares = self.shares
        cdef double mean, slope
        for k in range(K):
            words = at.contexts + k * at.n_context
            dx = <char *>at.dx + k * at.n_inputs * at.itemsize
            self.add_up(words)
            memset(self.d_total, 0, self.size)
            for i in range(self.n_window):
                self.leave_out(words[i])
                first = self.row(words[i]) * n * self.size
                mean = 0
                for s in range(n):
                    self.slopes[s] = self.loops.dot(
                        dx, <char *>self.S.values + first + s * self.size, m)
                    mean += shares[s] * self.slopes[s]
                memset(self.d_others, 0, self.size)
                for s in range(n):
                    slope = shares[s] * (self.slopes[s] - mean)
                    place = (self.slot[self.row(words[i])] * n + s) * self.size
                    self.loops.add(<char *>self.dS + place, dx, m, shares[s])
                    self.loops.add(<char *>self.dQ + place, self.others, m, slope)
                    self.loops.add(
                        self.d_others, <char *>self.Q.values + first + s * self.size, m,
                        slope)
                # The features of a word are in the sums of all other words.
                self.loops.add(dx, self.d_others, m, -1)
                self.loops.add(self.d_total, self.d_others, m, 1)
                dx += self.size
                shares += n
            for _ in range(self.n_window):
                dx -= self.size
                self.loops.add(dx, self.d_total, m, 1)
        self.words.backward(at, K, solver, step)
        solver.scattered(step, self.S, self.rows, self.n_rows, 0, self.dS)
        # They stay until the next mini-batch.
        solver.scattered(step, self.Q, self.rows, self.n_rows, 0, self.dQ)
