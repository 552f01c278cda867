"""Solvers: updates of parameters from gradients, with schedules and weight decay.

A gradient that is a product is passed as its factors, so that a solver that does not
need the gradient itself updates in one pass over the parameters, and others compute
it tile by tile. Gradients are summed over a mini-batch of K examples.
"""

from libc.math cimport INFINITY, expm1, log1p, pow, sqrt
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from nplm._kernels.neural._loops cimport Moments, Scratch, Tier
from nplm._kernels.neural._products cimport Products


cdef class Clock:
    """The time of a fit, shared by all threads that train its parameters.

    No twin: the twins of the solvers count for themselves.

    Parameters
    ----------
    examples, updates : float
        Numbers of examples seen and of updates made.
    log_decay, pause : float, default=0
        Log of the product of all weight decay since all rows were up to date, and
        minus the number of updates since then.
    """

    def __cinit__(
        self, double examples=0, double updates=0, double log_decay=0, double pause=0,
    ):
        self.set(examples, updates, log_decay, pause)

    @property
    def n_examples(self):
        """Number of examples seen."""
        return int(atomic_read(&self.examples))

    def read(self):
        """Return the arguments of this class."""
        return self.examples, self.updates, self.log_decay, self.pause

    def set(self, double examples, double updates, double log_decay, double pause):
        """Set what `read` returns."""
        self.examples, self.updates = examples, updates
        self.log_decay, self.pause = log_decay, pause


cdef class Parameter:
    """A trained array, with the state that a solver keeps for it.

    No twin: it is an array.

    Parameters
    ----------
    values : ndarray, shape (rows, columns) or (columns,)
        C-contiguous.
    first, second : ndarray, optional
        Moments of Adam, of the same shape.
    decayed : ndarray of float64, shape (rows,), optional
        The ``log_decay`` of the clock at the last visit of each row, if weight decay
        is lazy.
    paused : ndarray of float64, shape (rows, 2), optional
        The ``pause`` of the clock up to which the moments of each row are up to date,
        and the rate of its last update, if rows without gradients move later.
    n_decaying : int, optional
        Number of columns with weight decay, which come first; all by default.
    made : ndarray of float64, shape (rows,), optional
        Minus the number of updates when each row was computed, if it is derived from
        other parameters.
    """

    def __cinit__(
        self, values, first=None, second=None, *, double[::1] decayed=None,
        double[:, ::1] paused=None, double[::1] made=None, n_decaying=None,
    ):
        for array in (values, first, second):
            if array is not None and not array.flags.c_contiguous:
                raise ValueError("a parameter must be C-contiguous")
            if array is not None and array.shape != values.shape:
                raise ValueError(
                    f"moments of shape {array.shape} for a parameter of {values.shape}")
        self.arrays = values, first, second, decayed, paused, made
        self.rows = values.shape[0] if values.ndim == 2 else 1
        self.columns = values.shape[values.ndim - 1]
        self.n_decaying = self.columns if n_decaying is None else n_decaying
        if not 0 <= self.n_decaying <= self.columns:
            raise ValueError(f"n_decaying={n_decaying} of {self.columns} numbers")
        for n in [len(times) for times in self.arrays[3:] if times is not None]:
            if n != self.rows:
                raise ValueError(f"{n} times for {self.rows} rows")
        if made is not None and len(made) > 0:
            self.made = &made[0]
        if decayed is not None and len(decayed) > 0:  # an empty array has no address
            self.decayed = &decayed[0]
        if paused is not None:
            if (paused.shape[0], paused.shape[1]) != (self.rows, 2) or decayed is None:
                raise ValueError(f"{len(paused)} pauses for {self.rows} rows")
            if len(paused) > 0:
                self.paused = &paused[0, 0]
        self.values = <void *><uintptr_t>values.ctypes.data
        self.first = NULL if first is None else <void *><uintptr_t>first.ctypes.data
        self.second = NULL if second is None else <void *><uintptr_t>second.ctypes.data


cdef class Solver:
    """Base of the solvers, with the schedule e_t = e_0 / (1 + r t) of the paper.

    Or the learning rate falls linearly to 0 from t = `begun` to `begun` + `span`.

    Equivalent to ``reference.neural.Solver``.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    clock : Clock
        Clock of all threads that train.
    C : Parameter or None
        The features, if each word has its own.
    learning_rate_init, learning_rate_decay, alpha : float
        e_0, r, and the weight decay.
    begun, span : float
        See above; with inf it does not fall.
    """

    def __cinit__(
        self, Tier tier, Clock clock, Parameter C, *args, double learning_rate_init,
        double learning_rate_decay, double alpha, double begun, double span, **kwargs,
    ):
        self.loops, self.itemsize = tier.loops, tier.itemsize
        self.clock, self.C = clock, C
        self.learning_rate_init = learning_rate_init
        self.learning_rate_decay = learning_rate_decay
        self.alpha, self.begun, self.span = alpha, begun, span

    cdef Step step(self, Py_ssize_t K) noexcept nogil:
        """Return the step of a mini-batch of K examples, at the time of the clock."""
        cdef Step step
        cdef double t = atomic_read(&self.clock.examples)
        step.rate = self.learning_rate_init / (1 + self.learning_rate_decay * t)
        step.rate *= max(0, 1 - (t - self.begun) / self.span)
        step.decay = step.rate * self.alpha * K
        step.examples = K
        step.pause = atomic_read(&self.clock.pause) - 1
        step.moments = Moments(0, 0, 0, 0)
        return step

    cdef void advance(self, const Step *step) noexcept nogil:
        """Advance the clock by one mini-batch."""
        atomic_add(&self.clock.examples, step.examples)
        atomic_add(&self.clock.updates, 1)
        atomic_add(&self.clock.log_decay, log1p(-step.decay))
        atomic_add(&self.clock.pause, -1)

    cdef void catch_up(self, Parameter p, Py_ssize_t row) noexcept nogil:
        """Apply the outstanding weight decay of a row.

        Threads may visit a row together: the first applies it, others wait.
        """
        cdef double now = atomic_read(&self.clock.log_decay), then
        if claim(&p.decayed[row], now, &then):
            self.loops.fade(<char *>p.values + row * p.columns * self.itemsize,
                            p.n_decaying, -expm1(now - then))
            settle(&p.decayed[row], now)

    cdef void visit(self, Parameter p, const int *rows, Py_ssize_t n) noexcept nogil:
        """Bring rows up to date before they are read."""
        cdef Py_ssize_t i
        if p.decayed == NULL or (self.alpha == 0 and p.paused == NULL):
            return
        lock_acquire(self.lock)
        for i in range(n):
            self.catch_up(p, rows[i])
        lock_release(self.lock)

    cdef void visit_block(
        self, Parameter p, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """`visit` consecutive rows."""
        cdef Py_ssize_t row
        if p.decayed == NULL or (self.alpha == 0 and p.paused == NULL):
            return
        lock_acquire(self.lock)
        for row in range(first, first + n):
            self.catch_up(p, row)
        lock_release(self.lock)

    cdef void decayed(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """Record that `tile` or `rows` applied this step's decay to visited rows."""
        cdef double by = log1p(-step.decay)
        cdef Py_ssize_t row
        if p.decayed == NULL:
            return
        for row in range(first, first + n):
            lower(&p.decayed[row], by, INFINITY)

    cdef void scattered(
        self, const Step *step, Parameter p, const int *rows, Py_ssize_t n,
        Py_ssize_t n_alike, void *gradients,
    ) noexcept nogil:
        """Update visited rows from their gradients (n, columns), each once.

        The gradients are overwritten. Other rows only decay, later. All members of a
        team visit the first `n_alike` rows, in the same order.
        """
        cdef Py_ssize_t i
        for i in range(n):
            self.visited(step, p, rows[i],
                         <char *>gradients + i * p.columns * self.itemsize)

    cdef void block(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        const void *g, Py_ssize_t g_stride, const void *z, Py_ssize_t n, void *memory,
    ) noexcept nogil:
        """Update consecutive visited rows from the gradient ``g.T @ z``.

        g has n rows, `g_stride` apart, and so has z; `memory` can hold the gradient.
        """
        cdef Py_ssize_t i
        self.loops.product(
            True, False, rows, p.columns, n, 1, g, g_stride, z, p.columns, 0, memory,
            p.columns)
        for i in range(rows):
            self.visited(step, p, first + i,
                         <char *>memory + i * p.columns * self.itemsize)

    cdef void visited(
        self, const Step *step, Parameter p, Py_ssize_t row, void *gradient,
    ) noexcept nogil:
        """Update one visited row from its gradient, which is overwritten."""

    cdef void dense(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        void *gradients,
    ) noexcept nogil:
        """Update rows that every step visits from their gradients (rows, columns).

        The gradients are overwritten.
        """

    cdef void feature(
        self, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        """Take the gradient of the features of a word, (m,); words may repeat."""

    cdef void features(self, const Step *step, void *gradients) noexcept nogil:
        """Take the gradients (n_words, m) of all features as output weights."""

    cdef void end_features(self, const Step *step) noexcept nogil:
        """Finish the mini-batch, after all gradients of features."""

    cdef void vector(
        self, const Step *step, Parameter p, const void *gradient,
    ) noexcept nogil:
        """Update an array without weight decay, such as a bias."""

    cdef void begin_rows(
        self, const Step *step, void *keep, Py_ssize_t n_outputs, Py_ssize_t stride,
    ) noexcept nogil:
        """Fill the weight decay factors of an output row, (stride,)."""
        self.loops.fill(keep, stride, 1, 1)
        self.loops.fill(keep, n_outputs - 1, 1, 1 - step.decay)  # all but the bias

    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory,
    ) noexcept nogil:
        """Update a tile of output rows from the gradient ``g @ z``."""

    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory,
    ) noexcept nogil:
        """For one example, ``dz += g @ E``; then update from ``outer(g, z)``.

        Of n columns of E, from `column` on.
        """

    cdef Py_ssize_t room(self, Py_ssize_t tile_rows, Py_ssize_t stride) noexcept nogil:
        """Return the size of `memory` that updates of output rows need."""
        return 0


cdef class SGD(Solver):
    """Stochastic gradient ascent, as in the paper (sections 2 and 3.2).

    Gradients are summed, so the learning rate is that of one example. Each example
    decays every weight by ``rate * alpha``; the features lazily, because most words
    are not in a window.

    Equivalent to ``reference.neural.SGD``.
    """

    cdef void visited(
        self, const Step *step, Parameter p, Py_ssize_t row, void *gradient,
    ) noexcept nogil:
        cdef Py_ssize_t fixed = p.n_decaying * self.itemsize
        cdef char *values = <char *>p.values + row * p.columns * self.itemsize
        # Outstanding decay also applies to this gradient.
        self.loops.add(values, gradient, p.n_decaying, step.rate / (1 - step.decay))
        self.loops.add(values + fixed, <char *>gradient + fixed,
                       p.columns - p.n_decaying, step.rate)

    cdef void dense(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        void *gradients,
    ) noexcept nogil:
        cdef Py_ssize_t size = p.columns * self.itemsize, r
        cdef char *values = <char *>p.values + first * size
        for r in range(rows):
            self.loops.fade(values + r * size, p.n_decaying, step.decay)
        self.loops.add(values, gradients, rows * p.columns, step.rate)

    cdef void features(self, const Step *step, void *gradients) noexcept nogil:
        self.dense(step, self.C, 0, self.C.rows, gradients)

    cdef void feature(
        self, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        # Outstanding decay of the rows of C also applies to this gradient.
        cdef Py_ssize_t m = self.C.columns
        self.loops.add(<char *>self.C.values + word * m * self.itemsize, gradient, m,
                       step.rate / (1 - step.decay))

    cdef void vector(
        self, const Step *step, Parameter p, const void *gradient,
    ) noexcept nogil:
        self.loops.add(p.values, gradient, p.rows * p.columns, step.rate)

    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory,
    ) noexcept nogil:
        products.update(<char *>E.values + first * E.columns * self.itemsize, rows, g,
                        <Py_ssize_t>step.examples, step.rate, keep)

    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory,
    ) noexcept nogil:
        self.loops.row_updates(
            <char *>E.values + (first * E.columns + column) * self.itemsize, rows,
            E.columns, n, z, g, step.rate, keep, dz)


cdef class Adam(Solver):
    """Adam (Kingma and Ba, 2015), as in scikit-learn's networks.

    It uses the mean gradient of a mini-batch, and each update decays every weight by
    ``rate * alpha``, decoupled from the gradient (Loshchilov and Hutter, 2019).

    Rows of C without a gradient move on by their moments, but only when they are next
    read, over all the updates since, in closed form: an update then costs as much as
    the words of its windows, whatever the size of the vocabulary. The moments of other
    rows that an update does not visit do not change.

    Equivalent to ``reference.neural.Adam``.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `Solver`.
    scratch : Scratch
        Memory of the thread.
    largest : int
        Size of the largest array other than C and the output rows.
    beta_1, beta_2, epsilon : float
        Decay rates of the moments, and the term that keeps the step finite.
    """

    def __cinit__(
        self, *args, Scratch scratch, Py_ssize_t largest, double beta_1, double beta_2,
        double epsilon, **kwargs,
    ):
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        if self.C is not None:
            # Memory that is not written to is not resident.
            self.gradient_C = scratch.numbers(self.C.rows * self.C.columns)
            self.words = <int *>scratch.bytes(self.C.rows * sizeof(int))
            self.slots = <int *>scratch.bytes(self.C.rows * sizeof(int))
            memset(self.slots, 0xff, self.C.rows * sizeof(int))
        self.gradient = scratch.numbers(largest)

    cdef Step step(self, Py_ssize_t K) noexcept nogil:
        cdef Step step = Solver.step(self, K)
        cdef double t = atomic_read(&self.clock.updates) + 1
        step.decay = step.rate * self.alpha
        step.moments.beta_1, step.moments.beta_2 = self.beta_1, self.beta_2
        step.moments.epsilon = self.epsilon
        step.moments.rate = (
            step.rate * sqrt(1 - self.beta_2 ** t) / (1 - self.beta_1 ** t))
        return step

    cdef void feature(
        self, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        cdef Py_ssize_t m = self.C.columns, slot = word
        if self.C.paused != NULL:
            slot = self.slots[word]
            if slot < 0:
                slot = self.slots[word] = <int>self.n_words
                self.words[slot] = word
                self.n_words += 1
        self.loops.add(
            <char *>self.gradient_C + slot * m * self.itemsize, gradient, m, 1)

    cdef void catch_up(self, Parameter p, Py_ssize_t row) noexcept nogil:
        """Apply the outstanding weight decay and, of C, the updates without gradient.

        Equivalent to, of n updates::

            row = (1 - share) * row + rate * sum(beta_1**i for i in 1..n) * m / (sqrt(v) + eps)
            m, v = beta_1**n * m, beta_2**n * v
        """
        cdef double now = atomic_read(&self.clock.pause), then, n, log_decay, share
        cdef Py_ssize_t at = row * p.columns * self.itemsize
        cdef double *paused = p.paused + 2 * row
        cdef Moments by
        if p.paused == NULL:
            Solver.catch_up(self, p, row)
            return
        if not claim(&paused[0], now, &then):
            return
        n = then - now
        log_decay = atomic_read(&self.clock.log_decay)
        share = -expm1(log_decay - p.decayed[row])
        p.decayed[row] = log_decay
        by.beta_1, by.beta_2 = pow(self.beta_1, n), pow(self.beta_2, n)
        by.rate = paused[1] * self.beta_1 * (1 - by.beta_1) / (1 - self.beta_1)
        by.epsilon = self.epsilon
        self.loops.adam_pause(
            <char *>p.values + at, <char *>p.first + at, <char *>p.second + at,
            p.columns, share, &by)
        settle(&paused[0], now)

    cdef void visited(
        self, const Step *step, Parameter p, Py_ssize_t row, void *gradient,
    ) noexcept nogil:
        cdef Moments decaying = step.moments
        if p.paused == NULL:
            decaying.rate /= 1 - step.decay  # outstanding decay applies to it
            self.row(step, &decaying, p, row, <char *>gradient)
            return
        self.loops.fade(<char *>p.values + row * p.columns * self.itemsize,
                        p.n_decaying, step.decay)
        self.row(step, &decaying, p, row, <char *>gradient)
        p.decayed[row] += log1p(-step.decay)
        lower(&p.paused[2 * row], 0, step.pause)
        p.paused[2 * row + 1] = step.moments.rate

    cdef void dense(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        void *gradients,
    ) noexcept nogil:
        cdef Py_ssize_t size = p.columns * self.itemsize, r
        for r in range(rows):
            self.loops.fade(
                <char *>p.values + (first + r) * size, p.n_decaying, step.decay)
            self.row(step, &step.moments, p, first + r, <char *>gradients + r * size)

    cdef void row(
        self, const Step *step, const Moments *decaying, Parameter p, Py_ssize_t row,
        char *gradient,
    ) noexcept nogil:
        """Update a row from its gradient; the caller handles its weight decay."""
        cdef Py_ssize_t at = row * p.columns * self.itemsize
        cdef Py_ssize_t fixed = p.n_decaying * self.itemsize
        cdef double[2] memory
        self.loops.scale(gradient, p.columns, 1 / step.examples)
        self.loops.fill(memory, 1, 1, 1)
        self.loops.adam(
            <char *>p.values + at, gradient, <char *>p.first + at, <char *>p.second + at,
            p.n_decaying, memory, False, decaying)
        if p.n_decaying == p.columns:
            return
        at += fixed
        self.loops.adam(
            <char *>p.values + at, gradient + fixed, <char *>p.first + at,
            <char *>p.second + at, p.columns - p.n_decaying, memory, False,
            &step.moments)

    cdef void features(self, const Step *step, void *gradients) noexcept nogil:
        self.loops.add(self.gradient_C, gradients, self.C.rows * self.C.columns, 1)

    cdef void end_features(self, const Step *step) noexcept nogil:
        cdef Py_ssize_t i, n = self.n_words, size = self.C.columns * self.itemsize
        if self.C.paused == NULL:
            n = self.C.rows
            self.dense(step, self.C, 0, n, self.gradient_C)
        else:
            for i in range(n):
                self.visited(step, self.C, self.words[i],
                             <char *>self.gradient_C + i * size)
                self.slots[self.words[i]] = -1
            self.n_words = 0
        memset(self.gradient_C, 0, n * size)

    cdef void vector(
        self, const Step *step, Parameter p, const void *gradient,
    ) noexcept nogil:
        cdef Py_ssize_t n = p.rows * p.columns
        cdef double[2] memory
        self.loops.fill(memory, 1, 1, 1)
        memcpy(self.gradient, gradient, n * self.itemsize)
        self.loops.scale(self.gradient, n, 1 / step.examples)
        self.loops.adam(p.values, self.gradient, p.first, p.second, n, memory, False,
                        &step.moments)

    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory,
    ) noexcept nogil:
        memset(memory, 0, rows * E.columns * self.itemsize)
        products.update(memory, rows, g, <Py_ssize_t>step.examples, 1 / step.examples,
                        keep)
        self.follow(step, E, first, rows, products.column, products.stride, keep,
                    <char *>memory)

    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory,
    ) noexcept nogil:
        cdef Py_ssize_t stride = E.columns
        cdef char *gradient = <char *>memory + column * self.itemsize
        self.loops.fill(memory, n, 1, 1)
        self.loops.row_updates(
            <char *>E.values + (first * stride + column) * self.itemsize, rows, stride, n,
            z, g, 0, memory, dz)
        self.loops.outer(g, rows, z, n, 1 / step.examples, gradient, stride)
        self.follow(step, E, first, rows, column, n, keep, <char *>memory)

    cdef void follow(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *keep, char *gradient,
    ) noexcept nogil:
        """Update n columns of some output rows from the gradient of the rows."""
        cdef Py_ssize_t size = E.columns * self.itemsize, at, r
        gradient += column * self.itemsize
        for r in range(rows):
            at = (first + r) * size + column * self.itemsize
            self.loops.adam(
                <char *>E.values + at, gradient + r * size, <char *>E.first + at,
                <char *>E.second + at, n, keep, True, &step.moments)

    cdef Py_ssize_t room(self, Py_ssize_t tile_rows, Py_ssize_t stride) noexcept nogil:
        return max(1, tile_rows) * stride
