"""Those who share one fit: each member holds a block of the output units.

Section 3.2's parameter-parallel algorithm. Member i has the rows from
i * ceil(|V| / M) on, as CPU i of the paper. The members of a process are its
threads, the first of which does what comes before and after the output units,
for it is negligible; other members may be processes elsewhere. A result depends
on the number of members, not on their timing.
"""

cimport cython
from libc.math cimport exp
from libc.string cimport memcpy

from nplm._kernels.neural._workspace cimport Workspace


def block_starts(Py_ssize_t n_words, int size):
    """First output row of each of `size` members, and ``n_words`` at the end.

    Member i's rows start at i * ceil(|V| / M), as in section 3.2; members beyond
    the last row hold none.
    """
    cdef Py_ssize_t block = (n_words + size - 1) // size
    return [min(n_words, i * block) for i in range(size + 1)]


cdef class UpdateLock:
    """A lock on the parameters, held by one thread at a time while it updates.

    The synchronised implementation that the paper tried first (section 3.1).
    """


cdef class Team:
    """Members of a fit and their scratch memory.

    Parameters
    ----------
    size : int
        Members, M. Threads without a row are left out; processes are not.
    n_words : int
        Output units to share.
    lock : UpdateLock, optional
        Shared with other teams that change the same parameters.
    member : int, optional
        The one member of this process, when the others are processes elsewhere.
        They share, between calls of the kernel, the next two.
    totals : ndarray of float64, shape (size or 1, 3, n_columns)
        Each member's `total_max`, `target_logit` and `total_sum`. One: this
        member's, and then what they combine to.
    gradients : ndarray of bytes
        This member's dL/dz, and then the sum of all members', (stride,
        n_columns) numbers.
    *args, **kwargs
        Of `Workspace`, but for its `n_words`.
    """

    def __cinit__(
        self, str tier, Py_ssize_t batch_size, Py_ssize_t n_words, *args,
        int size, UpdateLock lock=None, member=None, double[:, :, ::1] totals=None,
        unsigned char[::1] gradients=None, **kwargs,
    ):
        cdef Workspace work
        cdef int i
        if not 1 <= size <= MAX_MEMBERS:
            raise ValueError(
                f"1 to {MAX_MEMBERS} threads or processes can share a fit, not {size}"
            )
        first = block_starts(n_words, size)
        self.size = size
        if member is None:
            self.size = len([start for start in first if start < n_words])
        for i in range(self.size + 1):
            self.first[i] = first[i]
        self.update_lock = lock
        self.lock = NULL if lock is None else &lock.lock
        workspaces = []
        self.here = 0 if member is None else member
        for i in range(self.size) if member is None else [member]:
            work = Workspace(
                tier, batch_size, self.first[i + 1] - self.first[i], *args,
                scoring=False, **kwargs,
            )
            if workspaces:  # all threads read what the first writes
                work.z = (<Workspace>workspaces[0]).z
                work.zt = (<Workspace>workspaces[0]).zt
            self.dzt[i] = work.dzt
            self.total_max[i] = work.total_max
            self.total_sum[i] = work.total_sum
            self.target_logit[i] = work.target_logit
            workspaces.append(work)
        self.workspaces = tuple(workspaces)
        self.barrier.size = len(workspaces)
        self.totals = totals
        self.n_totals = self.size if totals is None else len(totals)
        self.gradients = gradients
        if member is not None:
            (<Workspace>workspaces[0]).dzt = &gradients[0]
            for i in range(self.n_totals):
                self.total_max[i] = &totals[i, 0, 0]
                self.target_logit[i] = &totals[i, 1, 0]
                self.total_sum[i] = &totals[i, 2, 0]

    @property
    def batch_size(self):
        """Examples of a mini-batch."""
        return self.workspaces[0].batch_size

    def give_up(self):
        """Make all members return: from a wait at once, or after a mini-batch."""
        barrier_break(&self.barrier)


cdef void publish_totals(Team team, Workspace work) noexcept nogil:
    """Put this process's totals where they can be sent to the others."""
    cdef size_t n = work.n_columns * sizeof(double)
    cdef int i = min(team.here, team.n_totals - 1)
    if team.totals is not None:
        memcpy(team.total_max[i], work.total_max, n)
        memcpy(team.target_logit[i], work.target_logit, n)
        memcpy(team.total_sum[i], work.total_sum, n)


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
        for i in range(1, team.n_totals):
            high = max(high, team.total_max[i][k])
        total = 0
        for i in range(team.n_totals):
            total += team.total_sum[i][k] * exp(team.total_max[i][k] - high)
        work.softmax_max[k] = high
        work.softmax_sum[k] = total


cdef void add_gradients(
    Team team, Py_ssize_t n, cython.floating *dzt
) noexcept nogil:
    """Add the other threads' dL/dz to the first's, in their order."""
    cdef cython.floating *other
    cdef Py_ssize_t j
    cdef int i
    for i in range(1, team.barrier.size):
        other = <cython.floating *>team.dzt[i]
        for j in range(n):
            dzt[j] += other[j]
