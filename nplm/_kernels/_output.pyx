"""The output units: where nearly all the arithmetic is (section 3.2).

A row of E holds all that belongs to one word, [U_j | W_j | b_j], and
z = [a | x | 1], so that equation (1) reads y = E z. The rows given may be a
shard of the vocabulary; the maximum and the sum of exponentials of its words
(`total_max`, `total_sum`) are all that shards need to share before the
backward pass, and `dzt` all they need to add up after it.

Words are taken a tile at a time: logits, their maximum and exponentials are
computed while the tile is in cache, and the exponentials are kept for the
backward pass (to compute them again would cost a third of the time).
"""

from cython cimport floating
from libc.math cimport INFINITY, exp
from libc.string cimport memset

from nplm._kernels._blas cimport gemm
from nplm._kernels._workspace cimport Workspace

cdef extern from "vector.h" nogil:
    void exp_columns_f32(float *, Py_ssize_t rows, Py_ssize_t cols, float *, float *)
    void exp_columns_f64(double *, Py_ssize_t rows, Py_ssize_t cols, double *, double *)
    double exp_row_f32(float *, Py_ssize_t n, float *maximum)
    double exp_row_f64(double *, Py_ssize_t n, double *maximum)
    void scale_columns_f32(float *, Py_ssize_t rows, Py_ssize_t cols, const float *)
    void scale_columns_f64(double *, Py_ssize_t rows, Py_ssize_t cols, const double *)
    void row_dots_f32(const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                      const float *, float *)
    void row_dots_f64(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                      const double *, double *)
    void row_updates_f32(float *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float *,
                         const float *, float rate, float keep, float *)
    void row_updates_f64(double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *,
                         const double *, double rate, double keep, double *)


cdef void output_forward(
    floating *E, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n_outputs,
    const int *target, Py_ssize_t K, Workspace work, bint keep,
) noexcept nogil:
    """Logits of K examples, and their maximum and sum of exponentials.

    Equivalent to, with ``y = z @ E.T`` (K, n_rows)::

        total_max = y.max(axis=1)
        total_sum = np.exp(y - total_max[:, None]).sum(axis=1)
        target_logit = y[np.arange(K), target]

    A target outside [0, n_rows) belongs to another shard: -inf. With `keep`
    the exponentials (relative to their tile's maximum) stay in ``work.p``.
    """
    cdef Py_ssize_t columns = work.n_columns, tile, first, rows, k, slot
    cdef floating *z = <floating *>work.z
    cdef floating *zt = <floating *>work.zt
    cdef floating *p
    cdef floating *high
    cdef floating *total
    for k in range(K):
        work.target_logit[k] = -INFINITY
        work.total_max[k] = -INFINITY
    for tile in range(work.n_tiles):
        first = tile * work.tile_rows
        rows = min(work.tile_rows, n_rows - first)
        slot = tile if keep else 0
        p = <floating *>work.p + slot * work.tile_rows * columns
        high = <floating *>work.tile_max + tile * columns
        total = <floating *>work.tile_sum + tile * columns
        if columns == 1:
            if floating is float:
                row_dots_f32(E + first * stride, rows, stride, n_outputs, z, p)
            else:
                row_dots_f64(E + first * stride, rows, stride, n_outputs, z, p)
        else:
            gemm(False, False, rows, columns, n_outputs, <floating>1,
                 E + first * stride, stride, zt, columns, <floating>0, p, columns)
        for k in range(K):
            if first <= target[k] < first + rows:
                work.target_logit[k] = p[(target[k] - first) * columns + k]
        if columns == 1:
            if floating is float:
                work.total_sum[0] = exp_row_f32(p, rows, high)
            else:
                work.total_sum[0] = exp_row_f64(p, rows, high)
            work.total_max[0] = high[0]
            return
        if floating is float:
            exp_columns_f32(p, rows, columns, high, total)
        else:
            exp_columns_f64(p, rows, columns, high, total)
        for k in range(K):
            work.total_max[k] = max(work.total_max[k], <double>high[k])
    for k in range(K):
        work.total_sum[k] = 0
    for tile in range(work.n_tiles):
        high = <floating *>work.tile_max + tile * columns
        total = <floating *>work.tile_sum + tile * columns
        for k in range(K):
            work.total_sum[k] += total[k] * exp(high[k] - work.total_max[k])


cdef void output_backward(
    floating *E, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t n_outputs,
    const int *target, Py_ssize_t K, Workspace work, floating rate, floating decay,
) noexcept nogil:
    """Gradient of the log-likelihood for z, and the update of the rows.

    Equivalent to, with ``p`` the probabilities and the old E on the right::

        g = np.eye(n_rows)[target] - p
        dz = g @ E
        E[:] = E + rate * g.T @ z
        E[:, :-1] -= decay * (old E)[:, :-1]

    `decay` is the share of the weights, biases apart, lost to weight decay.
    """
    cdef Py_ssize_t columns = work.n_columns, tile, first, rows, k, j
    cdef floating *z = <floating *>work.z
    cdef floating *dzt = <floating *>work.dzt
    cdef floating *factor = <floating *>work.factor
    cdef floating *p
    cdef floating *high
    cdef floating *tile_E
    cdef floating keep = 1 - decay
    memset(dzt, 0, n_outputs * columns * sizeof(floating))
    for tile in range(work.n_tiles):
        first = tile * work.tile_rows
        rows = min(work.tile_rows, n_rows - first)
        p = <floating *>work.p + first * columns
        high = <floating *>work.tile_max + tile * columns
        tile_E = E + first * stride
        for k in range(K):
            factor[k] = -exp(high[k] - work.total_max[k]) / work.total_sum[k]
        for k in range(K, columns):
            factor[k] = 0  # the columns that only fill up a vector
        if floating is float:
            scale_columns_f32(p, rows, columns, factor)
        else:
            scale_columns_f64(p, rows, columns, factor)
        for k in range(K):
            if first <= target[k] < first + rows:
                p[(target[k] - first) * columns + k] += 1
        if columns == 1:
            if floating is float:
                row_updates_f32(tile_E, rows, stride, n_outputs, z, p, rate, keep, dzt)
            else:
                row_updates_f64(tile_E, rows, stride, n_outputs, z, p, rate, keep, dzt)
            return
        gemm(True, False, n_outputs, columns, rows, <floating>1, tile_E, stride,
             p, columns, <floating>1, dzt, columns)
        if decay != 0:
            # The product below scales the whole row; the bias must not decay.
            for j in range(rows):
                tile_E[j * stride + n_outputs - 1] /= keep
        gemm(False, False, rows, n_outputs, K, rate, p, columns, z, n_outputs,
             keep, tile_E, stride)
