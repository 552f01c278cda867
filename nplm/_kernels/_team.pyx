"""Threads that share one fit: each holds a block of the output units.

The shared-memory form of section 3.2's parameter-parallel algorithm. Member i
has the rows from i * ceil(|V| / M) on, as CPU i of the paper; member 0 also does
what comes before and after the output units, which is negligible. A result
depends on the number of members, not on their timing.
"""

cimport cython
from libc.math cimport exp

from nplm._kernels._workspace cimport Workspace


cdef class Team:
    """Members of a fit and their scratch memory.

    Parameters
    ----------
    size : int
        Members, M.
    n_words : int
        Output units to share.
    *args, **kwargs
        Of `Workspace`, but for its `n_words`.
    """

    def __cinit__(
        self, str tier, Py_ssize_t batch_size, Py_ssize_t n_words, *args,
        int size, **kwargs,
    ):
        cdef Py_ssize_t block
        cdef Workspace work
        cdef int i
        if not 1 <= size <= 256:
            raise ValueError(f"a fit can use 1 to 256 threads, not {size}")
        block = (n_words + size - 1) // size
        self.size = (n_words + block - 1) // block  # no member without a row
        workspaces = []
        for i in range(self.size):
            self.first[i] = i * block
            self.first[i + 1] = min(n_words, (i + 1) * block)
            work = Workspace(
                tier, batch_size, self.first[i + 1] - self.first[i], *args,
                keep_probabilities=True, **kwargs,
            )
            if i > 0:  # all read what member 0 writes
                work.z = (<Workspace>workspaces[0]).z
                work.zt = (<Workspace>workspaces[0]).zt
            self.dzt[i] = work.dzt
            self.total_max[i] = work.total_max
            self.total_sum[i] = work.total_sum
            self.target_logit[i] = work.target_logit
            workspaces.append(work)
        self.workspaces = tuple(workspaces)
        self.barrier.size = self.size

    @property
    def batch_size(self):
        """Examples of a mini-batch."""
        return self.workspaces[0].batch_size

    def give_up(self):
        """Let members that wait for one that will not come return."""
        barrier_break(&self.barrier)


cdef void combine_softmax(Team team, Py_ssize_t K, Workspace work) noexcept nogil:
    """The softmax's maximum and sum over all members' output units.

    Equivalent to ``Q = max(q_i); S = sum(s_i exp(q_i - Q))`` (section 3.2). Every
    member computes it for itself, in the same order.
    """
    cdef Py_ssize_t k
    cdef int i
    cdef double high, total
    for k in range(K):
        high = team.total_max[0][k]
        for i in range(1, team.size):
            high = max(high, team.total_max[i][k])
        total = 0
        for i in range(team.size):
            total += team.total_sum[i][k] * exp(team.total_max[i][k] - high)
        work.softmax_max[k] = high
        work.softmax_sum[k] = total


cdef void add_gradients(
    Team team, Py_ssize_t n, cython.floating *dzt
) noexcept nogil:
    """Add the other members' dL/dz to member 0's, in their order."""
    cdef cython.floating *other
    cdef Py_ssize_t j
    cdef int i
    for i in range(1, team.size):
        other = <cython.floating *>team.dzt[i]
        for j in range(n):
            dzt[j] += other[j]
