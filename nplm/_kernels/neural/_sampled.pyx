"""Outputs trained on sampled words: importance sampling and noise contrast.

Section 5.1 of the paper has the first, of Bengio and Senecal (2003): the gradient of
the logarithm of the softmax's sum is a mean over all words, and is estimated from a
few. All examples of a mini-batch share the drawn words, so that logits, gradients and
updates are products of matrices again, of the drawn words' rows of E in place of all.
These rows are gathered, with those of the examples' next words, in a tile; it ends as
their gradients, which the solver follows.

What is estimated, and why so, is derived in ``reference.neural.Importance`` and
``reference.neural.NoiseContrastive``.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport LINE, Scratch, Tier
from nplm._kernels.neural._output cimport Rows
from nplm._kernels.neural._products cimport Bfloat16Products, Products
from nplm._kernels.neural._sampler cimport Sampler
from nplm._kernels.neural._solvers cimport Solver, Step

ctypedef fused real:
    float
    double

cdef enum:
    N_WATCHED = 64  # mini-batches that the mean of their noise goes back


cdef inline double number(const void *numbers, Py_ssize_t i, Py_ssize_t size) noexcept nogil:
    return (<float *>numbers)[i] if size == 4 else (<double *>numbers)[i]


cdef inline void put(void *numbers, Py_ssize_t i, Py_ssize_t size, double x) noexcept nogil:
    if size == 4:
        (<float *>numbers)[i] = <float>x
    else:
        (<double *>numbers)[i] = x


cdef void add_squares(
    const real *p, const double *weights, Py_ssize_t rows, Py_ssize_t columns,
    double *sums,
) noexcept nogil:
    """``sums += weights @ p**2``, p in panels."""
    cdef Py_ssize_t line = min(columns, LINE), i, r, k
    for i in range(columns // line):
        for r in range(rows):
            if weights[r] > 0:
                for k in range(line):
                    sums[i * line + k] += weights[r] * (p[k] * p[k])
            p += line


cdef class Sampled(Rows):
    """Base of the outputs that visit the rows of drawn words and of next words.

    No twin: its kinds have theirs.

    Parameters
    ----------
    tier, scratch, at, E : Tier, Scratch, Activations, Parameter
        See `Rows`.
    n_words : int
        All: the rows are not shared out.
    sampler : Sampler
        Where the words come from.
    solver : Solver
        Who trains.
    **options
        Of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Py_ssize_t n_words,
        Sampler sampler, Solver solver, **options,
    ):
        cdef Py_ssize_t K = at.batch_size, most = sampler.most, size = tier.itemsize, k
        if sampler.n_words != n_words:
            raise ValueError(
                f"a proposal of {sampler.n_words} words for an output of {n_words}")
        self.sampler, self.solver = sampler, solver
        # One example at a time is not rounded, here neither.
        rounded = tier.bfloat16 != NULL and at.columns > 1
        kind = Bfloat16Products if rounded else Products
        self.products = kind(
            tier, scratch, columns=at.columns, n_outputs=self.n_outputs,
            stride=self.stride, tile_rows=most)
        self.visited = <int *>scratch.bytes((most + K) * sizeof(int))
        self.place = <int *>scratch.bytes(n_words * sizeof(int))
        memset(self.place, 0xff, n_words * sizeof(int))
        self.targets = <int *>scratch.bytes(K * sizeof(int))
        self.nowhere = <int *>scratch.bytes(K * sizeof(int))
        memset(self.nowhere, 0xff, K * sizeof(int))
        self.tile = scratch.numbers((most + K) * self.stride)
        self.shifts = <double *>scratch.bytes(most * sizeof(double))
        self.p = scratch.numbers(most * at.columns)
        self.factor = scratch.numbers(self.wide)
        self.logits = scratch.numbers(self.wide)
        self.slope = <double *>scratch.bytes(K * sizeof(double))
        self.below = scratch.numbers(K * self.stride)
        self.of_next = scratch.numbers(self.n_slopes)
        self.nothing = scratch.numbers(self.stride)

    cdef Py_ssize_t place_in_p(self, Py_ssize_t row, Py_ssize_t k) noexcept nogil:
        """Where p has the number of a drawn word for an example: it is in panels."""
        if self.columns == 1:
            return row
        return (k // LINE * self.n_drawn + row) * LINE + k % LINE

    cdef void *tile_row(self, Py_ssize_t row) noexcept nogil:
        return <char *>self.tile + row * self.stride * self.itemsize

    cdef void gather(self, Py_ssize_t K) noexcept nogil:
        """Bring the rows of the drawn and the next words to the tile, up to date."""
        cdef Py_ssize_t n = self.n_drawn, width = self.stride * self.itemsize, i, k
        cdef int word
        for i in range(n):
            word = self.visited[i] = self.sampler.words[i]
            self.place[word] = <int>i
        for k in range(K):
            word = self.at.words[k]
            if self.place[word] < 0:
                self.place[word] = <int>n
                self.visited[n] = word
                n += 1
            self.targets[k] = self.place[word]
        self.n_visited = n
        self.solver.visit(self.E, self.visited, n)
        for i in range(n):
            self.place[self.visited[i]] = -1
            memcpy(self.tile_row(i), self.row_of(self.visited[i]), width)

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Draw words; logits of these, and of each example's next word."""
        cdef Py_ssize_t size = self.itemsize, bias = self.n_outputs - 1, i, k
        self.n_drawn = self.sampler.draw()
        self.gather(K)
        for k in range(K):
            self.loops.row_dots(
                self.tile_row(self.targets[k]), 1, self.stride,
                <char *>self.z + k * self.stride * size, 0,
                <char *>self.logits + k * size)
            self.own.target[k] = number(self.logits, k, size)
        self.weigh()
        for i in range(self.n_drawn):  # z ends in 1: the biases are the place
            put(self.tile_row(i), bias, size,
                number(self.tile_row(i), bias, size) + self.shifts[i])
        if self.columns == 1:
            self.loops.row_dots(
                self.tile, self.n_drawn, self.stride, self.z, 0, self.p)
        else:
            self.products.begin(self.z, K)
            self.products.logits(self.tile, self.n_drawn, self.p)
        self.total(K)

    cdef void weigh(self) noexcept nogil:
        """Find what is added to the logits of the drawn words."""

    cdef void total(self, Py_ssize_t K) noexcept nogil:
        """Find the totals."""

    cdef void find_slopes(self, Py_ssize_t K) noexcept nogil:
        """Find dL/dy: of the drawn words ``factor * p``, of the next ones `slope`."""

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Gradient for z, and the update of the rows that were visited."""
        cdef Py_ssize_t size = self.itemsize, stride = self.stride, n = self.n_drawn, k
        cdef Py_ssize_t width = stride * size
        cdef char *z = <char *>self.z
        cdef char *below = <char *>self.below
        memset(self.slopes, 0, self.n_slopes * size)
        memset(self.of_next, 0, self.n_slopes * size)
        self.find_slopes(K)
        for k in range(K):
            memcpy(below + k * width, self.tile_row(self.targets[k]), width)
            self.loops.scale(below + k * width, stride, self.slope[k])
        self.loops.transpose(
            self.below, stride, K, self.n_outputs - 1, self.of_next, self.columns)
        # The rows of the drawn words make way for their gradients.
        if self.columns == 1:
            self.loops.scale(self.p, n, number(self.factor, 0, size))
            self.loops.row_updates(
                self.tile, n, stride, self.z, self.p, 1, self.nothing, self.slopes)
        else:
            self.products.slopes(self.p, self.factor, n, 0, n, self.nowhere, K)
            self.products.gradient(self.tile, n, self.p)
            self.products.update(self.tile, n, self.p, K, 1, self.nothing)
            self.products.end(self.slopes)
        self.loops.add(self.slopes, self.of_next, self.n_slopes, 1)
        memset(self.tile_row(n), 0, (self.n_visited - n) * width)
        for k in range(K):
            self.loops.add(
                self.tile_row(self.targets[k]), z + k * width, stride, self.slope[k])
        # Its own, for features may gather them.
        self.solver.scattered(step, self.E, self.visited, self.n_visited, self.tile)


cdef class Importance(Sampled):
    """The softmax's gradient by importance sampling.

    Equivalent to ``reference.neural.Importance``.

    Parameters
    ----------
    *args, **options
        Of `Sampled`.
    watched : ndarray of float64, shape (3,)
        Words of a draw; the mean relative variance of the estimated sums; and of
        how many mini-batches that is. Changed by training.
    least : float
        Effective samples: where there are fewer, draws get twice as many words.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, double[::1] watched,
        double least, **options,
    ):
        self.watched, self.least = watched, least
        self.tile_max = scratch.numbers(self.wide)
        self.tile_sum = scratch.numbers(self.wide)
        self.squares = <double *>scratch.bytes(self.wide * sizeof(double))

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        cdef Py_ssize_t n = <Py_ssize_t>self.watched[0]
        if self.sampler.n != min(n, self.sampler.most):
            self.sampler.prepare(n)
        Sampled.forward(self, K, logits)

    cdef void weigh(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_drawn):
            self.shifts[i] = log(self.sampler.weights[i])

    cdef void total(self, Py_ssize_t K) noexcept nogil:
        """Estimate the sum of exponentials: the next word's, and the others'."""
        cdef Py_ssize_t size = self.itemsize, n = self.n_drawn, columns = self.columns, k
        for k in range(K):  # not twice
            if self.targets[k] < n:
                put(self.p, self.place_in_p(self.targets[k], k), size, -INFINITY)
            self.own.high[k] = self.own.target[k]
        if columns == 1:
            self.loops.exp_column(self.p, n, self.tile_max, self.tile_sum)
        else:
            self.loops.exp_columns(
                self.p, n, n, columns, self.tile_max, self.tile_sum)
        self.loops.raise_maxima(self.tile_max, K, self.own.high)
        for k in range(K):
            self.own.sum[k] = exp(self.own.target[k] - self.own.high[k])
        self.loops.exp_differences(
            self.tile_max, self.own.high, self.wide, self.factor)
        self.loops.add_scaled(self.tile_sum, self.factor, K, self.own.sum)
        self.watch(K)

    cdef void find_slopes(self, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(K):
            self.slope[k] = 1 - (
                exp(self.own.target[k] - self.all.high[k]) / self.all.sum[k])
        self.loops.share(self.factor, self.all.sum, K, self.columns)

    cdef void watch(self, Py_ssize_t K) noexcept nogil:
        """Watch the relative variance of the sums: 1 over the effective samples.

        ``variance = (noise @ w**2) / sum**2`` of each example, for the weighted
        exponentials w of the drawn words and ``noise`` = 1 - the chance to be drawn.
        """
        cdef Py_ssize_t columns = self.columns, k
        cdef double variance = 0, share
        cdef double[::1] watched = self.watched
        memset(self.squares, 0, columns * sizeof(double))
        if self.itemsize == 4:
            add_squares(<float *>self.p, self.sampler.noise, self.n_drawn, columns,
                        self.squares)
        else:
            add_squares(<double *>self.p, self.sampler.noise, self.n_drawn, columns,
                        self.squares)
        for k in range(K):
            share = number(self.factor, k, self.itemsize) / self.own.sum[k]
            variance += self.squares[k] * share * share
        watched[2] += 1
        watched[1] += (variance / K - watched[1]) / min(watched[2], N_WATCHED)
        if watched[2] >= N_WATCHED and self.least * watched[1] > 1:
            if self.sampler.n < self.sampler.most:
                watched[0] = min(2 * self.sampler.n, self.sampler.most)
                watched[1] = watched[2] = 0


cdef class NoiseContrastive(Sampled):
    """A logistic regression that tells next words from drawn ones.

    Equivalent to ``reference.neural.NoiseContrastive``.

    Parameters
    ----------
    *args, **options
        Of `Sampled`.
    proposal : ndarray of float64, shape (n_words,)
        Probabilities.
    n_noise : int
        Noise words of an example, as the objective has it.
    """

    def __cinit__(self, *args, double[::1] proposal, Py_ssize_t n_noise, **options):
        self.proposal, self.n_noise = proposal, n_noise
        self.sampler.prepare(n_noise)

    cdef void weigh(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_drawn):
            self.shifts[i] = -log(self.n_noise * self.sampler.q[i])

    cdef void total(self, Py_ssize_t K) noexcept nogil:
        """The normaliser is 1: -log P of the next words, as they are, is the loss."""
        cdef Py_ssize_t k
        for k in range(K):
            self.own.high[k], self.own.sum[k] = 0, 1

    cdef void find_slopes(self, Py_ssize_t K) noexcept nogil:
        # The logistic function is (1 + tanh(y / 2)) / 2.
        cdef Py_ssize_t columns = self.columns, n = self.n_drawn, i, k
        cdef Py_ssize_t line = min(columns, LINE)
        cdef double by
        cdef char *p
        self.loops.scale(self.p, n * columns, 0.5)
        self.loops.tanh(self.p, n * columns)
        for i in range(n):
            by = -0.5 * self.n_noise * self.sampler.q[i] * self.sampler.weights[i]
            for k in range(columns // line):
                p = <char *>self.p + self.place_in_p(i, k * line) * self.itemsize
                self.loops.scale(p, line, by)
                self.loops.subtract(p, line, -by)
        self.loops.fill(self.factor, self.columns, 1, 0)
        self.loops.fill(self.factor, K, 1, 1)
        for k in range(K):
            self.slope[k] = 1 / (1 + exp(self.own.target[k] - log(
                self.n_noise * self.proposal[self.at.words[k]])))


cdef class Unnormalised(Rows):
    """Scores that stand for log P as they are, of the next words only.

    Equivalent to ``reference.neural.unnormalised``.
    """

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        cdef Py_ssize_t width = self.stride * self.itemsize, k
        cdef double logit
        for k in range(K):
            self.loops.forward_column(
                self.row_of(self.at.words[k]), 1, self.stride, self.n_outputs,
                <char *>self.z + k * width, &logit)
            self.own.target[k] = number(&logit, 0, self.itemsize)
            self.own.high[k], self.own.sum[k] = 0, 1
