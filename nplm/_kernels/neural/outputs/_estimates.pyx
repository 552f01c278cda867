"""Estimates of the gradient from noise samples.

Section 5.1 of the paper uses the importance sampling of Bengio and Senecal (2003): the
gradient of the log of the softmax's sum is a mean over all words, and is estimated from
a few. All examples of a mini-batch share the noise samples, so that their logits are
matrix products. The outputs compute the logits and use their slopes (`_sampled`,
`_energy`).

``reference.neural.Importance`` and ``reference.neural.NoiseContrastive`` derive the
estimates.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport LINE, Scratch, Tier, round_up
from nplm._kernels.neural.outputs._output cimport Totals, number, put
from nplm._kernels.neural.outputs._sampler cimport Sampler

ctypedef fused real:
    float
    double

cdef enum:
    N_WATCHED = 64  # mini-batches in the running mean of the noise


cdef void add_squares(
    const real *p, const double *weights, Py_ssize_t rows, Py_ssize_t columns,
    double *sums,
) noexcept nogil:
    """Compute ``sums += weights @ p**2``, p in panels."""
    cdef Py_ssize_t line = min(columns, LINE), i, r, k
    for i in range(columns // line):
        for r in range(rows):
            if weights[r] > 0:
                for k in range(line):
                    sums[i * line + k] += weights[r] * (p[k] * p[k])
            p += line


cdef class Estimate:
    """Base of the estimates from noise samples and the next words of a mini-batch.

    No twin: its kinds have theirs.

    Parameters
    ----------
    tier, scratch, at : Tier, Scratch, Activations
        See `Output`.
    sampler : Sampler
        Sampler of the noise.
    columns : int
        Number of columns of the logits of the noise samples, which are in panels unless
        it is 1.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Sampler sampler,
        Py_ssize_t columns, **options,
    ):
        cdef Py_ssize_t K = at.batch_size, most = sampler.most
        self.sampler, self.loops, self.itemsize = sampler, tier.loops, tier.itemsize
        self.columns, self.wide = columns, round_up(columns, LINE)
        self.visited = <int *>scratch.bytes((most + K) * sizeof(int))
        self.place = <int *>scratch.bytes(sampler.n_words * sizeof(int))
        memset(self.place, 0xff, sampler.n_words * sizeof(int))
        self.targets = <int *>scratch.bytes(K * sizeof(int))
        self.shifts = <double *>scratch.bytes(most * sizeof(double))
        self.factor = scratch.numbers(self.wide)
        self.slope = <double *>scratch.bytes(K * sizeof(double))

    cdef Py_ssize_t place_in_p(self, Py_ssize_t row, Py_ssize_t k) noexcept nogil:
        """Return the index in p of a noise sample for an example."""
        if self.columns == 1:
            return row
        return (k // LINE * self.n_drawn + row) * LINE + k % LINE

    cdef void draw(self, const int *words, Py_ssize_t K) noexcept nogil:
        """Sample words, and find the K next words among the visited ones."""
        cdef Py_ssize_t n, i, k
        cdef int word
        n = self.n_drawn = self.sampler.draw()
        for i in range(n):
            word = self.visited[i] = self.sampler.words[i]
            self.place[word] = <int>i
        for k in range(K):
            word = words[k]
            if self.place[word] < 0:
                self.place[word] = <int>n
                self.visited[n] = word
                n += 1
            self.targets[k] = self.place[word]
        self.n_visited = n
        for i in range(n):
            self.place[self.visited[i]] = -1
        self.weigh()

    cdef void weigh(self) noexcept nogil:
        """Compute what is added to the logits of the noise samples."""

    cdef void total(self, Py_ssize_t K, void *p, const Totals *own) noexcept nogil:
        """Compute the totals.

        They use the logits p of the noise samples, with the shifts, and ``own.target``
        of the next words.
        """

    cdef void find_slopes(
        self, const int *words, Py_ssize_t K, void *p, const Totals *own,
        const Totals *all,
    ) noexcept nogil:
        """Compute dL/dy: ``factor * p`` of noise samples, `slope` of next words."""

    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil:
        """Adapt the number of samples to the `noise` of all K examples."""


cdef class Importance(Estimate):
    """Gradient of the softmax by importance sampling.

    Equivalent to ``reference.neural.Importance``.

    Parameters
    ----------
    *args, **options
        Arguments of `Estimate`.
    watched : ndarray of float64, shape (3,)
        Number of noise samples, the mean relative variance of the estimated sums, and
        its number of mini-batches. Training changes them.
    least : float
        Minimum effective sample size, below which the noise samples are doubled.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, double[::1] watched,
        double least, **options,
    ):
        self.watched, self.least = watched, least
        self.tile_max = scratch.numbers(self.wide)
        self.tile_sum = scratch.numbers(self.wide)
        self.squares = <double *>scratch.bytes(self.wide * sizeof(double))

    cdef void draw(self, const int *words, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t n = <Py_ssize_t>self.watched[0]
        if self.sampler.n != min(n, self.sampler.most):
            self.sampler.prepare(n)
        Estimate.draw(self, words, K)

    cdef void weigh(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_drawn):
            self.shifts[i] = log(self.sampler.weights[i])

    cdef void total(self, Py_ssize_t K, void *p, const Totals *own) noexcept nogil:
        """Estimate the sum of exponentials from the next word and the noise samples."""
        cdef Py_ssize_t size = self.itemsize, n = self.n_drawn, columns = self.columns, k
        for k in range(K):  # the next word counts once
            if self.targets[k] < n:
                put(p, self.place_in_p(self.targets[k], k), size, -INFINITY)
            own.high[k] = own.target[k]
        if columns == 1:
            self.loops.exp_column(p, n, self.tile_max, self.tile_sum)
        else:
            self.loops.exp_columns(p, n, n, columns, self.tile_max, self.tile_sum)
        self.loops.raise_maxima(self.tile_max, K, own.high)
        for k in range(K):
            own.sum[k] = exp(own.target[k] - own.high[k])
        self.loops.exp_differences(self.tile_max, own.high, self.wide, self.factor)
        self.loops.add_scaled(self.tile_sum, self.factor, K, own.sum)
        self.noise = self.variance(K, p, own)

    cdef void find_slopes(
        self, const int *words, Py_ssize_t K, void *p, const Totals *own,
        const Totals *all,
    ) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(K):
            self.slope[k] = 1 - exp(own.target[k] - all.high[k]) / all.sum[k]
        self.loops.share(self.factor, all.sum, K, self.columns)

    cdef double variance(
        self, Py_ssize_t K, void *p, const Totals *own,
    ) noexcept nogil:
        """Return the summed relative variance of the sums of K examples.

        An example has ``variance = (noise @ w**2) / sum**2``, for the weighted
        exponentials w of the noise samples and ``noise`` = 1 - inclusion probability.
        """
        cdef Py_ssize_t columns = self.columns, k
        cdef double variance = 0, share
        memset(self.squares, 0, columns * sizeof(double))
        if self.itemsize == 4:
            add_squares(
                <float *>p, self.sampler.noise, self.n_drawn, columns, self.squares)
        else:
            add_squares(
                <double *>p, self.sampler.noise, self.n_drawn, columns, self.squares)
        for k in range(K):
            share = number(self.factor, k, self.itemsize) / own.sum[k]
            variance += self.squares[k] * share * share
        return variance

    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil:
        """Update the mean relative variance of a sum: 1 / effective samples."""
        cdef double[::1] watched = self.watched
        watched[2] += 1
        watched[1] += (noise / K - watched[1]) / min(watched[2], N_WATCHED)
        if watched[2] >= N_WATCHED and self.least * watched[1] > 1:
            if self.sampler.n < self.sampler.most:
                watched[0] = min(2 * self.sampler.n, self.sampler.most)
                watched[1] = watched[2] = 0


cdef class NoiseContrastive(Estimate):
    """Logistic regression that distinguishes next words from noise samples.

    Equivalent to ``reference.neural.NoiseContrastive``.

    Parameters
    ----------
    *args, **options
        Arguments of `Estimate`.
    proposal : ndarray of float64, shape (n_words,)
        Probabilities.
    n_noise : int
        Number of noise samples of an example in the objective.
    """

    def __cinit__(self, *args, double[::1] proposal, Py_ssize_t n_noise, **options):
        self.proposal, self.n_noise = proposal, n_noise
        self.sampler.prepare(n_noise)

    cdef void weigh(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_drawn):
            self.shifts[i] = -log(self.n_noise * self.sampler.q[i])

    cdef void total(self, Py_ssize_t K, void *p, const Totals *own) noexcept nogil:
        """Set the normaliser to 1: the loss is minus the score of the next words."""
        cdef Py_ssize_t k
        for k in range(K):
            own.high[k], own.sum[k] = 0, 1

    cdef void find_slopes(
        self, const int *words, Py_ssize_t K, void *p, const Totals *own,
        const Totals *all,
    ) noexcept nogil:
        # The logistic function is (1 + tanh(y / 2)) / 2.
        cdef Py_ssize_t columns = self.columns, n = self.n_drawn, i, k
        cdef Py_ssize_t line = min(columns, LINE)
        cdef double by
        cdef char *some
        self.loops.scale(p, n * columns, 0.5)
        self.loops.tanh(p, n * columns)
        for i in range(n):
            by = -0.5 * self.n_noise * self.sampler.q[i] * self.sampler.weights[i]
            for k in range(columns // line):
                some = <char *>p + self.place_in_p(i, k * line) * self.itemsize
                self.loops.scale(some, line, by)
                self.loops.subtract(some, line, -by)
        self.loops.fill(self.factor, self.columns, 1, 0)
        self.loops.fill(self.factor, K, 1, 1)
        for k in range(K):
            self.slope[k] = 1 / (1 + exp(
                own.target[k] - log(self.n_noise * self.proposal[words[k]])))
