"""The loops of float32.h in plain Cython: for float64, and beside BLAS."""

from cython cimport floating
from libc.float cimport FLT_MAX
from libc.math cimport exp, tanh


cdef inline void exp_columns(
    floating *logits, Py_ssize_t rows, Py_ssize_t columns, floating *maximum,
    floating *total,
) noexcept nogil:
    """``maximum = y.max(0); y[:] = exp(y - maximum); total = y.sum(0)``."""
    cdef Py_ssize_t r, k
    cdef floating *row
    for k in range(columns):
        maximum[k] = -FLT_MAX  # that all are -inf is no NaN
        total[k] = 0
    for r in range(rows):
        row = logits + r * columns
        for k in range(columns):
            maximum[k] = max(maximum[k], row[k])
    for r in range(rows):
        row = logits + r * columns
        for k in range(columns):
            row[k] = <floating>exp(row[k] - maximum[k])
            total[k] += row[k]


cdef inline void exp_differences(
    floating *high, double *maximum, Py_ssize_t columns, floating *factor
) noexcept nogil:
    """``factor = exp(high - maximum)``."""
    cdef Py_ssize_t k
    for k in range(columns):
        factor[k] = <floating>exp(high[k] - maximum[k])


cdef inline double exp_row(
    floating *values, Py_ssize_t n, floating *maximum
) noexcept nogil:
    """``maximum = y.max(); y[:] = exp(y - maximum); return y.sum()``."""
    cdef floating high = values[0]
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(1, n):
        high = max(high, values[i])
    for i in range(n):
        values[i] = <floating>exp(values[i] - high)
        total += values[i]
    maximum[0] = high
    return total


cdef inline void scale_columns(
    floating *values, Py_ssize_t rows, Py_ssize_t columns, floating *factor
) noexcept nogil:
    """``values *= factor``."""
    cdef Py_ssize_t r, k
    for r in range(rows):
        for k in range(columns):
            values[r * columns + k] *= factor[k]


cdef inline void transpose(
    floating *values, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t columns,
    floating *to, Py_ssize_t to_stride,
) noexcept nogil:
    """``to[:, :rows] = values.T``."""
    cdef Py_ssize_t r, k
    for r in range(rows):
        for k in range(columns):
            to[k * to_stride + r] = values[r * stride + k]


cdef inline void tanh_all(floating *values, Py_ssize_t n) noexcept nogil:
    """``values[:] = tanh(values)``."""
    cdef Py_ssize_t i
    for i in range(n):
        values[i] = <floating>tanh(values[i])


cdef inline void row_dots(
    floating *E, Py_ssize_t rows, Py_ssize_t stride, floating *z, floating *logits
) noexcept nogil:
    """``logits = E @ z``."""
    cdef Py_ssize_t r, i
    cdef floating total
    for r in range(rows):
        total = 0
        for i in range(stride):
            total += E[r * stride + i] * z[i]
        logits[r] = total


cdef inline void row_updates(
    floating *E, Py_ssize_t rows, Py_ssize_t stride, floating *z, floating *g,
    floating rate, floating *keep, floating *dz,
) noexcept nogil:
    """``dz += g @ E; E[:] = keep * E + rate * outer(g, z)`` (section 3.2, 2(a))."""
    cdef Py_ssize_t r, i
    cdef floating weight
    for r in range(rows):
        for i in range(stride):
            weight = E[r * stride + i]
            dz[i] += g[r] * weight
            E[r * stride + i] = keep[i] * weight + rate * g[r] * z[i]
