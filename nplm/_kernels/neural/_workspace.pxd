cdef extern from "float32.h" nogil:
    ctypedef struct Loops:
        void (*forward_tile)(const float *E, Py_ssize_t rows, Py_ssize_t stride,
                             Py_ssize_t n_outputs, const float *zt,
                             Py_ssize_t columns, float *logits) noexcept nogil
        void (*backward_tile)(const float *E, Py_ssize_t rows, Py_ssize_t stride,
                              Py_ssize_t n_outputs, const float *g,
                              Py_ssize_t columns, float *dzt) noexcept nogil
        void (*update_tile)(float *E, Py_ssize_t rows, Py_ssize_t stride,
                            const float *g, Py_ssize_t columns, Py_ssize_t depth,
                            const float *z, float rate, const float *keep) noexcept nogil
        void (*exp_columns)(float *logits, Py_ssize_t rows, Py_ssize_t columns,
                            float *maximum, float *total) noexcept nogil
        void (*scale_columns)(float *values, Py_ssize_t rows, Py_ssize_t columns,
                              const float *factor) noexcept nogil
        double (*exp_row)(float *values, Py_ssize_t n, float *maximum) noexcept nogil
        void (*tanh)(float *values, Py_ssize_t n) noexcept nogil
        void (*row_dots)(const float *E, Py_ssize_t rows, Py_ssize_t stride,
                         const float *z, float *logits) noexcept nogil
        void (*row_updates)(float *E, Py_ssize_t rows, Py_ssize_t stride,
                            const float *z, const float *g, float rate,
                            const float *keep, float *dz) noexcept nogil
        void (*transpose)(const float *source, Py_ssize_t stride, Py_ssize_t rows,
                          Py_ssize_t columns, float *to,
                          Py_ssize_t to_stride) noexcept nogil
        void (*exp_differences)(const float *high, const double *maximum,
                                Py_ssize_t columns, float *factor) noexcept nogil

cdef extern from "bfloat16.h" nogil:
    enum:
        PANEL  # columns of a packed right side, and what others fill up to
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
                        const float *keep, float rate) noexcept nogil


cdef class Workspace:
    cdef const Loops *loops                  # NULL: BLAS and plain loops
    cdef const Bfloat16 *bfloat16            # NULL: products in full precision
    cdef readonly bint scoring               # not training
    cdef readonly Py_ssize_t batch_size      # K, examples of a mini-batch
    cdef readonly Py_ssize_t n_columns       # K rounded up: a row of the scratch
    cdef readonly Py_ssize_t stride          # n_outputs rounded up: a row of E
    cdef readonly Py_ssize_t n_tiles, tile_rows
    cdef public Py_ssize_t start_row         # where one example's update begins
    cdef unsigned char[::1] memory
    # example-major: one row an example
    cdef void *x                             # (K, n_inputs) word features
    cdef void *a                             # (K, n_hidden) hidden activations
    cdef void *z                             # (K, stride) [a | x | 1 | 0 ...]
    cdef void *da                            # (K, n_hidden)
    cdef void *dx                            # (K, n_inputs)
    # unit-major: one column an example
    cdef void *xt                            # (n_inputs, n_columns)
    cdef void *zt                            # (stride, n_columns)
    cdef void *dzt                           # (stride, n_columns)
    # scratch of the softmax
    cdef void *p                             # (n_words, n_columns), or one tile
    cdef void *tile_max                      # (n_tiles, n_columns)
    cdef void *tile_sum                      # (n_tiles, n_columns)
    cdef void *factor                        # (n_columns,)
    cdef void *keep                          # (stride,)
    cdef int *word                           # (K,) next words
    cdef int *target                         # (K,) their rows, here or not
    cdef double *target_logit                # (K,)
    cdef double *total_max                   # (n_columns,) over these words
    cdef double *total_sum                   # (n_columns,)
    cdef double *softmax_max                 # (n_columns,) over all words
    cdef double *softmax_sum                 # (n_columns,)
    # a tile's matrices in bfloat16, as bfloat16.h packs them
    cdef Py_ssize_t R, D, N                  # rows, stride, n_columns to whole panels
    cdef bf16 *left_E                        # (R, D), then (D, R)
    cdef bf16 *left_g                        # (R, N)
    cdef bf16 *right_zt                      # N / 32 panels of depth D
    cdef bf16 *right_g                       # N / 32 panels of depth R
    cdef bf16 *right_z                       # D / 32 panels of depth N
    cdef float *ones                         # (N,)
