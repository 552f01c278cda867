"""Train with members that share the examples of each mini-batch.

Each member computes the gradients of some of the examples, with kernels of its own; then
each updates some of the parameters from the gradients of all. Members wait for each other
twice a mini-batch. A result depends on the number of members, not on timing.
"""

from libc.string cimport memcpy

import numpy as np

from nplm._kernels.neural._gradients cimport Gradient, Gradients
from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._network cimport take_windows
from nplm._kernels.neural._solvers cimport Solver, Step
from nplm._kernels.neural._team cimport (
    MAX_MEMBERS, Barrier, Team, barrier_arrive, barrier_break, barrier_broken,
    barrier_passed, barrier_wait,
)
from nplm._kernels.neural.outputs._output cimport Output

from nplm._kernels.neural._network import check_windows


cpdef Py_ssize_t first_of(
    int member, int size, Py_ssize_t K, Py_ssize_t batch_size, Py_ssize_t run_length,
) noexcept nogil:
    """Return the first of the K examples of a mini-batch that a member takes.

    No twin: NumPy's network has one member.

    A smaller mini-batch has shorter runs, as many as the others: each member goes on with
    its own. What is left of it goes on with the last run.
    """
    cdef Py_ssize_t n_runs = batch_size // run_length
    if run_length == 1:
        return K * member // size
    if member == size:
        return K
    return n_runs * member // size * (K // n_runs)


def most_examples(int size, Py_ssize_t batch_size, Py_ssize_t run_length):
    """Return the maximum number of examples of a mini-batch that a member takes.

    No twin: NumPy's network has one thread.
    """
    cdef Py_ssize_t n_runs = batch_size // run_length
    left = n_runs - 1 if run_length > 1 else 0
    return min(batch_size, (n_runs + size - 1) // size * run_length + left)


cdef class ExampleTeam:
    """Threads that share the examples of each mini-batch.

    No twin: NumPy's network has one thread.

    Parameters
    ----------
    teams : tuple of Team
        One a member: a team of one, whose solver is a `Gradients`.
    solver : Solver
        Solver that updates the parameters.
    batch_size : int
        Maximum number of examples of a mini-batch, of all members.
    run_length : int
        Number of consecutive examples of a whole mini-batch that a member takes together;
        divides `batch_size`.
    """

    cdef readonly tuple teams
    cdef readonly Py_ssize_t batch_size, run_length
    cdef public double loss   # summed negative log-likelihood
    cdef Solver solver
    cdef Barrier barrier
    cdef (Gradient *)[MAX_MEMBERS] gradients
    cdef Py_ssize_t[::1] places  # (size * batch_size,) memory of the members
    cdef double[MAX_MEMBERS] losses
    cdef double[MAX_MEMBERS] noises

    def __cinit__(self, tuple teams, Solver solver, *, Py_ssize_t batch_size,
                  Py_ssize_t run_length=1):
        cdef Team team
        cdef Gradients own
        cdef Py_ssize_t room
        if not 1 <= len(teams) <= MAX_MEMBERS:
            raise ValueError(
                f"1 to {MAX_MEMBERS} threads can share a fit, not {len(teams)}")
        if run_length < 1 or batch_size % run_length != 0:
            raise ValueError(f"runs of {run_length} of {batch_size} examples")
        room = most_examples(len(teams), batch_size, run_length)
        self.teams, self.solver, self.batch_size = teams, solver, batch_size
        self.run_length = run_length
        self.barrier.size = len(teams)
        self.places = np.empty(len(teams) * batch_size, dtype=np.intp)
        for i, team in enumerate(teams):
            if team.batch_size < room:
                raise ValueError(
                    f"{len(teams)} members with room for {team.batch_size} examples do "
                    f"not have it for {batch_size}")
            own = team.solver
            self.gradients[i] = own.of

    def give_up(self):
        """Make all members return, from a barrier or after the mini-batch."""
        barrier_break(&self.barrier)


cdef void differentiate(
    Team team, Activations at, Output output, Gradients own, Py_ssize_t K,
) noexcept nogil:
    """Collect the gradients of the K examples that were taken."""
    cdef Step step = own.step(K)
    cdef Py_ssize_t n = at.n_distinct[0]
    team.inputs.visit(at, n, own)
    team.inputs.forward(at, n)
    team.hidden.forward(at, K)
    output.begin(K)
    output.forward(K, NULL)
    output.combine(&output.own, 1, K)
    output.backward(K, own, &step)
    output.end(K, own, &step)
    team.hidden.backward(at, K, own, &step)
    team.inputs.backward(at, n, own, &step)
    output.follow(own, &step)
    team.inputs.features.end(own, &step)


def train(
    ExampleTeam shared, int member, const int[:, :] X, const int[:] y,
    const Py_ssize_t[::1] index,
):
    """Train on the examples ``index``, in mini-batches of ``shared.batch_size``.

    All threads must call this concurrently. ``shared.loss`` grows by the negative
    log-likelihood of each example just before its update.

    Equivalent to ``reference.neural.train``.
    """
    cdef Team team = shared.teams[member]
    cdef Gradients own = team.solver
    cdef Output output = team.outputs[0]
    cdef Solver solver = shared.solver
    cdef Activations at = team.at
    cdef Py_ssize_t n = len(index), start = 0, batch = shared.batch_size, K, first, mine
    cdef Py_ssize_t *places = &shared.places[member * shared.batch_size]
    cdef int size = shared.barrier.size, i
    cdef double noise
    cdef Step step
    check_windows(team, X, index)
    with nogil:
        while start < n and not barrier_broken(&shared.barrier):
            K = min(batch, n - start)
            first = first_of(member, size, K, batch, shared.run_length)
            mine = first_of(member + 1, size, K, batch, shared.run_length) - first
            step = solver.step(K)
            own.begin()
            shared.losses[member] = shared.noises[member] = 0
            if mine > 0:
                output.arrange(y, index, start, K, size, places)
                memcpy(at.places, places + first, mine * sizeof(Py_ssize_t))
                take_windows(team, at, X, y, index, start, mine)
                differentiate(team, at, output, own, mine)
                shared.losses[member] = output.loss(&output.own, 1, mine)
                shared.noises[member] = output.noise()
            else:
                output.skip()
            if barrier_wait(&shared.barrier):
                break
            own.update(own.parameter, shared.gradients, size, member, False, &step)
            if member == 0:
                noise = 0
                for i in range(size):
                    shared.loss += shared.losses[i]
                    noise += shared.noises[i]
                output.adapt(noise, K)
                solver.advance(&step)
            if barrier_wait(&shared.barrier):
                break
            start += K


cdef class RankTeam:
    """One process of several that share the examples of each mini-batch.

    In each mini-batch it collects the gradients of its examples, which the processes then
    exchange: the base of `MessageTeam` and `MemoryTeam`.

    No twin: NumPy's network has one process.

    Parameters
    ----------
    team : Team
        Team of one, whose solver is a `Gradients`.
    received : tuple of Gradients
        For what each process has made known.
    solver : Solver
        Solver that updates the parameters.
    batch_size : int
        Maximum number of examples of a mini-batch, of all processes.
    **options
        Parameters of the class that is made.
    """

    cdef readonly Py_ssize_t batch_size
    cdef public double loss   # summed negative log-likelihood
    cdef readonly double own_loss, own_noise  # of this process, in the mini-batch
    cdef Team team
    cdef Gradients own
    cdef tuple received
    cdef Solver solver
    cdef Output output
    cdef Py_ssize_t[::1] places
    cdef (Gradient *)[MAX_MEMBERS + 1] gradients

    def __cinit__(
        self, Team team, tuple received, Solver solver, *, Py_ssize_t batch_size,
        **options,
    ):
        if len(received) > MAX_MEMBERS:
            raise ValueError(
                f"1 to {MAX_MEMBERS} processes can share a fit, not {len(received)}")
        self.team, self.received = team, received
        self.own, self.solver, self.output = team.solver, solver, team.outputs[0]
        self.batch_size = batch_size
        self.places = np.empty(batch_size, dtype=np.intp)

    def give_up(self):
        """Do nothing: processes wait for each other between calls only."""

    def collect(
        self, const int[:, :] X, const int[:] y, const Py_ssize_t[::1] index,
        Py_ssize_t first, Py_ssize_t mine,
    ):
        """Collect the gradients of `mine` examples of a mini-batch, from `first` on."""
        cdef Activations at = self.team.at
        cdef Py_ssize_t K = len(index)
        cdef int n_members = <int>len(self.received)
        check_windows(self.team, X, index)
        if first < 0 or mine < 0 or first + mine > K or K > self.batch_size:
            raise ValueError(f"no examples {first} to {first + mine} of {K}")
        with nogil:
            self.own.begin()
            self.own_loss = self.own_noise = 0
            if mine > 0:
                self.output.arrange(y, index, 0, K, n_members, &self.places[0])
                memcpy(at.places, &self.places[first], mine * sizeof(Py_ssize_t))
                take_windows(self.team, at, X, y, index, 0, mine)
                differentiate(self.team, at, self.output, self.own, mine)
                self.own_loss = self.output.loss(&self.output.own, 1, mine)
                self.own_noise = self.output.noise()
            else:
                self.output.skip()

    cdef void update(
        self, int n, int member, bint alone, Py_ssize_t K, double loss, double noise,
    ) noexcept nogil:
        """Update this member's parameters, or all, from the first n of `gradients`."""
        cdef Step step = self.solver.step(K)
        self.own.update(
            self.own.parameter, self.gradients, n, member, alone, &step)
        self.loss += loss
        self.output.adapt(noise, K)
        self.solver.advance(&step)


cdef class MessageTeam(RankTeam):
    """One process of several that send each other their gradients.

    Every process has all parameters. The `whole` of its solver is to be added up, and
    what `pack` writes is for all. `apply` makes the same update in every process.

    No twin: NumPy's network has one process.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `RankTeam`; its team's solver has `whole`.
    first : Gradients
        For the sums of all processes, with the same `whole`.
    alike : ndarray of bytes
        Memory for the gradients of rows that all processes visit.
    """

    cdef readonly Py_ssize_t n_alike  # numbers in `alike`
    cdef Gradients first
    cdef unsigned char[::1] alike

    def __cinit__(self, *args, Gradients first, unsigned char[::1] alike, **kwargs):
        cdef Gradients other
        self.first, self.alike = first, alike
        self.gradients[0] = first.of
        for i, other in enumerate(self.received):
            self.gradients[i + 1] = other.of

    def packed(self):
        """Return the number of bytes to pack, after `collect`; fill `whole`."""
        cdef Py_ssize_t i
        self.n_alike = 0
        for i in range(self.own.n_parameters):
            self.n_alike += self.own.of[i].n_alike * self.own.of[i].columns
        self.own.fill_whole()
        return self.own.packed()

    def pack(self, unsigned char[::1] to):
        """Write the gradients of visited rows."""
        if len(to) < self.own.packed():
            raise ValueError(f"no room for {self.own.packed()} bytes in {len(to)}")
        if len(self.alike) < self.n_alike * self.own.itemsize:
            raise ValueError(f"no room for {self.n_alike} numbers")
        self.own.pack(
            <char *>&to[0], &self.alike[0] if len(self.alike) else NULL, 0, 0)

    def apply(
        self, unsigned char[::1] packed, const Py_ssize_t[::1] starts, Py_ssize_t K,
        double loss, double noise,
    ):
        """Update all parameters from the gradients of all processes."""
        cdef Gradients other
        cdef void *alike = &self.alike[0] if len(self.alike) else NULL
        cdef int n = <int>len(self.received) + 1
        self.first.begin()
        for i, other in enumerate(self.received):
            other.unpack(<char *>&packed[starts[i]], self.first, alike)
        with nogil:
            self.update(n, 0, True, K, loss, noise)


cdef class MemoryTeam(RankTeam):
    """One process of several on one computer, in whose memory the parameters are once.

    As threads do (`ExampleTeam`), each process updates some of the parameters from the
    gradients of all. `post` writes for the others what they need of its own, and `apply`
    reads what they have posted; processes wait for each other after each of the two.

    No twin: NumPy's network has one process.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `RankTeam`. Each solver's `whole` is memory that all processes have.
    member : int
        Number of this process.
    barrier : ndarray of bytes
        Memory that all processes have, with zeros at first.
    """

    cdef int member, round
    cdef Barrier *barrier
    cdef unsigned char[::1] barrier_memory, posted
    cdef Py_ssize_t room       # of `posted`, for each process

    def __cinit__(
        self, *args, int member, unsigned char[::1] barrier, **kwargs,
    ):
        cdef Gradients other
        cdef Py_ssize_t n = len(barrier)
        if n != sizeof(Barrier):
            raise ValueError(f"{n} bytes are not a barrier of {sizeof(Barrier)}")
        self.member, self.barrier_memory = member, barrier
        self.barrier = <Barrier *>&barrier[0]
        self.barrier.size = <int>len(self.received)  # the same of all processes
        for i, other in enumerate(self.received):
            self.gradients[i] = other.of
        self.gradients[member] = self.own.of

    @property
    def most_posted(self):
        """Maximum number of bytes that `post` writes."""
        return self.own.most_posted()

    def share(self, unsigned char[::1] posted):
        """Set the memory that all processes have, with `most_posted` bytes for each."""
        cdef Py_ssize_t n = <int>len(self.received)
        if len(posted) != n * self.own.most_posted():
            raise ValueError(
                f"{len(posted)} bytes are not {n} times {self.own.most_posted()}")
        self.posted, self.room = posted, self.own.most_posted()

    def arrive(self):
        """Arrive where processes wait for each other."""
        self.round = barrier_arrive(self.barrier)

    def passed(self):
        """Return whether all processes have arrived, after a second at the latest."""
        cdef bint passed
        with nogil:
            passed = barrier_passed(self.barrier, self.round)
        return passed

    def post(self):
        """Write what other processes need of the gradients of visited rows."""
        with nogil:
            self.own.pack(<char *>&self.posted[self.member * self.room], NULL,
                          self.barrier.size, self.member)

    def apply(self, Py_ssize_t K, double loss, double noise):
        """Update the parameters of this process from the gradients of all."""
        cdef Gradients other
        for i, other in enumerate(self.received):
            if i != self.member:
                other.unpack(<char *>&self.posted[i * self.room], other, NULL)
        with nogil:
            self.update(self.barrier.size, self.member, False, K, loss, noise)


BARRIER_BYTES = sizeof(Barrier)
