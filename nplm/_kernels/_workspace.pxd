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


cdef class Workspace:
    cdef const Loops *loops                  # NULL: BLAS and plain loops
    cdef readonly Py_ssize_t batch_size      # K, examples of a mini-batch
    cdef readonly Py_ssize_t n_columns       # K rounded up: a row of the scratch
    cdef readonly Py_ssize_t stride          # n_outputs rounded up: a row of E
    cdef readonly Py_ssize_t n_tiles, tile_rows
    cdef readonly Py_ssize_t nbytes
    cdef public Py_ssize_t start_row         # where one example's update begins
    cdef void *memory
    # example-major: one row an example
    cdef void *x                             # (K, n_inputs) word features
    cdef void *a                             # (K, n_hidden) hidden activations
    cdef void *z                             # (K, stride) [a | x | 1 | 0 ...]
    cdef void *da                            # (K, n_hidden)
    cdef void *dx                            # (K, n_inputs)
    # unit-major: one column an example
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
