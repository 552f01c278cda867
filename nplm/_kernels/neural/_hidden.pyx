"""Word features and hidden units, equation (1) below the output units.

``hidden_forward`` and ``hidden_backward`` are steps 1(a), 1(b) and 2(c), 2(d)
of section 3.2 for K examples at once.
"""

from cython cimport floating
from libc.string cimport memcpy

from nplm._kernels.neural._blas cimport gemm
from nplm._kernels.neural._elementwise cimport tanh_all
from nplm._kernels.neural._workspace cimport Workspace


cdef void hidden_forward(
    Hidden size, floating *C, floating *H, floating *d, const int *contexts,
    Py_ssize_t K, Workspace work,
) noexcept nogil:
    """x = C[contexts], a = tanh(d + x H'), and z = [a | x | 1] both ways round.

    `contexts` is (K, n - 1) with the nearest word first, as in the paper's x.
    Equivalent to ``x = C[contexts].reshape(K, -1); a = np.tanh(d + x @ H.T)``.
    """
    cdef Py_ssize_t n = size.n_context, m = size.n_features, h = size.n_hidden
    cdef Py_ssize_t n_inputs = n * m, i, j, k
    cdef Py_ssize_t n_outputs = h + (n_inputs if size.direct else 0) + 1
    cdef Py_ssize_t stride = work.stride
    cdef floating *x = <floating *>work.x
    cdef floating *a = <floating *>work.a
    cdef floating *z = <floating *>work.z
    cdef floating *zt = <floating *>work.zt
    for k in range(K):
        for i in range(n):
            memcpy(
                x + k * n_inputs + i * m, C + contexts[k * n + i] * m,
                m * sizeof(floating),
            )
    if h > 0:
        hidden_sums(size, H, d, K, work)
        if floating is float and work.loops != NULL:
            work.loops.tanh(a, K * h)
        else:
            tanh_all(a, K * h)
    for k in range(K):
        memcpy(z + k * stride, a + k * h, h * sizeof(floating))
        if size.direct:
            memcpy(z + k * stride + h, x + k * n_inputs, n_inputs * sizeof(floating))
        z[k * stride + n_outputs - 1] = 1
    if work.n_columns == 1:
        return
    for j in range(n_outputs):
        for k in range(K):
            zt[j * work.n_columns + k] = z[k * stride + j]
        for k in range(K, work.n_columns):
            zt[j * work.n_columns + k] = 0


cdef void hidden_sums(
    Hidden size, floating *H, floating *d, Py_ssize_t K, Workspace work,
) noexcept nogil:
    """``a = d + x @ H.T``; in scoring each row of a depends on its row of x only."""
    cdef Py_ssize_t h = size.n_hidden, n_inputs = size.n_context * size.n_features
    cdef Py_ssize_t columns = work.n_columns, j, k
    cdef floating *x = <floating *>work.x
    cdef floating *a = <floating *>work.a
    cdef float *xt = <float *>work.xt
    cdef float *sums = <float *>work.zt
    if floating is float and work.loops != NULL and columns > 1:
        work.loops.transpose(x, n_inputs, K, n_inputs, xt, columns)
        work.loops.forward_tile(H, h, n_inputs, n_inputs, xt, columns, sums)
        work.loops.transpose(sums, columns, h, K, a, h)
        for k in range(K):
            for j in range(h):
                a[k * h + j] += d[j]
        return
    for k in range(K):
        memcpy(a + k * h, d, h * sizeof(floating))
    if not work.scoring:
        gemm(False, True, K, h, n_inputs, <floating>1, x, n_inputs, H, n_inputs,
             <floating>1, a, h)
        return
    for k in range(K):
        gemm(False, True, 1, h, n_inputs, <floating>1, x + k * n_inputs, n_inputs,
             H, n_inputs, <floating>1, a + k * h, h)


cdef void hidden_backward(
    Hidden size, floating *C, floating *H, floating *d, const int *contexts,
    Py_ssize_t K, Workspace work, floating rate, floating keep, floating rate_C,
) noexcept nogil:
    """Carry dL/dz of the output units down, and update d, H and C.

    Equivalent to, with ``da, dx = dz[:, :h], dz[:, h:-1]`` (or 0)::

        do = (1 - a**2) * da
        dx += do @ H
        d += rate * do.sum(axis=0)
        H[:] = keep * H + rate * do.T @ x
        np.add.at(C, contexts, rate_C * dx.reshape(K, n - 1, m))

    The decay of C is the caller's: it is lazy, for most rows are not visited.
    """
    cdef Py_ssize_t n = size.n_context, m = size.n_features, h = size.n_hidden
    cdef Py_ssize_t n_inputs = n * m, columns = work.n_columns, i, j, k
    cdef floating *x = <floating *>work.x
    cdef floating *a = <floating *>work.a
    cdef floating *da = <floating *>work.da
    cdef floating *dx = <floating *>work.dx
    cdef floating *dzt = <floating *>work.dzt
    cdef floating *row
    cdef floating total, act
    for k in range(K):
        for j in range(n_inputs):
            dx[k * n_inputs + j] = dzt[(h + j) * columns + k] if size.direct else 0
    if h > 0:
        for j in range(h):
            total = 0
            for k in range(K):
                act = a[k * h + j]
                da[k * h + j] = (1 - act * act) * dzt[j * columns + k]
                total += da[k * h + j]
            d[j] += rate * total
        gemm(False, False, K, n_inputs, h, <floating>1, da, h, H, n_inputs,
             <floating>1, dx, n_inputs)
        gemm(True, False, h, n_inputs, K, rate, da, h, x, n_inputs,
             keep, H, n_inputs)
    for k in range(K):
        for i in range(n):
            row = C + contexts[k * n + i] * m
            for j in range(m):
                row[j] += rate_C * dx[k * n_inputs + i * m + j]
