"""Row-major matrix product over SciPy's BLAS (column-major by convention)."""

from cython cimport floating
from scipy.linalg.cython_blas cimport dgemm, dgemv, sgemm, sgemv


cdef inline void gemm(
    bint transpose_a, bint transpose_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    floating alpha, floating *a, Py_ssize_t lda, floating *b, Py_ssize_t ldb,
    floating beta, floating *c, Py_ssize_t ldc,
) noexcept nogil:
    """c = alpha op(a) op(b) + beta c, with op(a) (m, k), op(b) (k, n), c (m, n).

    All row-major with row strides lda, ldb, ldc. A row-major matrix is its own
    transpose to BLAS, hence the operands in reverse.
    """
    cdef char ta = b'T' if transpose_a else b'N'
    cdef char tb = b'T' if transpose_b else b'N'
    cdef int mm = <int>m, nn = <int>n, kk = <int>k
    # BLAS refuses the stride 0 of an empty matrix.
    cdef int la = <int>max(1, lda), lb = <int>max(1, ldb), lc = <int>max(1, ldc)
    cdef int one = 1
    cdef int rows = kk if transpose_b else nn, columns = nn if transpose_b else kk
    if m == 1 and not transpose_a:
        # A vector times a matrix, several times faster as what it is.
        if floating is float:
            sgemv(&tb, &rows, &columns, &alpha, b, &lb, a, &one, &beta, c, &one)
        else:
            dgemv(&tb, &rows, &columns, &alpha, b, &lb, a, &one, &beta, c, &one)
    elif floating is float:
        sgemm(&tb, &ta, &nn, &mm, &kk, &alpha, b, &lb, a, &la, &beta, c, &lc)
    else:
        dgemm(&tb, &ta, &nn, &mm, &kk, &alpha, b, &lb, a, &la, &beta, c, &lc)


cdef inline void matrix_vector(
    Py_ssize_t m, Py_ssize_t n, floating *a, Py_ssize_t lda, floating *x,
    floating *y, Py_ssize_t y_step,
) noexcept nogil:
    """y = a x, with a (m, n) and the numbers of y `y_step` apart."""
    cdef char t = b'T'
    cdef int mm = <int>m, nn = <int>n, la = <int>lda, step = <int>y_step, one = 1
    cdef floating alpha = 1, beta = 0
    if floating is float:
        sgemv(&t, &nn, &mm, &alpha, a, &la, x, &one, &beta, y, &step)
    else:
        dgemv(&t, &nn, &mm, &alpha, a, &la, x, &one, &beta, y, &step)
