from libc.stdint cimport int64_t

from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural.outputs._output cimport Rows


cdef class Tree(Rows):
    cdef Solver solver
    cdef const int[::1] branches     # the child of each, node by node
    cdef const int64_t[::1] starts   # (n_nodes + 1,) of each node's
    cdef const int[::1] parents      # of words, then of nodes
    cdef const int[::1] places       # which child of its parent each is
    cdef Py_ssize_t n_nodes
    cdef int root
    cdef int *path            # the nodes above each word, all examples'
    cdef int *taken           # the branch of each of them
    cdef Py_ssize_t *starts_here  # (K + 1,) where each example's path begins
    cdef Py_ssize_t *rows_here    # (K,) and the logits of its nodes
    cdef int *slots           # of the first row of these nodes, in `met`
    cdef int *slot_of         # (n_nodes,) -1 if a node is not visited
    cdef int *met             # rows of this mini-batch, each once
    cdef Py_ssize_t n_met
    cdef void *logits         # of the rows on the paths; in training, then slopes
    cdef void *gradients      # (n_met, stride)
    cdef void *zt16           # (stride, 16)
    cdef void *inner          # (n_rows, 16) logits
    cdef void *log_p          # (n_words + n_nodes, 16)
    cdef inline Py_ssize_t width(self, int node) noexcept nogil
    cdef Py_ssize_t climb(self, int word, int *path, int *taken) noexcept nogil
    cdef double walk(
        self, Py_ssize_t k, const int *path, const int *taken, Py_ssize_t n,
        char *logits) noexcept nogil
    cdef void descend(self, Py_ssize_t K, char *log_p) noexcept nogil
