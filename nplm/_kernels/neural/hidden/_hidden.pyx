"""Hidden units, which compute the activations a from x.

Step 1(b) of section 3.2, and 2(c) on the way back, for K examples at once.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step

from nplm._kernels.neural._products import products_of


cdef class Weighted:
    """Products of K vectors with weights, by the kernels of the output units.

    No twin: each verb's docstring is its line of NumPy.

    Parameters
    ----------
    weights : Parameter
        (any, any).
    at : Activations
        Activations of the vectors.
    scratch : Scratch
        Memory of the thread.
    carries : bool
        Whether the gradients of the vectors are needed.
    adds : bool, default=True
        Whether to add them to others.
    column, n : int, optional
        First of the columns of the weights, and their number; by default all of them.
    """

    def __cinit__(
        self, Parameter weights, Activations at, Scratch scratch, *, bint carries=True,
        bint adds=True, Py_ssize_t column=0, Py_ssize_t n=-1,
    ):
        n = weights.columns if n < 0 else n
        self.carries, self.adds, self.column, self.n = carries, adds, column, n
        self.weights, self.columns, self.scoring = weights, at.columns, at.scoring
        self.loops, self.itemsize = at.loops, at.itemsize
        self.products = products_of(
            at.tier, scratch, columns=at.columns, n_outputs=n, stride=n,
            tile_rows=weights.rows, n_slopes=n, column=column, E_stride=weights.columns)
        self.sums = scratch.numbers(weights.rows * at.columns)
        self.keep = scratch.numbers(n)
        if not at.scoring:
            self.memory = scratch.numbers(weights.rows * weights.columns)

    cdef void *panels(self, void *v, Py_ssize_t K) noexcept nogil:
        """Return ``v @ weights.T`` in panels, of several vectors."""
        self.products.narrow(K)
        self.columns = self.products.columns
        self.products.begin(v, K)
        self.products.logits(self.weights.values, self.weights.rows, self.sums)
        return self.sums

    cdef void forward(self, void *v, void *out, Py_ssize_t K) noexcept nogil:
        """``out = v @ weights.T``"""
        cdef Py_ssize_t h = self.weights.rows
        if self.n == 0:
            memset(out, 0, K * h * self.itemsize)
        elif self.columns == 1 and not self.scoring:
            self.loops.row_dots(
                <char *>self.weights.values + self.column * self.itemsize, h,
                self.weights.columns, self.n, v, 0, out)
        else:
            self.panels(v, K)
            if self.columns == 1:
                memcpy(out, self.sums, h * self.itemsize)
            else:
                self.loops.out_of_panels(self.sums, h, K, out, h)

    cdef void backward(
        self, void *v, void *slopes, void *dv, Py_ssize_t K, Solver solver,
        const Step *step,
    ) noexcept nogil:
        """Compute dv from ``slopes @ weights`` if needed; update by ``slopes.T @ v``.

        v is that of the last `forward`.
        """
        cdef Py_ssize_t h = self.weights.rows, n = self.n
        if self.columns > 1:
            self.loops.into_panels(slopes, h, K, h, self.sums, self.columns)
            self.follow(self.sums, dv, K, solver, step)
        elif n > 0:
            if not self.adds:
                memset(dv, 0, n * self.itemsize)
            solver.begin_rows(step, self.keep, n + 1, n)  # without biases
            solver.rows(
                step, self.weights, 0, h, self.column, n, v, slopes, self.keep, dv,
                self.memory)

    cdef void follow(
        self, void *slopes, void *dv, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """`backward` from the slopes of several vectors in panels."""
        cdef Py_ssize_t h = self.weights.rows
        if self.n == 0:
            return
        solver.begin_rows(step, self.keep, self.n + 1, self.n)
        self.products.take(slopes, h, self.carries)
        if self.carries:
            self.products.carry(self.weights.values, h, slopes, dv, K, self.adds)
        solver.tile(
            step, self.weights, 0, h, slopes, self.products, self.keep, self.memory)


cdef class Hidden:
    """Hidden units, which compute a from x; this base class has none.

    Equivalent to ``reference.neural.tanh_layer`` with empty weights.
    """

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Compute a from x."""

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Add to dL/dx the part through dL/da, and update the weights."""


cdef class Linear(Hidden):
    """The sums d + Hx, to which the output adds terms before the tanh.

    Equivalent to ``reference.neural.linear_layer``.

    Parameters
    ----------
    H : Parameter
        Weights, (n_hidden, n_inputs).
    d : Parameter
        Biases, (n_hidden,).
    at : Activations
        Activations of the network.
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(self, Parameter H, Parameter d, Activations at, Scratch scratch):
        self.d = d
        self.by_H = Weighted(H, at, scratch, carries=at.learns_inputs)
        self.dd = scratch.numbers(d.columns)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, k
        self.by_H.forward(at.x, at.a, K)
        for k in range(K):
            at.loops.add(<char *>at.a + k * h * at.itemsize, self.d.values, h, 1)
        self.activate(at, K)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        self.slopes(at, K)
        solver.vector(step, self.d, self.dd)
        # Add to the part that bypasses the hidden units.
        self.by_H.backward(at.x, at.da, at.dx, K, solver, step)

    cdef void activate(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Compute a from the sums, which it holds."""

    cdef void slopes(self, Activations at, Py_ssize_t K) noexcept nogil:
        """Compute the gradients of d, and of the sums in place of dL/da."""
        cdef Py_ssize_t size = at.n_hidden * at.itemsize, k
        memset(self.dd, 0, size)
        for k in range(K):
            at.loops.add(self.dd, <char *>at.da + k * size, at.n_hidden, 1)


cdef class Tanh(Linear):
    """The paper's a = tanh(d + Hx).

    Equivalent to ``reference.neural.tanh_layer``.
    """

    cdef void activate(self, Activations at, Py_ssize_t K) noexcept nogil:
        at.loops.tanh(at.a, K * at.n_hidden)

    cdef void slopes(self, Activations at, Py_ssize_t K) noexcept nogil:
        at.loops.tanh_slopes(at.a, at.da, K, at.n_hidden, self.dd)


cdef class Rectified(Linear):
    """Rectified linear units, a = max(d + Hx, 0).

    Equivalent to ``reference.neural.rectified_layer``.
    """

    cdef void activate(self, Activations at, Py_ssize_t K) noexcept nogil:
        at.loops.rectify(at.a, K * at.n_hidden)

    cdef void slopes(self, Activations at, Py_ssize_t K) noexcept nogil:
        at.loops.rectify_slopes(at.a, at.da, K, at.n_hidden, self.dd)


cdef class Block(Hidden):
    """A residual block: a + U units(norm(a)), where a is that of the units below.

    The layer norm (Ba, Kiros and Hinton, 2016) has no gain and bias of its own: the
    units' H and d, which follow, can have them.

    Equivalent to ``reference.neural.residual_block``.

    Parameters
    ----------
    below : Hidden
        Hidden units, which compute a from x.
    units : Hidden
        Rectified units, maybe with dropout.
    U : Parameter
        Weights, (n_hidden, number of these units).
    inner : Activations
        Activations of `below`.
    wide : Activations
        Activations of `units`.
    at : Activations
        Activations of the block.
    scratch : Scratch
        Memory of the thread.
    epsilon : float
        Added to the variance by the layer norm.
    """

    def __cinit__(
        self, Hidden below, Hidden units, Parameter U, Activations inner,
        Activations wide, Activations at, Scratch scratch, *, double epsilon,
    ):
        if (U.rows, U.columns) != (at.n_hidden, wide.n_hidden) or not (
            inner.n_hidden == wide.n_inputs == at.n_hidden
        ):
            raise ValueError(f"U of shape {U.rows, U.columns}")
        self.below, self.units, self.inner, self.wide = below, units, inner, wide
        self.by_U, self.epsilon = Weighted(U, at, scratch, adds=False), epsilon
        self.by = scratch.numbers(at.batch_size)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden
        self.below.forward(self.inner, K)
        at.loops.normalize(self.inner.a, K, h, self.epsilon, self.wide.x, self.by)
        self.units.forward(self.wide, K)
        self.by_U.forward(self.wide.a, at.a, K)
        at.loops.add(at.a, self.inner.a, K * h, 1)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = at.n_hidden, size = at.itemsize
        self.by_U.backward(self.wide.a, at.da, self.wide.da, K, solver, step)
        memset(self.wide.dx, 0, K * h * size)
        self.units.backward(self.wide, K, solver, step)
        memcpy(self.inner.da, at.da, K * h * size)
        at.loops.normalize_slopes(
            self.wide.x, self.by, self.wide.dx, K, h, self.inner.da)
        self.below.backward(self.inner, K, solver, step)


cdef class Projected(Hidden):
    """Projection to the number of features of a word: s = R [a | x].

    `TiedSoftmax` multiplies s by the features.

    Equivalent to ``reference.neural.projection``.

    Parameters
    ----------
    hidden : Hidden
        Hidden units, which compute a from x.
    R : Parameter
        Weights, (m, n_hidden), or (m, n_hidden + n_inputs) if x is projected too.
    inner : Activations
        Activations of `hidden`.
    at : Activations
        Activations of the network.
    scratch : Scratch
        Memory of the thread.
    """

    def __cinit__(
        self, Hidden hidden, Parameter R, Activations inner, Activations at,
        Scratch scratch,
    ):
        if R.rows != at.n_hidden or R.columns not in (
            inner.n_hidden, inner.n_hidden + at.n_inputs,
        ):
            raise ValueError(f"R of shape {R.rows, R.columns}")
        self.hidden, self.inner = hidden, inner
        self.by_a = Weighted(R, at, scratch, adds=False, n=inner.n_hidden)
        self.of_x = scratch.numbers(at.batch_size * R.rows)
        if R.columns > inner.n_hidden:
            self.by_x = Weighted(
                R, at, scratch, carries=at.learns_inputs, column=inner.n_hidden,
                n=at.n_inputs)

    cdef void forward(self, Activations at, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t m = at.n_hidden, size = m * at.itemsize, k
        self.hidden.forward(self.inner, K)
        self.by_a.forward(self.inner.a, at.a, K)
        if self.by_x is None:
            return
        self.by_x.forward(at.x, self.of_x, at.n_distinct[0])
        for k in range(K):
            at.loops.add(
                <char *>at.a + k * size, <char *>self.of_x + at.of[k] * size, m, 1)

    cdef void backward(
        self, Activations at, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t m = at.n_hidden, size = m * at.itemsize, n = at.n_distinct[0], k
        self.by_a.backward(self.inner.a, at.da, self.inner.da, K, solver, step)
        if self.by_x is not None:
            memset(self.of_x, 0, n * size)
            for k in range(K):
                at.loops.add(
                    <char *>self.of_x + at.of[k] * size, <char *>at.da + k * size, m, 1)
            self.by_x.backward(at.x, self.of_x, at.dx, n, solver, step)
        self.hidden.backward(self.inner, K, solver, step)
