"""The energy of a context and a next word, normalised over words (section 5.1).

``E = v . tanh(d + Hx) + b``, where x includes the features of the next word. The lower
layers compute the part of the context, z = d + H x of the context; the part of the
next word, H_next C(i), is computed once per update for all words and examples. An
example then takes |V| h tanhs, computed tile by tile, and again for the gradients,
because to keep them would take K |V| h numbers.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step
from nplm._kernels.neural.outputs._chunks cimport Chunks
from nplm._kernels.neural.outputs._output cimport Output, number


cdef class Energies(Output):
    """Base of the outputs whose logits are negative energies.

    A row of E is [v | b] of a word, or [b] if words share one v.

    Equivalent to ``reference.neural.energies``.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    scratch, at : Scratch, Activations
        See `Output`; a is z = d + Hx of the context, without a tanh.
    E, C, H_next : Parameter
        Rows of words, (any, n_hidden + 1 or 1, and more); features of all words,
        (any, m); hidden weights of the next word's features, (n_hidden, m).
    v : Parameter or None
        Output weights that all words share, (n_hidden,); None if E includes them.
    leader : Energies or None
        The first member of the team.
    **options
        Options of `Output`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, Parameter C,
        Parameter H_next, Parameter v, *, Energies leader, **options,
    ):
        cdef Py_ssize_t h = at.n_hidden, m = C.columns
        self.E, self.C, self.H_next, self.v = E, C, H_next, v
        self.h, self.m = h, m
        if h < 1 or H_next.rows != h or H_next.columns != m:
            raise ValueError(
                f"H_next of shape {H_next.rows, H_next.columns} is not {h, m}")
        if E.columns <= (h if v is None else 0) or (v is not None and v.columns != h):
            raise ValueError(f"rows of {E.columns} numbers, or v, are not of {h} units")
        self.lanes = round_up(h, 16)
        self.w_stride = self.lanes if v is None else 0
        if leader is None:
            self.z = scratch.numbers(at.batch_size * self.lanes)
            self.Ht = scratch.numbers(m * self.lanes)
        else:
            self.z, self.Ht = leader.z, leader.Ht
        self.n_slopes = at.batch_size * self.lanes + h * m + self.lanes
        self.slopes = scratch.numbers(self.n_slopes)
        self.dH_next = (
            <char *>self.slopes + at.batch_size * self.lanes * self.itemsize)
        self.dv_shared = <char *>self.dH_next + h * m * self.itemsize

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """Set z, as exp(-2 z), padded with zeros."""
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

    cdef void meet(self, const Words *words, Py_ssize_t n) noexcept nogil:
        """Compute G of n words from their features."""
        self.loops.forward_tile(
            words.C, n, self.m, self.m, self.Ht, self.lanes, words.G)
        self.loops.tanh_factors(words.G, n * self.lanes)

    cdef void weigh(self, const Words *words, Py_ssize_t n) noexcept nogil:
        """Fill w and bias of n words from their rows."""
        cdef bint own = self.v is None
        self.loops.energy_weights(
            words.E if own else <char *>self.v.values, self.E.columns if own else 0,
            words.E + self.h * self.itemsize if own else words.E, self.E.columns, n,
            self.h, words.w, self.w_stride, words.bias)

    cdef void logits(
        self, const Words *words, Py_ssize_t n, Py_ssize_t k, Py_ssize_t K, void *out,
    ) noexcept nogil:
        """Logits of n words for K examples from k on, in panels.

        Equivalent to, with ``a = np.tanh(z[:, None] + C @ H_next.T)``::

            out = -(np.einsum("kji,ji->kj", a, v) + b)
        """
        self.loops.energies(
            words.G, words.w, self.w_stride, words.bias, n, self.lanes,
            <char *>self.z + k * self.lanes * self.itemsize, K, out)

    cdef void begin_slopes(self, const Words *words, Py_ssize_t n) noexcept nogil:
        """Reset the slopes of n words."""
        if self.v is None:
            memset(words.dv, 0, n * self.lanes * self.itemsize)

    cdef void add_slopes(
        self, const Words *words, Py_ssize_t n, Py_ssize_t k, Py_ssize_t K,
        const void *g,
    ) noexcept nogil:
        """Backpropagate dL/dlogits, g in panels, of K examples from k on.

        Equivalent to, with a as in `logits`::

            ds = -g[:, :, None] * v * (1 - a**2)
            dz, dG = ds.sum(axis=1), ds.sum(axis=0)
            dv, sums = -np.einsum("kj,kji->ji", g, a), g.sum(axis=0)
        """
        cdef Py_ssize_t at = k * self.lanes * self.itemsize
        self.loops.energy_slopes(
            words.G, words.w, self.w_stride, n, self.lanes, <char *>self.z + at, g, K,
            <char *>self.slopes + at, words.dG, words.dv, words.sums)

    cdef void end_slopes(self, const Words *words, Py_ssize_t n) noexcept nogil:
        """Backpropagate the slopes of n words to their features, rows, and H_next.

        Equivalent to::

            dC, dE = dG @ H_next, np.hstack([dv, -sums])
            dH_next += dG.T @ C
        """
        cdef Py_ssize_t width = self.E.columns * self.itemsize, r
        cdef Py_ssize_t own = self.h * self.itemsize if self.v is None else 0
        cdef char *dE
        self.loops.product(
            False, False, n, self.m, self.h, 1, words.dG, self.lanes,
            self.H_next.values, self.m, 0, words.dC, self.m)
        self.loops.product(
            True, False, self.h, self.m, n, 1, words.dG, self.lanes, words.C, self.m, 1,
            self.dH_next, self.m)
        for r in range(n):
            dE = words.dE + r * width
            memcpy(dE, words.dv + r * self.lanes * self.itemsize, own)
            memset(dE + own, 0, width - own)
            self.loops.add(dE + own, words.sums + r * self.itemsize, 1, -1)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Return dL/dz, and update what words share from the sums of all members."""
        cdef Py_ssize_t size = self.h * self.itemsize, k
        for k in range(K):
            memcpy(<char *>self.at.da + k * size,
                   <char *>self.slopes + k * self.lanes * self.itemsize, size)
        memset(self.at.dx, 0, K * self.at.n_inputs * self.itemsize)
        solver.dense(step, self.H_next, 0, self.h, self.dH_next)
        if self.v is not None:
            solver.dense(step, self.v, 0, 1, self.dv_shared)


cdef class Energy(Energies):
    """The energies of all words.

    Equivalent to ``reference.neural.energies``.

    Parameters
    ----------
    tier, scratch, at, E, C, H_next, v
        See `Energies`.
    n_words, row : int
        Number of words of this member, and the row of E of the first.
    leader : Energy or None
        The first member of the team.
    tile_rows : int
        Number of words of a tile, whose arrays then stay in cache for all examples.
    **options
        Options of `Energies`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, Parameter C, *args,
        Py_ssize_t n_words, Py_ssize_t row, Energy leader, Py_ssize_t tile_rows=64,
        **options,
    ):
        cdef Py_ssize_t m = self.m, size = self.itemsize, lanes = self.lanes
        cdef Py_ssize_t own_rows
        cdef Words *words = &self.all_words
        if row < 0 or row + n_words > E.rows or self.first + n_words > C.rows:
            raise ValueError(
                f"{E.rows} rows and {C.rows} features lack the {n_words} from {row} on")
        self.row = row
        self.tile_rows = max(1, min(tile_rows, n_words))
        self.n_tiles = (n_words + self.tile_rows - 1) // self.tile_rows
        # Scoring needs the exponentials of one tile, not of all words.
        self.chunks = Chunks(
            tier, scratch, at, n_words=n_words, size=self.tile_rows,
            tile_rows=self.tile_rows, columns=self.wide)
        self.p = scratch.numbers(
            self.wide * (self.tile_rows if at.scoring else max(1, n_words)))
        words.C = <char *>C.values + self.first * m * size
        words.E = <char *>E.values + row * E.columns * size
        words.G = <char *>scratch.numbers(max(1, n_words) * lanes)
        own_rows = self.tile_rows if self.v is None else 1
        words.w = <char *>scratch.numbers(own_rows * lanes)
        words.bias = <char *>scratch.numbers(self.tile_rows)
        self.one_G = <char *>scratch.numbers(lanes)
        if at.scoring:
            return
        self.dC = scratch.numbers(C.rows * m) if leader is None else leader.dC
        words.dC = <char *>self.dC + self.first * m * size
        words.dG = <char *>scratch.numbers(self.tile_rows * lanes)
        words.dv = <char *>(
            scratch.numbers(own_rows * lanes) if self.v is None else self.dv_shared)
        words.sums = <char *>scratch.numbers(self.tile_rows)
        words.dE = <char *>scratch.numbers(self.tile_rows * E.columns)

    cdef Words tile(self, Py_ssize_t first) noexcept nogil:
        """Return the words from one on; all tiles share the memory of a tile."""
        cdef Words words = self.all_words
        words.C += first * self.m * self.itemsize
        words.E += first * self.E.columns * self.itemsize
        words.G += first * self.lanes * self.itemsize
        words.dC += first * self.m * self.itemsize
        return words

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute the logits of K examples, their maximum and sum of exponentials.

        In training the exponentials (relative to their tile's maximum) stay in p.
        """
        cdef Py_ssize_t size = self.itemsize, tile, first, n
        cdef Words words
        cdef char *p
        self.chunks.begin(self.words, self.first, K, &self.own)
        for tile in range(self.n_tiles):
            first = tile * self.tile_rows
            n = min(self.tile_rows, self.n_words - first)
            words = self.tile(first)
            p = <char *>self.p + (0 if self.at.scoring else first * self.wide * size)
            if not self.ready:  # once per update, or once for all scores
                self.meet(&words, n)
            self.weigh(&words, n)
            self.logits(&words, n, 0, K, p)
            if logits != NULL:
                self.loops.out_of_panels(
                    p, n, K, <char *>logits + first * size, self.n_words)
            self.chunks.add(p, first, n, K, &self.own)
        self.ready = self.at.scoring
        self.chunks.total(K, &self.own)

    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil:
        cdef Words one = self.tile(word - self.first)
        one.G = self.one_G
        self.meet(&one, 1)
        self.weigh(&one, 1)
        self.logits(&one, 1, k, 1, self.p)
        return number(self.p, 0, self.itemsize)

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute the gradients of the log-likelihood, and update the rows.

        From ``g = np.eye(n_words)[words - first] - p``, p the probabilities.
        """
        cdef Py_ssize_t columns = self.wide, tile, first, n
        cdef Words words
        cdef char *p
        memset(self.slopes, 0, self.n_slopes * self.itemsize)
        for tile in range(self.n_tiles):
            first = tile * self.tile_rows
            n = min(self.tile_rows, self.n_words - first)
            words = self.tile(first)
            p = <char *>self.p + first * columns * self.itemsize
            self.chunks.share(first, n, K, &self.all)
            self.loops.scale_columns(p, n, n, columns, self.chunks.factors)
            self.loops.add_targets(p, first, n, self.chunks.targets, K, columns)
            self.weigh(&words, n)
            self.begin_slopes(&words, n)
            self.add_slopes(&words, n, 0, K, p)
            self.end_slopes(&words, n)
            solver.dense(step, self.E, self.row + first, n, words.dE)

    cdef void follow(self, Solver solver, const Step *step) noexcept nogil:
        solver.features(step, self.dC)
