"""Kernel tiers of a processor, and the memory of the kernels."""

from libc.stdint cimport uintptr_t
from scipy.linalg.cython_blas cimport dgemm, dgemv, sgemm, sgemv

import numpy as np

cdef extern from "bfloat16.h" nogil:
    const Loops *find_loops(const char *tier, bint is_double)
    const Bfloat16 *find_bfloat16(const char *tier)
    const char *NPLM_COMPILER

cdef Py_ssize_t ALIGNMENT = 64  # bytes: a cache line, and an AVX-512 vector


# -- BLAS ---------------------------------------------------------------------------
#
# Row-major matrix products over SciPy's BLAS, column-major by convention: a row-major
# matrix is its own transpose to it, hence the operands in reverse.

cdef void product_float(
    bint transpose_a, bint transpose_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const void *a, Py_ssize_t lda, const void *b, Py_ssize_t ldb,
    double beta, void *c, Py_ssize_t ldc,
) noexcept nogil:
    """c = alpha op(a) op(b) + beta c, with op(a) (m, k), op(b) (k, n), c (m, n)."""
    cdef char ta = b'T' if transpose_a else b'N'
    cdef char tb = b'T' if transpose_b else b'N'
    cdef int mm = <int>m, nn = <int>n, kk = <int>k
    cdef int la = <int>lda, lb = <int>ldb, lc = <int>ldc, one = 1
    cdef int rows = kk if transpose_b else nn, columns = nn if transpose_b else kk
    cdef float by = <float>alpha, keep = <float>beta
    if m == 1 and not transpose_a:
        # A matrix-vector product, which is several times faster.
        sgemv(&tb, &rows, &columns, &by, <float *>b, &lb, <float *>a, &one, &keep,
              <float *>c, &one)
    else:
        sgemm(&tb, &ta, &nn, &mm, &kk, &by, <float *>b, &lb, <float *>a, &la, &keep,
              <float *>c, &lc)


cdef void product_double(
    bint transpose_a, bint transpose_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
    double alpha, const void *a, Py_ssize_t lda, const void *b, Py_ssize_t ldb,
    double beta, void *c, Py_ssize_t ldc,
) noexcept nogil:
    """`product_float` for double."""
    cdef char ta = b'T' if transpose_a else b'N'
    cdef char tb = b'T' if transpose_b else b'N'
    cdef int mm = <int>m, nn = <int>n, kk = <int>k
    cdef int la = <int>lda, lb = <int>ldb, lc = <int>ldc, one = 1
    cdef int rows = kk if transpose_b else nn, columns = nn if transpose_b else kk
    if m == 1 and not transpose_a:
        dgemv(&tb, &rows, &columns, &alpha, <double *>b, &lb, <double *>a, &one, &beta,
              <double *>c, &one)
    else:
        dgemm(&tb, &ta, &nn, &mm, &kk, &alpha, <double *>b, &lb, <double *>a, &la, &beta,
              <double *>c, &lc)


# The tier "blas": products of tiles by BLAS, panel by panel, the oracle of the tests.

cdef enum:
    PIECE = 256


cdef void forward_float(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *zt, Py_ssize_t columns, void *logits,
) noexcept nogil:
    # Column by column, on a copy: the result of BLAS must not depend on the other
    # columns, nor, as on ARM, on whether a column is contiguous.
    cdef char t = b'T'
    cdef int n, m = <int>rows, stride_ = <int>stride, one = 1
    cdef int step = <int>min(columns, <Py_ssize_t>LINE)
    cdef Py_ssize_t d, i, k
    cdef float alpha = 1, beta
    cdef float[PIECE] piece
    cdef const float *z
    for k in range(columns if m else 0):
        z = <const float *>zt + k // LINE * n_outputs * LINE + k % LINE
        d = 0
        while d == 0 or d < n_outputs:
            n = <int>min(n_outputs - d, <Py_ssize_t>PIECE)
            for i in range(n):
                piece[i] = z[(d + i) * step]
            beta = 0 if d == 0 else 1
            sgemv(&t, &n, &m, &alpha, <float *>E + d, &stride_, piece, &one, &beta,
                  <float *>logits + k // LINE * rows * LINE + k % LINE, &step)
            d += PIECE


cdef void backward_float(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *g, Py_ssize_t columns, void *dz,
) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(0, n_outputs, 16):
        for k in range(0, columns, 16):
            product_float(
                True, False, LINE, min(<Py_ssize_t>LINE, n_outputs - i), rows, 1,
                <float *>g + k * rows, LINE, <float *>E + i, stride, 1,
                <float *>dz + i * columns + k * LINE, LINE)


cdef void update_float(
    void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs, const void *g,
    Py_ssize_t columns, Py_ssize_t K, const void *z, double rate, const void *keep,
) noexcept nogil:
    cdef Py_ssize_t i, j, k
    for j in range(rows):
        for i in range(n_outputs):
            (<float *>E)[j * stride + i] *= (<float *>keep)[i]
    for i in range(0, n_outputs, 16):
        for k in range(0, K, 16):
            product_float(
                False, False, rows, min(<Py_ssize_t>LINE, n_outputs - i),
                min(<Py_ssize_t>LINE, K - k), rate, <float *>g + k * rows, LINE,
                <float *>z + i * columns + k * LINE, LINE, 1, <float *>E + i, stride)


cdef void forward_double(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *zt, Py_ssize_t columns, void *logits,
) noexcept nogil:
    # Column by column, on a copy: the result of BLAS must not depend on the other
    # columns, nor, as on ARM, on whether a column is contiguous.
    cdef char t = b'T'
    cdef int n, m = <int>rows, stride_ = <int>stride, one = 1
    cdef int step = <int>min(columns, <Py_ssize_t>LINE)
    cdef Py_ssize_t d, i, k
    cdef double alpha = 1, beta
    cdef double[PIECE] piece
    cdef const double *z
    for k in range(columns if m else 0):
        z = <const double *>zt + k // LINE * n_outputs * LINE + k % LINE
        d = 0
        while d == 0 or d < n_outputs:
            n = <int>min(n_outputs - d, <Py_ssize_t>PIECE)
            for i in range(n):
                piece[i] = z[(d + i) * step]
            beta = 0 if d == 0 else 1
            dgemv(&t, &n, &m, &alpha, <double *>E + d, &stride_, piece, &one, &beta,
                  <double *>logits + k // LINE * rows * LINE + k % LINE, &step)
            d += PIECE


cdef void backward_double(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *g, Py_ssize_t columns, void *dz,
) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(0, n_outputs, 16):
        for k in range(0, columns, 16):
            product_double(
                True, False, LINE, min(<Py_ssize_t>LINE, n_outputs - i), rows, 1,
                <double *>g + k * rows, LINE, <double *>E + i, stride, 1,
                <double *>dz + i * columns + k * LINE, LINE)


cdef void update_double(
    void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs, const void *g,
    Py_ssize_t columns, Py_ssize_t K, const void *z, double rate, const void *keep,
) noexcept nogil:
    cdef Py_ssize_t i, j, k
    for j in range(rows):
        for i in range(n_outputs):
            (<double *>E)[j * stride + i] *= (<double *>keep)[i]
    for i in range(0, n_outputs, 16):
        for k in range(0, K, 16):
            product_double(
                False, False, rows, min(<Py_ssize_t>LINE, n_outputs - i),
                min(<Py_ssize_t>LINE, K - k), rate, <double *>g + k * rows, LINE,
                <double *>z + i * columns + k * LINE, LINE, 1, <double *>E + i, stride)


cdef void forward_column_float(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *z, void *logits,
) noexcept nogil:
    forward_float(E, rows, stride, n_outputs, z, 1, logits)


cdef void forward_column_double(
    const void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t n_outputs,
    const void *z, void *logits,
) noexcept nogil:
    forward_double(E, rows, stride, n_outputs, z, 1, logits)


# -- tiers --------------------------------------------------------------------------

# Of all processors, fastest first; find_loops tells which this one has.
cdef enum:
    BLAS = 4
    N_TIERS = 5
cdef list NAMES = ["avx512", "avx2", "neon", "plain", "blas"]
cdef Loops tables[N_TIERS][2]


cdef void make_tables() noexcept:
    cdef const Loops *found
    cdef int tier, is_double
    for is_double in range(2):
        for tier in range(N_TIERS):
            name = NAMES[tier].encode() if tier != BLAS else b"plain"
            found = find_loops(name, is_double)
            if found == NULL:
                continue
            tables[tier][is_double] = found[0]
            tables[tier][is_double].product = (
                product_double if is_double else product_float)
    tables[BLAS][0].forward_tile = forward_float
    tables[BLAS][0].forward_column = forward_column_float
    tables[BLAS][0].backward_tile = backward_float
    tables[BLAS][0].update_tile = update_float
    tables[BLAS][1].forward_tile = forward_double
    tables[BLAS][1].forward_column = forward_column_double
    tables[BLAS][1].backward_tile = backward_double
    tables[BLAS][1].update_tile = update_double


make_tables()


def available_tiers(str precision="float32"):
    """Names of the kernel tiers that this processor can run, fastest first.

    No twin: NumPy has none.

    "blas" uses the matrix products of SciPy. For "bfloat16", "plain" emulates the
    instructions in C, for tests.
    """
    if precision == "bfloat16":
        return [tier for tier in ("amx", "avx512", "plain")
                if find_bfloat16(tier.encode()) != NULL]
    cdef int is_double = precision == "float64"
    cdef int i
    return [NAMES[i] for i in range(N_TIERS) if tables[i][is_double].tanh != NULL]


def compiler():
    """Name and version of the compiler that built these kernels.

    No twin: NumPy's is another.
    """
    return NPLM_COMPILER.decode()


cdef class Tier:
    """The kernels of one tier for one precision.

    No twin: NumPy has one tier.

    Parameters
    ----------
    name : str
        One of ``available_tiers(precision)``.
    precision : str
        "float32", "float64", or "bfloat16" for products of float32 parameters
        rounded to that.
    """

    def __cinit__(self, str name, str precision):
        if name not in available_tiers(precision):
            raise ValueError(
                f"kernel tier {name!r} is not one this processor has for {precision}: "
                f"choose among {', '.join(available_tiers(precision))}"
            )
        self.name, self.precision = name, precision
        self.itemsize = 8 if precision == "float64" else 4
        self.bfloat16 = NULL
        if precision == "bfloat16":
            self.bfloat16 = find_bfloat16(name.encode())
            name = "plain" if name == "plain" else "avx512"
        self.loops = &tables[<int>NAMES.index(name)][<int>(precision == "float64")]

    def unrounded(self):
        """Return the kernels of the same parameters in full precision."""
        if self.bfloat16 == NULL:
            return self
        return Tier("plain" if self.name == "plain" else "avx512", "float32")


# -- memory -------------------------------------------------------------------------

cdef Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t whole) noexcept nogil:
    return (n + whole - 1) // whole * whole


def row_stride(Py_ssize_t n_outputs):
    """Return the length of a row of E, padded to whole vectors.

    No twin: NumPy's rows are as long as they are.
    """
    return round_up(n_outputs, LINE)


cdef class Scratch:
    """Memory of one thread, allocated by name: ``self.x = scratch.numbers(K * n)``.

    No twin: NumPy takes its own.

    It is zeroed and has whole cache lines, because vectors are read to their end. It is
    allocated once a fit: to free and allocate large buffers at every batch would cost a
    page fault for every 4 KB.
    """

    def __cinit__(self, Tier tier):
        self.itemsize = tier.itemsize
        self.arrays = []

    cdef void *numbers(self, Py_ssize_t n) except NULL:
        """Allocate n numbers of the network's type."""
        return self.bytes(n * self.itemsize)

    cdef void *bytes(self, Py_ssize_t n) except NULL:
        """Allocate n bytes."""
        cdef unsigned char[::1] memory
        try:
            # NumPy asks for huge pages, without which large strides are slow.
            memory = np.zeros(round_up(n, ALIGNMENT) + ALIGNMENT, dtype=np.uint8)
        except MemoryError as error:
            raise MemoryError(
                f"a mini-batch needs {n / 1e6:.0f} MB more of scratch memory than there "
                "is; lower batch_size"
            ) from error
        self.arrays.append(memory)
        return <void *>(
            (<uintptr_t>&memory[0] + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
