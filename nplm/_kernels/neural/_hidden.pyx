"""From x to a, the activations of the hidden units.

Step 1(b) of section 3.2, and 2(c) on the way back, for K examples at once.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch
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


cdef class Linear(Hidden):
    """The sums d + Hx, of an output that has more to add before the tanh.

    Equivalent to ``reference.neural.linear_layer``.

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
        if at.columns > 1:
            self.xt = scratch.numbers(at.n_inputs * at.columns)
            self.sums = scratch.numbers(at.n_hidden * at.columns)
        self.dd = scratch.numbers(d.columns)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, n = at.n_inputs, size = h * at.itemsize, k
        if at.columns == 1:
            memset(at.a, 0, size)
            if n > 0:
                at.loops.forward_column(self.H.values, h, n, n, at.x, at.a)
        else:
            at.loops.transpose(at.x, n, K, n, self.xt, at.columns)
            if n > 0:  # else the sums stay zero
                at.loops.forward_tile(
                    self.H.values, h, n, n, self.xt, at.columns, self.sums)
            at.loops.transpose(self.sums, at.columns, h, K, at.a, h)
        for k in range(K):
            at.loops.add(<char *>at.a + k * size, self.d.values, h, 1)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t size = at.n_hidden * at.itemsize, k
        memset(self.dd, 0, size)
        for k in range(K):
            at.loops.add(self.dd, <char *>at.da + k * size, at.n_hidden, 1)
        self.follow(at, K, solver, step)

    cdef void follow(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Follow the gradient of the sums, dL/da by now, and that of d."""
        cdef Py_ssize_t h = at.n_hidden, n = at.n_inputs
        solver.vector(step, self.d, self.dd)
        if n > 0:
            at.loops.product(
                False, False, K, n, h, 1, at.da, h, self.H.values, n, 1, at.dx, n)
            solver.product(step, self.H, at.da, at.x)


cdef class Tanh(Linear):
    """The paper's a = tanh(d + Hx).

    Equivalent to ``reference.neural.tanh_layer``.
    """

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        Linear.forward(self, at, K)
        at.loops.tanh(at.a, K * at.n_hidden)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        at.loops.tanh_slopes(at.a, at.da, K, at.n_hidden, self.dd)
        self.follow(at, K, solver, step)


cdef class Projected(Hidden):
    """As many activations as a word has features: s = R [a | x].

    They are what `TiedSoftmax` multiplies by features.

    Equivalent to ``reference.neural.projection``.

    Parameters
    ----------
    hidden : Hidden
        From x to a.
    R : Parameter
        Weights, (m, n_hidden), or (m, n_hidden + n_inputs) where x comes in too.
    inner : Activations
        What `hidden` was made for.
    at : Activations
        What this will be given.
    scratch : Scratch
        Where memory is taken.
    """

    def __cinit__(
        self, Hidden hidden, Parameter R, Activations inner, Activations at,
        Scratch scratch,
    ):
        self.hidden, self.R, self.inner, self.width = hidden, R, inner, R.columns
        if R.rows != at.n_hidden or R.columns not in (
            inner.n_hidden, inner.n_hidden + at.n_inputs,
        ):
            raise ValueError(f"R of shape {R.rows, R.columns}")
        inner.x, inner.dx = at.x, at.dx
        self.v = scratch.numbers(at.batch_size * self.width)
        self.dv = scratch.numbers(at.batch_size * self.width)
        if at.columns > 1:
            self.vt = scratch.numbers(self.width * at.columns)
            self.sums = scratch.numbers(at.n_hidden * at.columns)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = self.inner.n_hidden, n = self.width - h, m = at.n_hidden
        cdef Py_ssize_t size = at.itemsize, k
        cdef char *v = <char *>self.v
        self.hidden.forward(self.inner, K)
        for k in range(K):
            memcpy(v + k * self.width * size, <char *>self.inner.a + k * h * size,
                   h * size)
            memcpy(v + (k * self.width + h) * size, <char *>at.x + k * n * size, n * size)
        if at.columns == 1:
            memset(at.a, 0, m * size)
            at.loops.forward_column(
                self.R.values, m, self.width, self.width, self.v, at.a)
        else:
            at.loops.transpose(self.v, self.width, K, self.width, self.vt, at.columns)
            at.loops.forward_tile(
                self.R.values, m, self.width, self.width, self.vt, at.columns, self.sums)
            at.loops.transpose(self.sums, at.columns, m, K, at.a, m)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = self.inner.n_hidden, n = self.width - h, m = at.n_hidden
        cdef Py_ssize_t size = at.itemsize, k
        cdef char *dv = <char *>self.dv
        at.loops.product(False, False, K, self.width, m, 1, at.da, m, self.R.values,
                         self.width, 0, self.dv, self.width)
        solver.product(step, self.R, at.da, self.v)
        for k in range(K):
            memcpy(<char *>self.inner.da + k * h * size, dv + k * self.width * size,
                   h * size)
            at.loops.add(<char *>at.dx + k * n * size, dv + (k * self.width + h) * size,
                         n, 1)
        self.hidden.backward(self.inner, K, solver, step)
