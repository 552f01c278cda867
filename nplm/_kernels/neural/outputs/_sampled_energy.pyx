"""Energies that train on noise samples.

The features and rows of the noise samples are gathered, and have logits for all
examples of a mini-batch, as all words have in `Energy`; a next word only has a logit
for its example.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._features cimport Features
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step
from nplm._kernels.neural.outputs._energy cimport Energies, Words
from nplm._kernels.neural.outputs._estimates cimport Estimate
from nplm._kernels.neural.outputs._output cimport number, put


cdef class SampledEnergy(Energies):
    """Energies of noise samples and of next words.

    Equivalent to ``reference.neural.energies`` of these words.

    Parameters
    ----------
    tier, scratch, at, E, C, H_next, v
        See `Energies`.
    estimate : Estimate
        Estimate that samples words and uses their logits.
    features : Features
        Features of the words.
    solver : Solver
        Solver that updates the parameters.
    **options
        Options of `Energies`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, Parameter C, *args,
        Estimate estimate, Features features, Solver solver, **options,
    ):
        cdef Py_ssize_t K = at.batch_size, most = estimate.sampler.most
        if estimate.sampler.n_words != E.rows or estimate.columns != self.wide:
            raise ValueError(
                f"a proposal of {estimate.sampler.n_words} words for energies of "
                f"{E.rows}, or other columns")
        self.estimate, self.features, self.solver = estimate, features, solver
        self.p = scratch.numbers(most * self.wide)
        self.visited = self.room(scratch, most + K, most)
        self.next = self.room(scratch, K, K)

    cdef Words room(self, Scratch scratch, Py_ssize_t n, Py_ssize_t n_made) except *:
        """Allocate n words, of which n_made have logits."""
        cdef Words words
        cdef Py_ssize_t lanes = self.lanes
        cdef Py_ssize_t n_own = n_made if self.v is None else 1
        words.C = <char *>scratch.numbers(n * self.m)
        words.E = <char *>scratch.numbers(n * self.E.columns)
        words.G = <char *>scratch.numbers(n_made * lanes)
        words.w = <char *>scratch.numbers(n_own * lanes)
        words.bias = <char *>scratch.numbers(n_made)
        words.dG = <char *>scratch.numbers(n_made * lanes)
        words.dv = <char *>(
            scratch.numbers(n_own * lanes) if self.v is None else self.dv_shared)
        words.sums = <char *>scratch.numbers(n_made)
        words.dC = <char *>scratch.numbers(n * self.m)
        words.dE = <char *>scratch.numbers(n * self.E.columns)
        return words

    cdef Words next_of(self, Py_ssize_t k) noexcept nogil:
        """Return the next word of example k."""
        cdef Words words = self.next
        cdef Py_ssize_t size = self.itemsize, own = k * self.w_stride * size
        words.C += k * self.m * size
        words.G += k * self.lanes * size
        words.w += own
        words.bias += k * size
        words.dG += k * self.lanes * size
        words.dv += own
        words.sums += k * size
        return words

    cdef void gather(self, Py_ssize_t K) noexcept nogil:
        """Gather the features and rows of the words, up to date."""
        cdef const int *words = self.estimate.visited
        cdef Py_ssize_t of_C = self.m * self.itemsize
        cdef Py_ssize_t of_E = self.E.columns * self.itemsize, i, k
        self.features.visit(self.solver, words, self.estimate.n_visited)
        self.solver.visit(self.E, words, self.estimate.n_visited)
        for i in range(self.estimate.n_visited):
            memcpy(self.visited.C + i * of_C, self.features.of(words[i]), of_C)
            memcpy(self.visited.E + i * of_E, <char *>self.E.values + words[i] * of_E,
                   of_E)
        for k in range(K):
            i = self.estimate.targets[k]
            memcpy(self.next.C + k * of_C, self.visited.C + i * of_C, of_C)
            memcpy(self.next.E + k * of_E, self.visited.E + i * of_E, of_E)

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Sample words, and compute their logits and those of the next words."""
        cdef Py_ssize_t size = self.itemsize, i, k
        cdef Words one
        cdef double logit
        self.estimate.draw(self.words, K)
        self.gather(K)
        self.weigh(&self.next, K)
        for k in range(K):
            one = self.next_of(k)
            self.meet(&one, 1)
            self.logits(&one, 1, k, 1, &logit)
            self.own.target[k] = number(&logit, 0, size)
        self.meet(&self.visited, self.estimate.n_drawn)
        self.weigh(&self.visited, self.estimate.n_drawn)
        for i in range(self.estimate.n_drawn):
            put(self.visited.bias, i, size,
                number(self.visited.bias, i, size) + self.estimate.shifts[i])
        self.logits(&self.visited, self.estimate.n_drawn, 0, K, self.p)
        self.estimate.total(K, self.p, &self.own)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradients of the estimate, and update the visited rows."""
        cdef Py_ssize_t of_C = self.m * self.itemsize, n = self.estimate.n_drawn, i, k
        cdef Py_ssize_t of_E = self.E.columns * self.itemsize
        cdef Py_ssize_t more = self.estimate.n_visited - n
        cdef Words one
        cdef double slope
        memset(self.slopes, 0, self.n_slopes * self.itemsize)
        self.estimate.find_slopes(self.words, K, self.p, &self.own, &self.all)
        self.loops.scale_columns(self.p, n, n, self.wide, self.estimate.factor)
        self.begin_slopes(&self.visited, n)
        self.add_slopes(&self.visited, n, 0, K, self.p)
        self.end_slopes(&self.visited, n)
        self.begin_slopes(&self.next, K)
        for k in range(K):
            one = self.next_of(k)
            put(&slope, 0, self.itemsize, self.estimate.slope[k])
            self.add_slopes(&one, 1, k, 1, &slope)
        self.end_slopes(&self.next, K)
        memset(self.visited.dC + n * of_C, 0, more * of_C)
        memset(self.visited.dE + n * of_E, 0, more * of_E)
        for k in range(K):
            i = self.estimate.targets[k]
            self.loops.add(
                self.visited.dC + i * of_C, self.next.dC + k * of_C, self.m, 1)
            self.loops.add(
                self.visited.dE + i * of_E, self.next.dE + k * of_E, self.E.columns, 1)
        solver.scattered(
            step, self.E, self.estimate.visited, self.estimate.n_visited, n,
            self.visited.dE)

    cdef void follow(self, Solver solver, const Step *step) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.estimate.n_visited):
            self.features.follow(
                solver, step, self.estimate.visited[i],
                self.visited.dC + i * self.m * self.itemsize)

    cdef void skip(self) noexcept nogil:
        self.estimate.draw(self.words, 0)

    cdef double noise(self) noexcept nogil:
        return self.estimate.noise

    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil:
        self.estimate.adapt(noise, K)
