from libc.stdint cimport int64_t, uint64_t

cdef extern from "loops.h" nogil:
    ctypedef struct Moments:
        double beta_1, beta_2, epsilon, rate

    ctypedef struct Loops:
        void (*forward_tile)(const void *E, Py_ssize_t rows, Py_ssize_t stride,
                             Py_ssize_t n_outputs, const void *zt,
                             Py_ssize_t columns, void *logits) noexcept nogil
        void (*backward_tile)(const void *E, Py_ssize_t rows, Py_ssize_t stride,
                              Py_ssize_t n_outputs, const void *g,
                              Py_ssize_t columns, void *dzt) noexcept nogil
        void (*update_tile)(void *E, Py_ssize_t rows, Py_ssize_t stride,
                            Py_ssize_t n_outputs, const void *g, Py_ssize_t columns,
                            Py_ssize_t K, const void *z, double rate,
                            const void *keep) noexcept nogil
        void (*exp_columns)(void *logits, Py_ssize_t rows, Py_ssize_t panel_rows,
                            Py_ssize_t columns, void *maximum,
                            void *total) noexcept nogil
        void (*scale_columns)(void *values, Py_ssize_t rows, Py_ssize_t panel_rows,
                              Py_ssize_t columns, const void *factor) noexcept nogil
        double (*exp_row)(void *values, Py_ssize_t n, double *maximum) noexcept nogil
        void (*tanh)(void *values, Py_ssize_t n) noexcept nogil
        void (*row_dots)(const void *E, Py_ssize_t rows, Py_ssize_t stride,
                         Py_ssize_t n, const void *z, Py_ssize_t rows_ahead,
                         void *logits) noexcept nogil
        void (*row_updates)(void *E, Py_ssize_t rows, Py_ssize_t stride,
                            Py_ssize_t n, const void *z, const void *g, double rate,
                            const void *keep, void *dz) noexcept nogil
        void (*transpose)(const void *source, Py_ssize_t stride, Py_ssize_t rows,
                          Py_ssize_t columns, void *to,
                          Py_ssize_t to_stride) noexcept nogil
        void (*exp_differences)(const void *high, const double *maximum,
                                Py_ssize_t columns, void *factor) noexcept nogil
        void (*adam)(void *values, const void *gradient, void *first, void *second,
                     Py_ssize_t n, const void *keep, bint keep_each,
                     const Moments *by) noexcept nogil
        void (*adam_pause)(void *values, void *first, void *second, Py_ssize_t n,
                           double share, const Moments *by) noexcept nogil
        void (*into_panels)(const void *source, Py_ssize_t stride, Py_ssize_t rows,
                            Py_ssize_t columns, void *to,
                            Py_ssize_t to_columns) noexcept nogil
        void (*out_of_panels)(const void *source, Py_ssize_t rows, Py_ssize_t columns,
                              void *to, Py_ssize_t to_stride) noexcept nogil
        void (*forward_column)(const void *E, Py_ssize_t rows, Py_ssize_t stride,
                               Py_ssize_t n_outputs, const void *z,
                               void *logits) noexcept nogil
        void (*exp_column)(void *logits, Py_ssize_t rows, void *maximum,
                           void *total) noexcept nogil
        void (*branch_gradients)(const void *E, Py_ssize_t rows, Py_ssize_t stride,
                                 const void *g, const void *z, void *gradients,
                                 void *dz) noexcept nogil
        void (*descend)(const int *branches, const int64_t *starts, Py_ssize_t n_nodes,
                        Py_ssize_t n_words, const void *logits, Py_ssize_t columns,
                        void *log_p) noexcept nogil
        void (*tanh_factors)(void *values, Py_ssize_t n) noexcept nogil
        void (*energies)(const void *G, const void *w, Py_ssize_t w_stride,
                         const void *bias, Py_ssize_t rows, Py_ssize_t lanes,
                         const void *z, Py_ssize_t K,
                         void *logits) noexcept nogil
        void (*energy_slopes)(const void *G, const void *w, Py_ssize_t w_stride,
                              Py_ssize_t rows, Py_ssize_t lanes, const void *z,
                              const void *g, Py_ssize_t K, void *dz, void *dG,
                              void *dv, void *sums) noexcept nogil
        void (*combine)(const void **rows, Py_ssize_t n, Py_ssize_t m,
                        const void *weights, Py_ssize_t by, Py_ssize_t step,
                        Py_ssize_t outs, void *out) noexcept nogil
        void (*dots)(const void *left, Py_ssize_t outs, const void **rows,
                     Py_ssize_t n, Py_ssize_t m, void *sums) noexcept nogil
        void (*cell)(void *s, const void *more, const void *d, Py_ssize_t h,
                     const void *before, void *c, void *a) noexcept nogil
        void (*cell_slopes)(void *s, const void *before, const void *da, Py_ssize_t h,
                            void *dc, void *dd) noexcept nogil
        void (*choose)(const void *logits, Py_ssize_t first, Py_ssize_t rows,
                       const int *targets, Py_ssize_t K, Py_ssize_t columns,
                       double *chosen) noexcept nogil
        void (*add_targets)(void *slopes, Py_ssize_t first, Py_ssize_t rows,
                            const int *targets, Py_ssize_t K,
                            Py_ssize_t columns) noexcept nogil
        void (*pack)(const void *source, Py_ssize_t stride, Py_ssize_t rows,
                     Py_ssize_t columns, void *to, Py_ssize_t panel_rows) noexcept nogil
        void (*unpack)(const void *source, Py_ssize_t panel_rows, Py_ssize_t rows,
                       Py_ssize_t columns, void *to, Py_ssize_t stride) noexcept nogil
        void (*raise_maxima "raise")(const void *high, Py_ssize_t n,
                                     double *maxima) noexcept nogil
        void (*add_scaled)(const void *part, const void *factor, Py_ssize_t n,
                           double *totals) noexcept nogil
        void (*share)(void *factor, const double *totals, Py_ssize_t n,
                      Py_ssize_t columns) noexcept nogil
        void (*fill)(void *values, Py_ssize_t n, Py_ssize_t stride,
                     double value) noexcept nogil
        void (*scale)(void *values, Py_ssize_t n, double factor) noexcept nogil
        void (*multiply)(void *values, const void *factors,
                         Py_ssize_t n) noexcept nogil
        void (*mask)(void *values, Py_ssize_t n, uint64_t seed, uint64_t first,
                     Py_ssize_t threshold, double scale) noexcept nogil
        void (*fade)(void *values, Py_ssize_t n, double share) noexcept nogil
        void (*subtract)(void *values, Py_ssize_t n, double amount) noexcept nogil
        void (*scatter)(const void *values, Py_ssize_t n, double more,
                        const int *where, void *to) noexcept nogil
        void (*add)(void *values, const void *more, Py_ssize_t n,
                    double rate) noexcept nogil
        double (*dot)(const void *values, const void *others,
                      Py_ssize_t n) noexcept nogil
        void (*tanh_slopes)(const void *a, void *slopes, Py_ssize_t n,
                            Py_ssize_t columns, void *sums) noexcept nogil
        void (*rectify)(void *values, Py_ssize_t n) noexcept nogil
        void (*rectify_slopes)(const void *u, void *slopes, Py_ssize_t n,
                               Py_ssize_t columns, void *sums) noexcept nogil
        void (*normalize)(const void *a, Py_ssize_t n, Py_ssize_t columns, double more,
                          void *to, void *by) noexcept nogil
        void (*normalize_slopes)(const void *v, const void *by, const void *dv,
                                 Py_ssize_t n, Py_ssize_t columns,
                                 void *da) noexcept nogil
        void (*outer)(const void *left, Py_ssize_t rows, const void *right,
                      Py_ssize_t columns, double rate, void *to,
                      Py_ssize_t stride) noexcept nogil
        void (*energy_weights)(const void *v, Py_ssize_t v_stride, const void *b,
                               Py_ssize_t b_stride, Py_ssize_t rows, Py_ssize_t h,
                               void *w, Py_ssize_t w_stride,
                               void *bias) noexcept nogil
        # C = alpha op(A) op(B) + beta C,, by BLAS
        void (*product)(bint transpose_a, bint transpose_b, Py_ssize_t m,
                        Py_ssize_t n, Py_ssize_t k, double alpha, const void *a,
                        Py_ssize_t lda, const void *b, Py_ssize_t ldb, double beta,
                        void *c, Py_ssize_t ldc) noexcept nogil

    enum:
        PANEL  # columns of a panel of a right side; others are padded to a multiple
    ctypedef unsigned short bf16
    ctypedef struct Bfloat16:
        void (*pack_rows)(const float *source, Py_ssize_t stride, Py_ssize_t rows,
                          Py_ssize_t columns, bf16 *to, Py_ssize_t to_stride) noexcept nogil
        void (*pack_columns)(const float *source, Py_ssize_t stride, Py_ssize_t rows,
                             Py_ssize_t columns, bf16 *to, Py_ssize_t to_stride) noexcept nogil
        void (*pack_pairs)(const float *source, Py_ssize_t stride, Py_ssize_t rows,
                           Py_ssize_t columns, bf16 *to, Py_ssize_t panel) noexcept nogil
        void (*pack_scaled)(const float *source, Py_ssize_t rows, Py_ssize_t columns,
                            const float *factor, bf16 *left, Py_ssize_t left_stride,
                            bf16 *right, Py_ssize_t panel) noexcept nogil
        void (*product)(const bf16 *A, Py_ssize_t A_stride, const bf16 *B,
                        Py_ssize_t panel, Py_ssize_t rows, Py_ssize_t columns,
                        Py_ssize_t depth, float *C, Py_ssize_t C_stride,
                        Py_ssize_t C_panel, const float *keep, float rate) noexcept nogil
    bf16 round_bf16(float) noexcept nogil
    Py_ssize_t pair_place(Py_ssize_t r, Py_ssize_t c, Py_ssize_t panel) noexcept nogil


cdef enum:
    LINE = 16  # columns of a panel; rows of E and columns of examples are padded to it


cdef class Tier:
    """The kernels of one tier for one precision."""

    cdef readonly str name, precision
    cdef readonly Py_ssize_t itemsize
    cdef const Loops *loops
    cdef const Bfloat16 *bfloat16   # NULL: products in full precision


cdef class Scratch:
    """Memory of one thread, allocated by name: ``self.x = scratch.numbers(K * n)``."""

    cdef list arrays
    cdef readonly Py_ssize_t itemsize
    cdef void *numbers(self, Py_ssize_t n) except NULL
    cdef void *bytes(self, Py_ssize_t n) except NULL


cdef Py_ssize_t round_up(Py_ssize_t n, Py_ssize_t whole) noexcept nogil
