"""Teams that share one fit: each member has a block of the output units.

This is the parameter-parallel algorithm of section 3.2. Member i has the rows from
i * ceil(|V| / M) on, as CPU i of the paper. The members of a process are its threads;
the first does the negligible work before and after the output units. Other members
may be other processes. A result depends on the number of members, not on timing.
"""

from libc.string cimport memcpy

from nplm._kernels.neural.hidden._hidden cimport Hidden
from nplm._kernels.neural._inputs cimport Activations, Inputs
from nplm._kernels.neural._loops cimport Tier
from nplm._kernels.neural._solvers cimport Solver
from nplm._kernels.neural.outputs._output cimport Output, Totals


def block_starts(Py_ssize_t n_words, int size):
    """Return the first output row of each of `size` members, and ``n_words``.

    The rows of member i start at i * ceil(|V| / M), as in section 3.2; members beyond
    the last row have none.

    No twin: one line, tested for what it promises.
    """
    cdef Py_ssize_t block = (n_words + size - 1) // size
    return [min(n_words, i * block) for i in range(size + 1)]


cdef class UpdateLock:
    """A lock on the parameters, held by a thread during its update.

    It is that of the synchronised implementation that the paper tried first (section
    3.1).

    No twin: NumPy's network has one thread.
    """


cdef class Team:
    """Members of a fit, and the parts of the network that they share.

    No twin: NumPy's network has one member.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    at : Activations
        Arrays that the parts pass to each other.
    inputs, hidden : Inputs, Hidden
        Kernels of the first member.
    outputs : tuple of Output
        One per member of this process.
    solver : Solver or None
        Solver that updates the parameters; None for a team that only scores.
    n_outcomes : int
        Number of outcomes, including those of other processes.
    size : int
        Number M of members, in all processes.
    here : int, default=0
        The first member of this process; the only one if there are other processes,
        which share the next two between calls of the kernel.
    totals : ndarray of float64, shape (size or 1, 3, columns)
        Maximum, target logit and sum of each member. With one row: those of this
        member, replaced by the combined ones.
    slopes : ndarray of bytes
        dL/dz of this member, replaced by the sum over all members.
    lock : UpdateLock, optional
        Shared with other teams that change the same parameters.
    """

    def __cinit__(
        self, Tier tier, Activations at, Inputs inputs, Hidden hidden, tuple outputs,
        Solver solver=None, *, int n_outcomes, int size=1, int here=0,
        double[:, :, ::1] totals=None, unsigned char[::1] slopes=None,
        UpdateLock lock=None,
    ):
        cdef Output output
        cdef int i
        if not 1 <= size <= MAX_MEMBERS:
            raise ValueError(
                f"1 to {MAX_MEMBERS} threads or processes can share a fit, not {size}"
            )
        self.loops = tier.loops
        self.at, self.inputs, self.hidden, self.outputs = at, inputs, hidden, outputs
        self.solver = solver
        self.size, self.here = size, here
        self.n_outcomes = n_outcomes
        output = outputs[len(outputs) - 1]
        if not 1 <= output.first + output.n_words <= n_outcomes:
            raise ValueError(
                f"words {output.first} to {output.first + output.n_words} of "
                f"{n_outcomes} outcomes")
        self.update_lock = lock
        self.lock = NULL if lock is None else &lock.lock
        if solver is not None:
            solver.lock = self.lock
        self.barrier.size = len(outputs)
        self.shared_totals, self.shared_slopes = totals, slopes
        if totals is None:
            self.n_totals = len(outputs)
            for i in range(self.n_totals):
                output = outputs[i]
                self.totals[i] = output.own
        else:
            self.n_totals = len(totals)
            for i in range(self.n_totals):
                self.totals[i] = Totals(
                    high=&totals[i, 0, 0], target=&totals[i, 1, 0], sum=&totals[i, 2, 0])
        if slopes is not None:
            output = outputs[0]
            if len(slopes) != output.n_slopes * at.itemsize:
                raise ValueError(
                    f"{len(slopes)} bytes are not {output.n_slopes} slopes of "
                    f"{at.itemsize}")
            output.slopes = &slopes[0]
        for i in range(len(outputs)):
            output = outputs[i]
            self.slopes[i] = output.slopes
            self.n_slopes = output.n_slopes

    @property
    def batch_size(self):
        """Examples of a mini-batch."""
        return self.at.batch_size

    def give_up(self):
        """Make all members return, from a barrier or after the mini-batch."""
        barrier_break(&self.barrier)

    cdef void publish(self, Output output) noexcept nogil:
        """Copy the totals of this process to the shared array."""
        cdef size_t n = self.at.columns * sizeof(double)
        cdef int i = min(self.here, self.n_totals - 1)
        if self.shared_totals is not None:
            memcpy(self.totals[i].high, output.own.high, n)
            memcpy(self.totals[i].target, output.own.target, n)
            memcpy(self.totals[i].sum, output.own.sum, n)

    cdef void add_slopes(self) noexcept nogil:
        """Add the dL/dz of the other threads to that of the first, in order."""
        cdef int i
        for i in range(1, self.barrier.size):
            self.loops.add(self.slopes[0], self.slopes[i], self.n_slopes, 1)
