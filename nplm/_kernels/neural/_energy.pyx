"""The energy of a context and a next word, normalised over words (section 5.1).

``E = v . tanh(d + Hx) + b``, where x has the features of the next word too. What
comes from below is the context's part of the sum, z = d + H x of the context; the
next word's, H_next C(i), is computed once an update for all words, and shared by the
examples. So the work is |V| h tanhs an example, done a tile of words at a time, and
done again for the gradients: to keep the tanhs would take K |V| h numbers.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._output cimport Output
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step


cdef class Energy(Output):
    """Minus an energy for a logit.

    A row of E is [v | b] of a word, or [b] where words share one v.

    Equivalent to ``reference.neural.energies``.

    Parameters
    ----------
    tier : Tier
        Whose loops.
    scratch, at : Scratch, Activations
        See `Output`; a is z = d + Hx of the context, without a tanh.
    E, C, H_next : Parameter
        Rows of words, (any, n_hidden + 1 or 1, and more); features of all words,
        (any, m); hidden weights that meet the next word's, (n_hidden, m).
    v : Parameter or None
        Output weights that all words share, (n_hidden,); None where E has them.
    n_words, row : int
        This member's words, and the row of E that is their first's.
    leader : Energy or None
        The team's first member.
    solver : Solver or None
        Who trains. Scoring, which has none, needs one tile of exponentials instead of
        all words'.
    tile_rows : int
        Words of a tile, so that what they share with all examples stays in cache.
    **options
        Of `Output`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, Parameter C,
        Parameter H_next, Parameter v, *, Py_ssize_t n_words, Py_ssize_t row,
        Energy leader, Solver solver, Py_ssize_t tile_rows=64, **options,
    ):
        cdef Py_ssize_t h = at.n_hidden, m = C.columns
        self.E, self.C, self.H_next, self.v = E, C, H_next, v
        self.solver, self.row, self.h, self.m = solver, row, h, m
        if h < 1 or H_next.rows != h or H_next.columns != m:
            raise ValueError(
                f"H_next of shape {H_next.rows, H_next.columns} is not {h, m}")
        if row < 0 or row + n_words > E.rows or E.columns <= (h if v is None else 0):
            raise ValueError(
                f"E of shape {E.rows, E.columns} lacks the {n_words} rows from {row} on")
        if self.first + n_words > C.rows or (v is not None and v.columns != h):
            raise ValueError(f"{C.rows} features, or v, are not those of E's words")
        self.lanes = round_up(h, 16)
        self.w_stride = self.lanes if v is None else 0
        self.tile_rows = max(1, min(tile_rows, n_words))
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows
        self.targets = <int *>scratch.bytes(at.batch_size * sizeof(int))
        if leader is None:
            self.z = scratch.numbers(at.batch_size * self.lanes)
            self.Ht = scratch.numbers(m * self.lanes)
        else:
            self.z, self.Ht = leader.z, leader.Ht
        self.one = scratch.numbers(self.lanes)
        self.G = scratch.numbers(max(1, n_words) * self.lanes)
        self.p = scratch.numbers(
            self.wide * (self.tile_rows if at.scoring else max(1, n_words)))
        self.tile_max = scratch.numbers(self.n_tiles * self.wide)
        self.tile_sum = scratch.numbers(self.n_tiles * self.wide)
        self.factor = scratch.numbers(self.wide)
        self.w = scratch.numbers(self.tile_rows * self.lanes)
        self.bias = scratch.numbers(self.tile_rows)
        self.n_slopes = at.batch_size * self.lanes + h * m + self.lanes
        self.slopes = scratch.numbers(self.n_slopes)
        if solver is None:
            return
        self.dC = scratch.numbers(C.rows * m) if leader is None else leader.dC
        self.dH_next = (
            <char *>self.slopes + at.batch_size * self.lanes * self.itemsize)
        self.dv_shared = <char *>self.dH_next + h * m * self.itemsize
        self.dG = scratch.numbers(self.tile_rows * self.lanes)
        self.dv = (self.dv_shared if v is not None
                   else scratch.numbers(self.tile_rows * self.lanes))
        self.sums = scratch.numbers(self.tile_rows)
        self.dE = scratch.numbers(self.tile_rows * E.columns)

    cdef void *rows_of(self, Parameter p, Py_ssize_t row) noexcept nogil:
        return <char *>p.values + row * p.columns * self.itemsize

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """Take z, in the form in which it is added; zeros fill up the lanes."""
        cdef Py_ssize_t size = self.h * self.itemsize, k
        cdef Py_ssize_t whole = self.lanes * self.itemsize
        cdef char *z
        for k in range(K):
            z = <char *>self.z + k * whole
            memcpy(z, <char *>self.at.a + k * size, size)
            memset(z + size, 0, whole - size)
        self.loops.tanh_factors(self.z, K * self.lanes)
        if not self.ready:
            self.loops.into_panels(
                self.H_next.values, self.m, self.h, self.m, self.Ht, self.lanes)

    cdef void meet(self) noexcept nogil:
        """Make G of this member's words: once an update, or once for all scores."""
        cdef Py_ssize_t tile, first, rows
        cdef void *G
        if self.ready:
            return
        for tile in range(self.n_tiles):
            first = tile * self.tile_rows
            rows = min(self.tile_rows, self.n_words - first)
            G = <char *>self.G + first * self.lanes * self.itemsize
            self.loops.forward_tile(
                self.rows_of(self.C, self.first + first), rows, self.m, self.m, self.Ht,
                self.lanes, G)
            self.loops.tanh_factors(G, rows * self.lanes)
        self.ready = self.at.scoring

    cdef void weigh(self, Py_ssize_t first, Py_ssize_t rows) noexcept nogil:
        """Fill w and bias for some words."""
        cdef char *E = <char *>self.rows_of(self.E, self.row + first)
        cdef bint own = self.v is None
        self.loops.energy_weights(
            E if own else <char *>self.v.values, self.E.columns if own else 0,
            E + self.h * self.itemsize if own else E, self.E.columns, rows, self.h,
            self.w, self.w_stride, self.bias)

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Logits of K examples, and their maximum and sum of exponentials.

        Equivalent to, with ``a = np.tanh(z[:, None] + C @ H_next.T)``::

            y = -(np.einsum("kji,ji->kj", a, v) + b)
            high = y.max(axis=1)
            sum = np.exp(y - high[:, None]).sum(axis=1)
            target = y[np.arange(K), words - first]

        In training the exponentials (relative to their tile's maximum) stay in p.
        """
        cdef Py_ssize_t columns = self.wide, size = self.itemsize
        cdef Py_ssize_t tile, first, rows, k
        cdef char *p
        cdef char *high
        cdef char *total
        for k in range(K):
            self.targets[k] = self.at.words[k] - <int>self.first
            self.own.target[k] = -INFINITY
            self.own.high[k] = -INFINITY
            self.own.sum[k] = 0
        self.meet()
        for tile in range(self.n_tiles):
            first = tile * self.tile_rows
            rows = min(self.tile_rows, self.n_words - first)
            p = <char *>self.p + (0 if self.at.scoring else first * columns * size)
            high = <char *>self.tile_max + tile * columns * size
            total = <char *>self.tile_sum + tile * columns * size
            self.weigh(first, rows)
            self.loops.energies(
                <char *>self.G + first * self.lanes * size, self.w, self.w_stride,
                self.bias, rows, self.lanes, self.z, K, p)
            if logits != NULL:
                self.loops.out_of_panels(
                    p, rows, K, <char *>logits + first * size, self.n_words)
            self.loops.choose(
                p, first, rows, self.targets, K, columns, self.own.target)
            self.loops.exp_columns(p, rows, rows, columns, high, total)
            self.loops.raise_maxima(high, K, self.own.high)
        for tile in range(self.n_tiles):
            self.loops.exp_differences(
                <char *>self.tile_max + tile * columns * size, self.own.high, columns,
                self.factor)
            self.loops.add_scaled(
                <char *>self.tile_sum + tile * columns * size, self.factor, K,
                self.own.sum)

    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil:
        cdef Py_ssize_t size = self.itemsize
        cdef char *z = <char *>self.z + k * self.lanes * size
        self.loops.forward_tile(
            self.rows_of(self.C, word), 1, self.m, self.m, self.Ht, self.lanes, self.one)
        self.loops.tanh_factors(self.one, self.lanes)
        self.weigh(word - self.first, 1)
        self.loops.energies(self.one, self.w, self.w_stride, self.bias, 1, self.lanes, z,
                            1, self.p)
        return (<float *>self.p)[0] if size == 4 else (<double *>self.p)[0]

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Gradients of the log-likelihood, and the update of the rows.

        Equivalent to, with a, y and ``p`` the probabilities::

            g = np.eye(n_words)[words - first] - p
            ds = -g[:, :, None] * v * (1 - a**2)
            dz, dG = ds.sum(axis=1), ds.sum(axis=0)
            dC, dH_next = dG @ H_next, dG.T @ C
            dv, db = -np.einsum("kj,kji->ji", g, a), -g.sum(axis=0)
        """
        cdef Py_ssize_t columns = self.wide, size = self.itemsize, lanes = self.lanes
        cdef Py_ssize_t tile, first, rows, r, width = self.E.columns
        cdef Py_ssize_t fixed = self.h if self.v is None else 0
        cdef char *p
        cdef char *dE
        cdef void *G
        self.step = step[0]
        memset(self.slopes, 0, self.n_slopes * size)
        for tile in range(self.n_tiles):
            first = tile * self.tile_rows
            rows = min(self.tile_rows, self.n_words - first)
            p = <char *>self.p + first * columns * size
            G = <char *>self.G + first * lanes * size
            self.loops.exp_differences(
                <char *>self.tile_max + tile * columns * size, self.all.high, columns,
                self.factor)
            self.loops.share(self.factor, self.all.sum, K, columns)
            self.loops.scale_columns(p, rows, rows, columns, self.factor)
            self.loops.add_targets(p, first, rows, self.targets, K, columns)
            self.weigh(first, rows)
            if self.v is None:
                memset(self.dv, 0, rows * lanes * size)
            self.loops.energy_slopes(
                G, self.w, self.w_stride, rows, lanes, self.z, p, K, self.slopes,
                self.dG, self.dv, self.sums)
            self.loops.product(
                False, False, rows, self.m, self.h, 1, self.dG, lanes,
                self.H_next.values, self.m, 0,
                <char *>self.dC + (self.first + first) * self.m * size, self.m)
            self.loops.product(
                True, False, self.h, self.m, rows, 1, self.dG, lanes,
                self.rows_of(self.C, self.first + first), self.m, 1, self.dH_next,
                self.m)
            for r in range(rows):
                dE = <char *>self.dE + r * width * size
                memcpy(dE, <char *>self.dv + r * lanes * size, fixed * size)
                memset(dE + fixed * size, 0, (width - fixed) * size)
                self.loops.add(dE + fixed * size, <char *>self.sums + r * size, 1, -1)
            solver.dense(step, self.E, self.row + first, rows, self.dE)

    cdef void end(self, Py_ssize_t K) noexcept nogil:
        """Give dL/dz, and let what words share, and the features, follow the sums."""
        cdef Py_ssize_t size = self.h * self.itemsize, k
        for k in range(K):
            memcpy(<char *>self.at.da + k * size,
                   <char *>self.slopes + k * self.lanes * self.itemsize, size)
        memset(self.at.dx, 0, K * self.at.n_inputs * self.itemsize)
        self.solver.dense(&self.step, self.H_next, 0, self.h, self.dH_next)
        if self.v is not None:
            self.solver.dense(&self.step, self.v, 0, 1, self.dv_shared)
        self.solver.features(&self.step, self.dC)
