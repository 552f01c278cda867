cdef class Workspace:
    cdef readonly Py_ssize_t batch_size      # K, examples of a mini-batch
    cdef readonly Py_ssize_t n_columns       # K rounded up: a row of the scratch
    cdef readonly Py_ssize_t n_tiles, tile_rows
    cdef readonly Py_ssize_t itemsize
    cdef readonly Py_ssize_t nbytes
    cdef void *memory
    # example-major: one row an example
    cdef void *x                             # (K, n_inputs) word features
    cdef void *a                             # (K, n_hidden) hidden activations
    cdef void *z                             # (K, n_outputs) [a | x | 1]
    cdef void *da                            # (K, n_hidden)
    cdef void *dx                            # (K, n_inputs)
    # unit-major: one column an example
    cdef void *zt                            # (n_outputs, n_columns)
    cdef void *dzt                           # (n_outputs, n_columns)
    # scratch of the softmax
    cdef void *p                             # (n_words, n_columns), or one tile
    cdef void *tile_max                      # (n_tiles, n_columns)
    cdef void *tile_sum                      # (n_tiles, n_columns)
    cdef void *factor                        # (n_columns,)
    cdef int *target                         # (K,)
    cdef double *target_logit                # (K,)
    cdef double *total_max                   # (n_columns,)
    cdef double *total_sum                   # (n_columns,)
