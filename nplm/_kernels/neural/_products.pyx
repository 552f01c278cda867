"""The matrix products of a tile of words, whichever kernels do them.

Three an example: logits, gradient, update. Float32 has register-blocked kernels
(tier.h), bfloat16 others (bfloat16.h), and BLAS serves float64 and is the oracle
of the tests.
"""

from cython cimport floating

from nplm._kernels.neural._blas cimport gemm, matrix_vector
from nplm._kernels.neural._elementwise cimport scale_columns
from nplm._kernels.neural._workspace cimport PANEL, Workspace, bf16

cdef extern from "bfloat16.h" nogil:
    bf16 round_bf16(float)
    Py_ssize_t pair_place(Py_ssize_t r, Py_ssize_t c, Py_ssize_t panel)


cdef void begin_batch(
    floating *z, Py_ssize_t n_outputs, Py_ssize_t K, Workspace work,
) noexcept nogil:
    """Pack what all tiles of a mini-batch multiply."""
    if floating is float and work.bfloat16 != NULL:
        work.bfloat16.pack_pairs(
            <float *>work.zt, work.n_columns, n_outputs, work.n_columns,
            work.right_zt, work.D * PANEL)
        work.bfloat16.pack_pairs(
            z, work.stride, K, work.stride, work.right_z, work.N * PANEL)


cdef void tile_logits(
    floating *E, Py_ssize_t rows, Py_ssize_t n_outputs, floating *logits,
    Py_ssize_t K, Workspace work,
) noexcept nogil:
    """``logits[:] = E @ z.T``, (rows, n_columns).

    In scoring each column depends on its row of z only.
    """
    cdef Py_ssize_t columns = work.n_columns, stride = work.stride, k
    cdef floating *z = <floating *>work.z
    cdef floating *zt = <floating *>work.zt
    if floating is float and work.bfloat16 != NULL:
        work.bfloat16.pack_rows(E, stride, rows, stride, work.left_E, work.D)
        work.bfloat16.product(
            work.left_E, work.D, work.right_zt, work.D * PANEL, rows, columns, n_outputs,
            logits, columns, NULL, 0)
    elif floating is float and work.loops != NULL:
        work.loops.forward_tile(E, rows, stride, n_outputs, zt, columns, logits)
    elif work.scoring:
        for k in range(K):
            matrix_vector(rows, n_outputs, E, stride, z + k * stride,
                          logits + k, columns)
    else:
        gemm(False, False, rows, columns, n_outputs, <floating>1, E, stride, zt,
             columns, <floating>0, logits, columns)


cdef void tile_slopes(
    floating *p, Py_ssize_t first, Py_ssize_t rows, const int *target, Py_ssize_t K,
    Workspace work,
) noexcept nogil:
    """``g = factor * p``, and 1 more for each target: dL/dy, (rows, n_columns).

    In place, or packed for the products of `tile_backward`.
    """
    cdef Py_ssize_t columns = work.n_columns, k, row
    cdef floating *factor = <floating *>work.factor
    cdef bf16 slope
    if floating is float and work.bfloat16 != NULL:
        work.bfloat16.pack_scaled(p, rows, columns, factor, work.left_g, work.N,
                                  work.right_g, work.R * PANEL)
    elif floating is float and work.loops != NULL:
        work.loops.scale_columns(p, rows, columns, factor)
    else:
        scale_columns(p, rows, columns, factor)
    for k in range(K):
        row = target[k] - first
        if not 0 <= row < rows:
            continue
        if floating is float and work.bfloat16 != NULL:
            slope = round_bf16(p[row * columns + k] * factor[k] + 1)
            work.left_g[row * work.N + k] = slope
            work.right_g[pair_place(row, k, work.R * PANEL)] = slope
        else:
            p[row * columns + k] += 1


cdef void tile_backward(
    floating *E, Py_ssize_t rows, Py_ssize_t n_outputs, floating *g, Py_ssize_t K,
    floating rate, floating decay, Workspace work,
) noexcept nogil:
    """``dzt += E.T @ g; E[:] = keep * E + rate * g @ z``, g as of `tile_slopes`."""
    cdef Py_ssize_t columns = work.n_columns, stride = work.stride, i, j
    cdef floating *z = <floating *>work.z
    cdef floating *dzt = <floating *>work.dzt
    cdef floating *keep = <floating *>work.keep
    # dL/dz of the constant 1, the last of z, is of no use: one row less.
    if floating is float and work.bfloat16 != NULL:
        work.bfloat16.pack_columns(E, stride, rows, stride, work.left_E, work.R)
        work.bfloat16.product(
            work.left_E, work.R, work.right_g, work.R * PANEL, n_outputs - 1, columns,
            rows, dzt, columns, work.ones, 1)
        work.bfloat16.product(
            work.left_g, work.N, work.right_z, work.N * PANEL, rows, stride, columns,
            E, stride, keep, rate)
    elif floating is float and work.loops != NULL:
        work.loops.backward_tile(E, rows, stride, n_outputs - 1, g, columns, dzt)
        work.loops.update_tile(E, rows, stride, g, columns, K, z, rate, keep)
    else:
        gemm(True, False, n_outputs - 1, columns, rows, <floating>1, E, stride, g,
             columns, <floating>1, dzt, columns)
        if decay != 0:
            for j in range(rows):
                for i in range(n_outputs - 1):
                    E[j * stride + i] *= keep[i]
        gemm(False, False, rows, n_outputs, K, rate, g, columns, z, stride,
             <floating>1, E, stride)
