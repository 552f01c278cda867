cimport cython

from nplm._kernels._workspace cimport Workspace

cdef extern from "barrier.h" nogil:
    ctypedef struct Barrier:
        int size, waiting, round, broken
    int barrier_wait(Barrier *)
    void barrier_break(Barrier *)


cdef class Team:
    cdef readonly int size
    cdef readonly tuple workspaces     # one a member
    cdef Barrier barrier
    cdef (void *)[256] dzt             # each member's, to add up
    cdef (double *)[256] total_max     # each member's, to combine
    cdef (double *)[256] total_sum
    cdef (double *)[256] target_logit
    cdef Py_ssize_t[257] first         # first output row of each member


cdef void combine_softmax(Team team, Py_ssize_t K, Workspace work) noexcept nogil
cdef void add_gradients(Team team, Py_ssize_t n, cython.floating *dzt) noexcept nogil
