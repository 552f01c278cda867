from nplm._kernels.neural._loops cimport Bfloat16, Loops, bf16


cdef class Products:
    cdef const Loops *loops
    cdef Py_ssize_t columns, stride, n_outputs, n_slopes, itemsize
    cdef Py_ssize_t column, E_stride  # of the rows of E
    cdef Py_ssize_t n_whole       # numbers of a row before those copied to `rest`
    cdef void *rest               # (tile_rows, LINE)
    cdef void *z                  # (columns, stride), in panels
    cdef void *zt                 # (n_outputs, columns), in panels
    cdef void *dz                 # (columns, stride), in panels
    cdef void narrow(self, Py_ssize_t K) noexcept nogil
    cdef void *part(self, void *E) noexcept nogil
    cdef void begin(self, void *z, Py_ssize_t K) noexcept nogil
    cdef void begin_update(self, void *z, Py_ssize_t K) noexcept nogil
    cdef void logits(self, void *E, Py_ssize_t rows, void *logits) noexcept nogil
    cdef void slopes(
        self, void *p, void *factors, Py_ssize_t chunk, Py_ssize_t first,
        Py_ssize_t rows, const int *targets, Py_ssize_t K) noexcept nogil
    cdef void take(self, void *g, Py_ssize_t rows, bint carries) noexcept nogil
    cdef void carry(
        self, void *E, Py_ssize_t rows, void *g, void *dv, Py_ssize_t K,
        bint adds) noexcept nogil
    cdef void gradient(self, void *E, Py_ssize_t rows, void *g) noexcept nogil
    cdef void update(
        self, void *E, Py_ssize_t rows, void *g, Py_ssize_t K, double rate,
        void *keep) noexcept nogil
    cdef void change(
        self, void *E, Py_ssize_t rows, Py_ssize_t stride, Py_ssize_t first,
        Py_ssize_t n, void *g, Py_ssize_t K, double rate,
        void *keep) noexcept nogil
    cdef void end(self, void *dzt) noexcept nogil


cdef class Bfloat16Products(Products):
    cdef const Bfloat16 *bfloat16
    # a tile's matrices, as bfloat16.h packs them
    cdef Py_ssize_t R, D, N       # rows, stride, columns to whole panels
    cdef bf16 *left_E             # (R, D), then (D, R)
    cdef bf16 *left_g             # (R, N)
    cdef bf16 *right_zt           # N / 32 panels of depth D
    cdef bf16 *right_g            # N / 32 panels of depth R
    cdef bf16 *right_z            # D / 32 panels of depth N
    cdef float *ones              # (N,)


cdef class Recurrence:
    """Products with the same weights again and again, of panels of columns."""

    cdef const Loops *loops
    cdef const Bfloat16 *bfloat16
    cdef bint scoring
    cdef Py_ssize_t rows, n, itemsize
    cdef Py_ssize_t R, D          # rows, n to whole panels
    cdef Py_ssize_t stride        # of `transposed`
    cdef void *weights            # (rows, n)
    cdef void *transposed         # (n, stride)
    cdef void *column
    # bfloat16
    cdef bf16 *left               # (R, D)
    cdef bf16 *left_t             # (D, R)
    cdef bf16 *right              # panels of what is multiplied
    cdef void begin(self, void *weights) noexcept nogil
    cdef void forward(self, void *a, void *out, Py_ssize_t K) noexcept nogil
    cdef void backward(self, void *g, void *out, Py_ssize_t K) noexcept nogil
    cdef void whole(
        self, const void *left, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t depth,
        void *right, void *out, Py_ssize_t K) noexcept nogil
    cdef void rounded(
        self, const bf16 *left, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t depth,
        void *right, void *out, Py_ssize_t K) noexcept nogil
