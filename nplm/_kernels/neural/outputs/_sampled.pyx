"""Softmax outputs that train on noise samples.

The rows of E of the noise samples and of the next words are gathered in a tile, which
their gradients then replace for the solver. An estimate computes the slopes of the
logits.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural.outputs._estimates cimport Estimate
from nplm._kernels.neural.outputs._output cimport Rows, number, put

from nplm._kernels.neural._products import products_of


cdef class Sampled(Rows):
    """Rows of noise samples and of next words, times z.

    Equivalent to ``reference.neural.Sampled``.

    Parameters
    ----------
    tier, scratch, at, E : Tier, Scratch, Activations, Parameter
        See `Rows`.
    n_words : int
        Number of all words: the rows are not shared.
    estimate : Estimate
        Estimate that samples words and uses their logits.
    solver : Solver
        Solver that updates the parameters.
    **options
        Options of `Rows`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Py_ssize_t n_words,
        Estimate estimate, Solver solver, **options,
    ):
        cdef Py_ssize_t K = at.batch_size, most = estimate.sampler.most
        if estimate.sampler.n_words != n_words or estimate.columns != at.columns:
            raise ValueError(
                f"a proposal of {estimate.sampler.n_words} words for an output of "
                f"{n_words}, or other columns")
        self.estimate, self.solver = estimate, solver
        self.products = products_of(
            tier, scratch, columns=at.columns, n_outputs=self.n_outputs,
            stride=self.stride, tile_rows=most)
        self.nowhere = <int *>scratch.bytes(K * sizeof(int))
        memset(self.nowhere, 0xff, K * sizeof(int))
        self.tile = scratch.numbers((most + K) * self.stride)
        self.p = scratch.numbers(most * at.columns)
        self.logits = scratch.numbers(self.wide)
        self.below = scratch.numbers(K * self.stride)
        self.nothing = scratch.numbers(self.stride)

    cdef void *tile_row(self, Py_ssize_t row) noexcept nogil:
        return <char *>self.tile + row * self.stride * self.itemsize

    cdef void gather(self) noexcept nogil:
        """Gather the rows of the noise samples and next words in the tile."""
        cdef const int *visited = self.estimate.visited
        cdef Py_ssize_t i, width = self.stride * self.itemsize
        self.solver.visit(self.E, visited, self.estimate.n_visited)
        for i in range(self.estimate.n_visited):
            memcpy(<char *>self.tile + i * width,
                   <char *>self.E.values + visited[i] * width, width)

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Sample words, and compute their logits and those of the next words."""
        cdef Py_ssize_t size = self.itemsize, n, i, k
        cdef const double *shifts = self.estimate.shifts
        cdef char *bias = <char *>self.tile + (self.n_outputs - 1) * size
        self.estimate.draw(self.words, K)
        self.gather()
        n = self.estimate.n_drawn
        for k in range(K):
            self.loops.row_dots(
                self.tile_row(self.estimate.targets[k]), 1, self.stride, self.stride,
                <char *>self.z + k * self.stride * size, 0,
                <char *>self.logits + k * size)
            self.own.target[k] = number(self.logits, k, size)
        for i in range(n):  # z ends in 1: the biases are the place
            put(bias, i * self.stride, size, number(bias, i * self.stride, size) + shifts[i])
        if self.columns == 1:
            self.loops.row_dots(
                self.tile, n, self.stride, self.stride, self.z, 0, self.p)
        else:
            self.products.begin(self.z, K)
            self.products.logits(self.tile, n, self.p)
        self.estimate.total(K, self.p, &self.own)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradient of z, and update the visited rows."""
        cdef Py_ssize_t size = self.itemsize, stride = self.stride, k
        cdef Py_ssize_t n = self.estimate.n_drawn, width = stride * size
        cdef char *z = <char *>self.z
        cdef char *below = <char *>self.below
        memset(self.slopes, 0, self.n_slopes * size)
        self.estimate.find_slopes(self.words, K, self.p, &self.own, &self.all)
        for k in range(K):
            memcpy(below + k * width, self.tile_row(self.estimate.targets[k]), width)
            self.loops.scale(below + k * width, stride, self.estimate.slope[k])
        # Gradients overwrite the rows of the noise samples.
        if self.columns == 1:
            self.loops.scale(self.p, n, number(self.estimate.factor, 0, size))
            self.loops.row_updates(
                self.tile, n, stride, stride, self.z, self.p, 1, self.nothing, self.slopes)
        else:
            self.products.slopes(self.p, self.estimate.factor, n, 0, n, self.nowhere, K)
            self.products.gradient(self.tile, n, self.p)
            self.products.update(self.tile, n, self.p, K, 1, self.nothing)
            self.products.end(self.slopes)
        memset(self.tile_row(n), 0, (self.estimate.n_visited - n) * width)
        for k in range(K):
            self.loops.add(self.tile_row(self.estimate.targets[k]), z + k * width, stride,
                           self.estimate.slope[k])
        # A copy, because features may gather them.
        self.solver.scattered(
            step, self.E, self.estimate.visited, self.estimate.n_visited, n,
            self.tile)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Also through the next words, whose slopes are row-major."""
        cdef Py_ssize_t h = self.at.n_hidden, size = self.itemsize, k
        cdef char *below = <char *>self.below
        Rows.end(self, K, solver, step)
        for k in range(K):
            self.loops.add(<char *>self.at.da + k * h * size, below, h, 1)
            if self.direct:
                self.at.add_to_dx(k, below + h * size)
            below += self.stride * size

    cdef void skip(self) noexcept nogil:
        self.estimate.draw(self.words, 0)

    cdef double noise(self) noexcept nogil:
        return self.estimate.noise

    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil:
        self.estimate.adapt(noise, K)
