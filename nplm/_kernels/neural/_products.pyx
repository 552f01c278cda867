"""The matrix products of a tile of words: logits, gradient, update.

Each multiplies by what `begin` was given, the z = [a | x | 1] of K examples, both
ways round. The slopes g are dL/dy of a tile, (rows, columns).
"""

from nplm._kernels.neural._loops cimport (
    PANEL, Scratch, Tier, bf16, pair_place, round_bf16, round_up,
)


cdef class Products:
    """Products in full precision, by the loops of a tier.

    No twin: each verb's docstring is its line of NumPy.

    Parameters
    ----------
    tier : Tier
        Whose loops.
    scratch : Scratch
        Where memory is taken.
    columns : int
        K rounded up to whole vectors.
    n_outputs, stride : int
        Parameters of an output row, and the same rounded up.
    tile_rows : int
        Words of a tile.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t columns, Py_ssize_t n_outputs,
        Py_ssize_t stride, Py_ssize_t tile_rows,
    ):
        self.loops = tier.loops
        self.columns, self.n_outputs, self.stride = columns, n_outputs, stride

    cdef void begin(self, void *z, void *zt, Py_ssize_t K) noexcept nogil:
        """What all tiles of a mini-batch multiply."""
        self.z, self.zt = z, zt

    cdef void logits(self, void *E, Py_ssize_t rows, void *logits) noexcept nogil:
        """``logits[:] = E @ z.T``."""
        if self.columns == 1:
            self.loops.forward_column(
                E, rows, self.stride, self.n_outputs, self.z, logits)
        else:
            self.loops.forward_tile(
                E, rows, self.stride, self.n_outputs, self.zt, self.columns, logits)

    cdef void slopes(
        self, void *p, void *factor, Py_ssize_t first, Py_ssize_t rows,
        const int *targets, Py_ssize_t K,
    ) noexcept nogil:
        """``g = factor * p``, in its place, and 1 more for each target."""
        self.loops.scale_columns(p, rows, self.columns, factor)
        self.loops.add_targets(p, first, rows, targets, K, self.columns)

    cdef void gradient(self, void *E, Py_ssize_t rows, void *g, void *dzt) noexcept nogil:
        """``dzt += E.T @ g``."""
        # dL/dz of the constant 1, the last of z, is of no use: one row less.
        self.loops.backward_tile(
            E, rows, self.stride, self.n_outputs - 1, g, self.columns, dzt)

    cdef void update(
        self, void *E, Py_ssize_t rows, void *g, Py_ssize_t K, double rate, void *keep,
    ) noexcept nogil:
        """``E[:] = keep * E + rate * g @ z``."""
        self.loops.update_tile(E, rows, self.stride, g, self.columns, K, self.z, rate, keep)


cdef class Bfloat16Products(Products):
    """Products of numbers rounded to bfloat16, with sums in float32.

    Equivalent to those of ``reference.neural.bfloat16`` numbers.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t columns, Py_ssize_t n_outputs,
        Py_ssize_t stride, Py_ssize_t tile_rows,
    ):
        cdef Py_ssize_t R = round_up(tile_rows, PANEL)
        cdef Py_ssize_t D = round_up(stride, PANEL)
        cdef Py_ssize_t N = round_up(columns, PANEL)
        self.bfloat16 = tier.bfloat16
        self.R, self.D, self.N = R, D, N
        self.left_E = <bf16 *>scratch.bytes(2 * R * D)
        self.left_g = <bf16 *>scratch.bytes(2 * R * N)
        self.right_zt = <bf16 *>scratch.bytes(2 * D * N)
        self.right_g = <bf16 *>scratch.bytes(2 * R * N)
        self.right_z = <bf16 *>scratch.bytes(2 * N * D)
        self.ones = <float *>scratch.numbers(N)
        tier.loops.fill(self.ones, N, 1, 1)

    cdef void begin(self, void *z, void *zt, Py_ssize_t K) noexcept nogil:
        self.bfloat16.pack_pairs(
            <float *>zt, self.columns, self.n_outputs, self.columns, self.right_zt,
            self.D * PANEL)
        self.bfloat16.pack_pairs(
            <float *>z, self.stride, K, self.stride, self.right_z, self.N * PANEL)

    cdef void logits(self, void *E, Py_ssize_t rows, void *logits) noexcept nogil:
        self.bfloat16.pack_rows(
            <float *>E, self.stride, rows, self.stride, self.left_E, self.D)
        self.bfloat16.product(
            self.left_E, self.D, self.right_zt, self.D * PANEL, rows, self.columns,
            self.n_outputs, <float *>logits, self.columns, NULL, 0)

    cdef void slopes(
        self, void *p, void *factor, Py_ssize_t first, Py_ssize_t rows,
        const int *targets, Py_ssize_t K,
    ) noexcept nogil:
        cdef float *rounded_of = <float *>p
        cdef Py_ssize_t k, row
        cdef bf16 slope
        self.bfloat16.pack_scaled(
            rounded_of, rows, self.columns, <float *>factor, self.left_g, self.N,
            self.right_g, self.R * PANEL)
        for k in range(K):
            row = targets[k] - first
            if 0 <= row < rows:
                slope = round_bf16(
                    rounded_of[row * self.columns + k] * (<float *>factor)[k] + 1)
                self.left_g[row * self.N + k] = slope
                self.right_g[pair_place(row, k, self.R * PANEL)] = slope

    cdef void gradient(self, void *E, Py_ssize_t rows, void *g, void *dzt) noexcept nogil:
        self.bfloat16.pack_columns(
            <float *>E, self.stride, rows, self.stride, self.left_E, self.R)
        self.bfloat16.product(
            self.left_E, self.R, self.right_g, self.R * PANEL, self.n_outputs - 1,
            self.columns, rows, <float *>dzt, self.columns, self.ones, 1)

    cdef void update(
        self, void *E, Py_ssize_t rows, void *g, Py_ssize_t K, double rate, void *keep,
    ) noexcept nogil:
        self.bfloat16.product(
            self.left_g, self.N, self.right_z, self.N * PANEL, rows, self.stride,
            self.columns, <float *>E, self.stride, <float *>keep, <float>rate)
