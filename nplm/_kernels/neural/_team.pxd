from nplm._kernels.neural.hidden._hidden cimport Hidden
from nplm._kernels.neural._inputs cimport Activations, Inputs
from nplm._kernels.neural._loops cimport Loops
from nplm._kernels.neural._solvers cimport Clock, Lock, Solver
from nplm._kernels.neural.outputs._output cimport Output, Totals

cdef extern from "barrier.h" nogil:
    ctypedef struct Barrier:
        int size, waiting, round, broken
    int barrier_arrive(Barrier *)
    int barrier_passed(const Barrier *, int round)
    int barrier_wait(Barrier *)
    int barrier_broken(const Barrier *)
    void barrier_break(Barrier *)

cdef enum:
    MAX_MEMBERS = 1024


cdef class UpdateLock:
    cdef Lock lock


cdef class Team:
    # the parts of the network; one output a member of this process
    cdef readonly Activations at
    cdef Inputs inputs
    cdef Hidden hidden
    cdef readonly tuple outputs
    cdef Solver solver                 # None: a team that scores
    cdef public double loss            # summed negative log-likelihood
    cdef readonly int size             # members, here and elsewhere
    cdef readonly int here             # the first member of this process
    cdef int n_outcomes                # next words are below it
    cdef Barrier barrier
    cdef UpdateLock update_lock
    cdef Lock *lock                    # around updates, or NULL
    cdef const Loops *loops
    cdef double[:, :, ::1] shared_totals   # with other processes, or None
    cdef unsigned char[::1] shared_slopes
    cdef int n_totals                  # to combine, of members here and elsewhere
    cdef Totals[MAX_MEMBERS] totals
    cdef Py_ssize_t n_slopes
    cdef (void *)[MAX_MEMBERS] slopes  # of members of this process, to add up
    cdef void publish(self, Output output) noexcept nogil
    cdef void add_slopes(self) noexcept nogil
