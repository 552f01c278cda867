"""From x to a, the activations of the hidden units.

Step 1(b) of section 3.2, and 2(c) on the way back, for K examples at once.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Hidden:
    """From x to a; this one, of a network without hidden units, has nothing to do.

    Equivalent to ``reference.neural.tanh_layer`` with empty weights.
    """

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Fill a from x."""

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Add to dL/dx what comes through dL/da, and let the weights follow it."""


cdef class Tanh(Hidden):
    """The paper's a = tanh(d + Hx).

    Equivalent to ``reference.neural.tanh_layer``.

    Its products are those of the output units, with H a tile.

    Parameters
    ----------
    H : Parameter
        Weights, (n_hidden, n_inputs).
    d : Parameter
        Biases, (n_hidden,).
    at : Activations
        What it will be given.
    scratch : Scratch
        Where memory is taken.
    """

    def __cinit__(self, Parameter H, Parameter d, Activations at, Scratch scratch):
        self.H, self.d = H, d
        self.products = Products(
            at.tier, scratch, columns=at.columns, n_outputs=at.n_inputs, stride=at.n_inputs,
            tile_rows=at.n_hidden, n_slopes=at.n_inputs)
        self.sums = scratch.numbers(at.n_hidden * at.columns)
        self.dd = scratch.numbers(d.columns)
        self.keep = scratch.numbers(at.n_inputs)
        if not at.scoring:
            self.memory = scratch.numbers(H.rows * H.columns)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, n = at.n_inputs, size = h * at.itemsize, k
        if n == 0:
            memset(at.a, 0, K * size)
        elif at.columns == 1 and not at.scoring:
            at.loops.row_dots(self.H.values, h, n, at.x, 0, at.a)
        else:
            self.products.begin(at.x, NULL, K)
            self.products.logits(self.H.values, h, self.sums)
            if at.columns == 1:
                memcpy(at.a, self.sums, size)
            else:
                at.loops.out_of_panels(self.sums, h, K, at.a, h)
        for k in range(K):
            at.loops.add(<char *>at.a + k * size, self.d.values, h, 1)
        at.loops.tanh(at.a, K * h)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, n = at.n_inputs
        at.loops.tanh_slopes(at.a, at.da, K, h, self.dd)
        solver.vector(step, self.d, self.dd)
        if n == 0:
            return
        solver.begin_rows(step, self.keep, n + 1, n)  # no bias among them
        if at.columns == 1:
            solver.rows(step, self.H, 0, h, at.x, at.da, self.keep, at.dx, self.memory)
            return
        # To what came past the hidden units.
        at.loops.pack(at.dx, n, K, n, self.products.dz, at.columns)
        at.loops.into_panels(at.da, h, K, h, self.sums, at.columns)
        self.products.gradient(self.H.values, h, self.sums)
        at.loops.unpack(self.products.dz, at.columns, K, n, at.dx, n)
        solver.tile(
            step, self.H, 0, h, self.sums, self.products, self.keep, self.memory)
