"""The matrix products of a tile of words: logits, gradient, update.

Each multiplies by the z = [a | x | 1] of K examples, the argument of `begin`. The
logits of a tile, and the slopes g = dL/dy that replace them, are (rows, columns) in
panels: 16 columns are contiguous, row after row. A product then rereads contiguous
memory, whatever the length of a row.
"""

from libc.string cimport memcpy, memset

from nplm._kernels.neural._loops cimport (
    LINE, PANEL, Scratch, Tier, bf16, pair_place, round_bf16, round_up,
)


def products_of(Tier tier, *args, Py_ssize_t columns, **options):
    """Return the products of a tier: a single example is not rounded to bfloat16.

    It is bound by memory, where bfloat16 gains nothing.

    No twin: it chooses between two classes that have one each.
    """
    rounded = tier.bfloat16 != NULL and columns > 1
    return (Bfloat16Products if rounded else Products)(
        tier, *args, columns=columns, **options)


cdef class Products:
    """Products in full precision, by the loops of a tier.

    No twin: each verb's docstring is its line of NumPy.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    scratch : Scratch
        Memory of the thread.
    columns : int
        K rounded up to whole vectors.
    n_outputs, stride : int
        Number of parameters of a row of E, and the distance to the next row, as of z;
        unless it is a multiple of 16, the ends of rows are copied to and fro.
    tile_rows : int
        Maximum number of rows of a tile.
    n_slopes : int, optional
        Number of values of z whose slopes are needed; all but the constant by default.
    column, E_stride : int, optional
        First of the columns of E that are multiplied, and the distance to the next row
        of it; by default all of its columns are.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t columns, Py_ssize_t n_outputs,
        Py_ssize_t stride, Py_ssize_t tile_rows, Py_ssize_t n_slopes=-1,
        Py_ssize_t column=0, Py_ssize_t E_stride=-1,
    ):
        cdef Py_ssize_t rows = round_up(stride, LINE)
        self.loops, self.itemsize = tier.loops, tier.itemsize
        self.columns, self.n_outputs, self.stride = columns, n_outputs, stride
        self.column, self.E_stride = column, stride if E_stride < 0 else E_stride
        self.n_slopes = n_outputs - 1 if n_slopes < 0 else n_slopes
        self.n_whole = n_outputs if rows == stride else rows - LINE
        if columns > 1:
            self.z = scratch.numbers(rows * columns)
            self.zt = scratch.numbers(n_outputs * columns)
            self.dz = scratch.numbers(rows * columns)
        if rows > stride:
            self.rest = scratch.numbers(tile_rows * LINE)

    cdef void narrow(self, Py_ssize_t K) noexcept nogil:
        """Multiply no more columns than K vectors need, until the next call."""
        if self.columns > 1:
            self.columns = round_up(K, LINE)

    cdef void *part(self, void *E) noexcept nogil:
        """Return the columns of E that are multiplied, of the first row."""
        return <char *>E + self.column * self.itemsize

    cdef void begin(self, void *z, Py_ssize_t K) noexcept nogil:
        """Set z, (K, stride), which all tiles of a mini-batch multiply."""
        self.begin_update(z, K)
        if self.columns > 1:
            self.loops.into_panels(
                z, self.stride, K, self.n_outputs, self.zt, self.columns)

    cdef void begin_update(self, void *z, Py_ssize_t K) noexcept nogil:
        """Set z for `update` only."""
        if self.columns == 1:
            self.z = z
            return
        self.loops.pack(z, self.stride, K, self.stride, self.z, self.columns)

    cdef void logits(self, void *E, Py_ssize_t rows, void *logits) noexcept nogil:
        """``logits[:] = E @ z.T``, in panels."""
        if self.columns == 1:
            self.loops.forward_column(
                self.part(E), rows, self.E_stride, self.n_outputs, self.z, logits)
        else:
            self.loops.forward_tile(
                self.part(E), rows, self.E_stride, self.n_outputs, self.zt, self.columns,
                logits)

    cdef void slopes(
        self, void *p, void *factors, Py_ssize_t chunk, Py_ssize_t first,
        Py_ssize_t rows, const int *targets, Py_ssize_t K,
    ) noexcept nogil:
        """Compute ``g = factor * p`` in place, plus 1 for each target.

        Each chunk of rows has its own factors, (columns,).
        """
        cdef Py_ssize_t size = self.itemsize, i
        for i in range((rows + chunk - 1) // chunk):
            self.loops.scale_columns(
                <char *>p + i * chunk * LINE * size, min(chunk, rows - i * chunk), rows,
                self.columns, <char *>factors + i * self.columns * size)
        self.loops.add_targets(p, first, rows, targets, K, self.columns)

    cdef void take(self, void *g, Py_ssize_t rows, bint carries) noexcept nogil:
        """Take slopes g in panels, before `update`, and `carry` if that comes."""

    cdef void carry(
        self, void *E, Py_ssize_t rows, void *g, void *dv, Py_ssize_t K, bint adds,
    ) noexcept nogil:
        """Compute ``dv += g.T @ E`` if it `adds`, else ``dv = g.T @ E``, row-major."""
        if adds:
            self.loops.pack(dv, self.stride, K, self.stride, self.dz, self.columns)
        else:
            memset(self.dz, 0,
                   round_up(self.stride, LINE) * self.columns * self.itemsize)
        self.gradient(E, rows, g)
        self.loops.unpack(self.dz, self.columns, K, self.stride, dv, self.stride)

    cdef void gradient(self, void *E, Py_ssize_t rows, void *g) noexcept nogil:
        """Compute ``dz += g.T @ E``, which `end` returns."""
        cdef Py_ssize_t whole = self.n_whole, size = self.itemsize
        E = self.part(E)
        self.loops.backward_tile(
            E, rows, self.E_stride, min(whole, self.n_slopes), g, self.columns, self.dz)
        if whole < self.n_outputs:
            self.loops.pack(<char *>E + whole * size, self.E_stride, rows,
                            self.n_outputs - whole, self.rest, rows)
            self.loops.backward_tile(
                self.rest, rows, LINE, self.n_slopes - whole, g, self.columns,
                <char *>self.dz + whole * self.columns * size)

    cdef void update(
        self, void *E, Py_ssize_t rows, void *g, Py_ssize_t K, double rate, void *keep,
    ) noexcept nogil:
        """``E[:] = keep * E + rate * g @ z``."""
        cdef Py_ssize_t whole = self.n_whole, size = self.itemsize
        cdef char *rest = <char *>self.part(E) + whole * size
        self.change(self.part(E), rows, self.E_stride, 0, whole, g, K, rate, keep)
        if whole < self.n_outputs:
            self.loops.pack(
                rest, self.E_stride, rows, self.n_outputs - whole, self.rest, rows)
            self.change(self.rest, rows, LINE, whole, self.n_outputs - whole, g, K,
                        rate, <char *>keep + whole * size)
            self.loops.unpack(
                self.rest, rows, rows, self.n_outputs - whole, rest, self.E_stride)

    cdef void change(
        self, void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t first,
        Py_ssize_t n, void *g, Py_ssize_t K, double rate, void *keep,
    ) noexcept nogil:
        """``E[:, :n] = keep * E[:, :n] + rate * g @ z[:, first:first + n]``."""
        self.loops.update_tile(
            E, rows, stride, n, g, self.columns, min(K, self.columns),
            <char *>self.z + first * self.columns * self.itemsize, rate, keep)

    cdef void end(self, void *dzt) noexcept nogil:
        """``dzt[:] = dz.T``, the sum of all gradients, row-major."""
        self.loops.out_of_panels(
            self.dz, self.columns, self.stride, dzt, self.columns)
        memset(self.dz, 0, self.stride * self.columns * self.itemsize)


cdef class Bfloat16Products(Products):
    """Products of numbers rounded to bfloat16, with sums in float32.

    Equivalent to those of ``reference.neural.bfloat16`` numbers.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t columns, Py_ssize_t n_outputs,
        Py_ssize_t stride, Py_ssize_t tile_rows, **options,
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

    cdef void begin(self, void *z, Py_ssize_t K) noexcept nogil:
        cdef Py_ssize_t j
        self.loops.transpose(
            z, self.stride, K, self.n_outputs, self.zt, self.columns)
        for j in range(self.n_outputs if K < self.columns else 0):
            memset(<float *>self.zt + j * self.columns + K, 0,
                   (self.columns - K) * sizeof(float))
        self.bfloat16.pack_pairs(
            <float *>self.zt, self.columns, self.n_outputs, self.columns, self.right_zt,
            self.D * PANEL)
        self.begin_update(z, K)

    cdef void begin_update(self, void *z, Py_ssize_t K) noexcept nogil:
        self.bfloat16.pack_pairs(
            <float *>z, self.stride, K, self.stride, self.right_z, self.N * PANEL)

    cdef void logits(self, void *E, Py_ssize_t rows, void *logits) noexcept nogil:
        self.bfloat16.pack_rows(
            <float *>self.part(E), self.E_stride, rows, self.stride, self.left_E, self.D)
        self.bfloat16.product(
            self.left_E, self.D, self.right_zt, self.D * PANEL, rows, self.columns,
            self.n_outputs, <float *>logits, LINE, rows * LINE, NULL, 0)

    cdef void slopes(
        self, void *p, void *factors, Py_ssize_t chunk, Py_ssize_t first,
        Py_ssize_t rows, const int *targets, Py_ssize_t K,
    ) noexcept nogil:
        """Of a tile that is one chunk."""
        cdef float *rounded_of = <float *>p
        cdef Py_ssize_t k, row
        cdef bf16 slope
        self.bfloat16.pack_scaled(
            rounded_of, rows, self.columns, <float *>factors, self.left_g, self.N,
            self.right_g, self.R * PANEL)
        for k in range(K):
            row = targets[k] - first
            if 0 <= row < rows:
                slope = round_bf16(
                    rounded_of[(k // LINE * rows + row) * LINE + k % LINE]
                    * (<float *>factors)[k] + 1)
                self.left_g[row * self.N + k] = slope
                self.right_g[pair_place(row, k, self.R * PANEL)] = slope

    cdef void take(self, void *g, Py_ssize_t rows, bint carries) noexcept nogil:
        self.bfloat16.pack_scaled(
            <float *>g, rows, self.columns, self.ones, self.left_g, self.N,
            self.right_g if carries else NULL, self.R * PANEL)

    cdef void carry(
        self, void *E, Py_ssize_t rows, void *g, void *dv, Py_ssize_t K, bint adds,
    ) noexcept nogil:
        if adds:
            self.loops.transpose(dv, self.stride, K, self.stride, self.dz, self.columns)
        else:
            memset(self.dz, 0, self.stride * self.columns * self.itemsize)
        self.gradient(E, rows, g)
        self.loops.transpose(self.dz, self.columns, self.stride, K, dv, self.stride)

    cdef void gradient(self, void *E, Py_ssize_t rows, void *g) noexcept nogil:
        """Compute ``dz.T += E.T @ g``, row-major."""
        self.bfloat16.pack_columns(
            <float *>self.part(E), self.E_stride, rows, self.stride, self.left_E, self.R)
        self.bfloat16.product(
            self.left_E, self.R, self.right_g, self.R * PANEL, self.n_slopes,
            self.columns, rows, <float *>self.dz, self.columns, LINE, self.ones, 1)

    cdef void change(
        self, void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t first,
        Py_ssize_t n, void *g, Py_ssize_t K, double rate, void *keep,
    ) noexcept nogil:
        self.bfloat16.product(
            self.left_g, self.N, self.right_z + pair_place(0, first, self.N * PANEL),
            self.N * PANEL, rows, round_up(n, LINE), self.columns, <float *>E, stride,
            LINE, <float *>keep, <float>rate)

    cdef void end(self, void *dzt) noexcept nogil:
        cdef Py_ssize_t n_bytes = self.stride * self.columns * self.itemsize
        memcpy(dzt, self.dz, n_bytes)
        memset(self.dz, 0, n_bytes)


cdef class Recurrence:
    """Products with the same weights again and again, of panels of columns.

    Those of a recurrent layer from step to step. `begin` packs the weights, once an
    update, for both directions.

    No twin: each verb's docstring is its line of NumPy.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    scratch : Scratch
        Memory of the thread.
    rows, n : int
        Shape of the weights.
    columns : int
        Maximum number of columns of a step, in whole panels of 16.
    scoring : bool
        Whether there are no gradients.
    rounds : bool
        Whether a tier of bfloat16 rounds.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, *, Py_ssize_t rows, Py_ssize_t n,
        Py_ssize_t columns, bint scoring, bint rounds,
    ):
        cdef Py_ssize_t R = round_up(rows, PANEL), D = round_up(n, PANEL)
        cdef Py_ssize_t N = round_up(columns, PANEL)
        self.loops, self.scoring = tier.loops, scoring
        self.bfloat16, self.itemsize = tier.bfloat16 if rounds else NULL, tier.itemsize
        self.rows, self.n, self.R, self.D = rows, n, R, D
        # Rows that begin in different sets of the nearest cache.
        self.stride = round_up(rows, LINE) + LINE
        if self.bfloat16 != NULL:
            self.left = <bf16 *>scratch.bytes(2 * R * D)
            self.left_t = <bf16 *>scratch.bytes(2 * R * D)
            self.right = <bf16 *>scratch.bytes(2 * max(R, D) * N)
            return
        self.column = scratch.numbers(max(rows, n))
        if not scoring:
            self.transposed = scratch.numbers(n * self.stride)

    cdef void begin(self, void *weights) noexcept nogil:
        """Set the weights, (rows, n), of all further products."""
        self.weights = weights
        if self.bfloat16 != NULL:
            self.bfloat16.pack_rows(
                <float *>weights, self.n, self.rows, self.n, self.left, self.D)
            if not self.scoring:
                self.bfloat16.pack_columns(
                    <float *>weights, self.n, self.rows, self.n, self.left_t, self.R)
        elif not self.scoring:
            self.loops.transpose(
                weights, self.n, self.rows, self.n, self.transposed, self.stride)

    cdef void forward(self, void *a, void *out, Py_ssize_t K) noexcept nogil:
        """``out = weights @ a``, (rows, K) and (n, K) in panels."""
        if self.bfloat16 != NULL:
            self.rounded(self.left, self.D, self.rows, self.n, a, out, K)
        else:
            self.whole(self.weights, self.n, self.rows, self.n, a, out, K)

    cdef void backward(self, void *g, void *out, Py_ssize_t K) noexcept nogil:
        """``out = weights.T @ g``, (n, K) and (rows, K) in panels."""
        if self.bfloat16 != NULL:
            self.rounded(self.left_t, self.R, self.n, self.rows, g, out, K)
        else:
            self.whole(self.transposed, self.stride, self.n, self.rows, g, out, K)

    cdef void whole(
        self, const void *left, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t depth,
        void *right, void *out, Py_ssize_t K,
    ) noexcept nogil:
        """``out = left @ right``, in full precision."""
        if K > 1:
            self.loops.forward_tile(
                left, rows, stride, depth, right, round_up(K, LINE), out)
            return
        # To the same bits, with a sixteenth of the products.
        self.loops.out_of_panels(right, depth, 1, self.column, depth)
        self.loops.forward_column(left, rows, stride, depth, self.column, out)
        memcpy(self.column, out, rows * self.itemsize)
        self.loops.into_panels(self.column, rows, 1, rows, out, LINE)

    cdef void rounded(
        self, const bf16 *left, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t depth,
        void *right, void *out, Py_ssize_t K,
    ) noexcept nogil:
        """``out = left @ right``, of numbers rounded to bfloat16."""
        cdef Py_ssize_t panel = stride * PANEL, columns = round_up(K, LINE), i
        for i in range(columns // LINE):
            self.bfloat16.pack_pairs(
                <float *>right + i * LINE * depth, LINE, depth, LINE,
                self.right + pair_place(0, i * LINE, panel), panel)
        self.bfloat16.product(
            left, stride, self.right, panel, rows, columns, depth, <float *>out, LINE,
            rows * LINE, NULL, 0)
