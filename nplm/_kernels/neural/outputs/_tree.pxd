from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural.outputs._output cimport Rows


cdef class Tree(Rows):
    cdef Solver solver
    cdef const int[:, ::1] children  # of inner nodes
    cdef const int[::1] parents      # of words, then of inner nodes
    cdef int root
    cdef int *path            # row or ~row of each node above a word, all examples'
    cdef Py_ssize_t *starts   # (K + 1,) where each example's begin
    cdef int *slots           # of these nodes, in `met`
    cdef int *slot_of         # (n_inner,) -1 if a node is not visited
    cdef int *met             # rows of this mini-batch, each once
    cdef Py_ssize_t n_met
    cdef void *margins        # of these nodes, then log sigmoid of them
    cdef void *shares         # their slopes
    cdef void *gradients      # (n_met, stride)
    cdef void *zt16           # (stride, 16)
    cdef void *inner          # (n_inner, 16) logits
    cdef void *log_p          # (n_words + n_inner, 16)
    cdef Py_ssize_t climb(self, int word, int *path) noexcept nogil
    cdef double walk(self, Py_ssize_t k, Py_ssize_t start, Py_ssize_t n) noexcept nogil
    cdef void descend(self, Py_ssize_t K, char *log_p) noexcept nogil
