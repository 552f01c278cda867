cimport cython

from nplm._kernels.neural._workspace cimport Workspace

cdef extern from "barrier.h" nogil:
    ctypedef struct Barrier:
        int size, waiting, round, broken
    int barrier_wait(Barrier *)
    int barrier_broken(const Barrier *)
    void barrier_break(Barrier *)

cdef extern from "lock.h" nogil:
    ctypedef struct Lock:
        int taken
    void lock_acquire(Lock *)
    void lock_release(Lock *)
    double atomic_read(const double *)
    void atomic_add(double *, double)

cdef enum:
    MAX_MEMBERS = 1024


cdef class UpdateLock:
    cdef Lock lock


cdef class Team:
    cdef readonly int size             # members, here and elsewhere
    cdef readonly int here             # the first member of this process
    cdef readonly tuple workspaces     # one a member of this process
    cdef Barrier barrier
    cdef UpdateLock update_lock
    cdef Lock *lock                    # around updates, or NULL
    cdef double[:, :, ::1] totals      # of all processes, or None
    cdef int n_totals                  # members' to combine, here and elsewhere
    cdef unsigned char[::1] gradients
    cdef (void *)[MAX_MEMBERS] dzt             # each member's, to add up
    cdef (double *)[MAX_MEMBERS] total_max     # each member's, to combine
    cdef (double *)[MAX_MEMBERS] total_sum
    cdef (double *)[MAX_MEMBERS] target_logit
    cdef Py_ssize_t[MAX_MEMBERS + 1] first     # first output row of each member


cdef void publish_totals(Team team, Workspace work) noexcept nogil

cdef void combine_softmax(Team team, Py_ssize_t K, Workspace work) noexcept nogil
cdef void add_gradients(Team team, Py_ssize_t n, cython.floating *dzt) noexcept nogil
