"""Gradients that members of a team collect, each from examples of its own.

The parts of a network call a solver with their gradients. `Gradients` takes its place: it
keeps them, until all members are ready. Then each member adds up the gradients of all,
in their order, for rows of its own, and has the solver update these. No other member
writes to them, and a result depends on the number of members, not on timing.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._products cimport Products
from nplm._kernels.neural._solvers cimport Clock, Parameter, Solver, Step


cdef inline void *moved(void *values, Py_ssize_t n_bytes) noexcept nogil:
    return <char *>values + n_bytes


cdef class Gradients(Solver):
    """Gradients of the examples of one member.

    It has the interface of a solver, to which it leaves the weight decay of rows that
    are about to be read. Each array is either visited in some rows, once each, or
    updated whole.

    No twin: functions hand each other gradients.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    clock : Clock
        Clock of the solver.
    C : Parameter or None
        Features, if each word has its own.
    solver : Solver
        Solver that makes the updates.
    parameters : list of Parameter
        All that have gradients, the same for all members.
    scratch : Scratch
        Memory of the thread.
    whole : ndarray of bytes, optional
        Memory for the gradients of arrays without visited rows, one after the other.
    **options
        Options of `Solver`.
    """

    def __cinit__(
        self, Tier tier, Clock clock, Parameter C, *, Solver solver, list parameters,
        Scratch scratch, unsigned char[::1] whole=None, **options,
    ):
        cdef Py_ssize_t used = 0
        cdef Parameter p, before = None
        cdef Gradient *gradient
        cdef Py_ssize_t size
        self.whole_values = whole
        self.solver, self.n_parameters = solver, len(parameters)
        self.of = <Gradient *>scratch.bytes(self.n_parameters * sizeof(Gradient))
        # Memory that is not written to is not resident.
        for i, p in enumerate(parameters):
            p.number = i
            # A list, because a loop over objects needs the GIL.
            if before is None:
                self.parameter = p
            else:
                before.next = p
            before = p
            gradient = &self.of[i]
            gradient.kind, gradient.n = NOTHING, 0
            gradient.n_rows, gradient.columns = p.rows, p.columns
            size = p.rows * p.columns * self.itemsize
            if whole is None or p.decayed != NULL:
                gradient.values = scratch.numbers(p.rows * p.columns)
            elif used + size > len(whole):
                raise ValueError(f"no room for {size} bytes in {len(whole)}")
            elif size > 0:
                gradient.values = &whole[used]
                used += size
            if p.decayed != NULL:
                gradient.rows = <int *>scratch.bytes(p.rows * sizeof(int))
                gradient.at = <void **>scratch.bytes(p.rows * sizeof(void *))
                gradient.places = <int *>scratch.bytes(p.rows * sizeof(int))
                memset(gradient.places, 0xff, p.rows * sizeof(int))

    # -- collect ------------------------------------------------------------------

    cdef void begin(self) noexcept nogil:
        """Forget the gradients of the last mini-batch."""
        cdef Py_ssize_t i, j
        cdef Gradient *gradient
        for i in range(self.n_parameters):
            gradient = &self.of[i]
            for j in range(gradient.n):
                gradient.places[gradient.rows[j]] = -1
            gradient.kind, gradient.n, gradient.n_alike = NOTHING, 0, 0

    cdef void visit_row(
        self, Gradient *gradient, int row, void *at,
    ) noexcept nogil:
        """Note where the gradient of a row is."""
        gradient.kind = VISITED
        gradient.rows[gradient.n], gradient.at[gradient.n] = row, at
        gradient.places[row] = <int>gradient.n
        gradient.n += 1

    cdef void *take(
        self, Parameter p, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """Return zeroed memory for the gradients of n rows, not taken before."""
        cdef Gradient *gradient = &self.of[p.number]
        cdef Py_ssize_t size = p.columns * self.itemsize, i
        cdef char *made
        if p.decayed == NULL:
            return moved(self.whole(p, DENSE), first * size)
        made = <char *>gradient.values + gradient.n * size
        for i in range(n):
            self.visit_row(gradient, <int>(first + i), made + i * size)
        memset(made, 0, n * size)
        return made

    cdef void *whole(self, Parameter p, Kind kind) noexcept nogil:
        """Return the memory for the gradient of a whole array, zeroed at first."""
        cdef Gradient *gradient = &self.of[p.number]
        if gradient.kind == NOTHING:
            memset(gradient.values, 0, p.rows * p.columns * self.itemsize)
            gradient.kind = kind
        return gradient.values

    cdef Step step(self, Py_ssize_t K) noexcept nogil:
        """Return the step of K examples of this member, which changes nothing."""
        cdef Step step
        memset(&step, 0, sizeof(Step))
        step.examples = K
        return step

    cdef void visit(self, Parameter p, const int *rows, Py_ssize_t n) noexcept nogil:
        self.solver.visit(p, rows, n)

    cdef void visit_block(
        self, Parameter p, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        self.solver.visit_block(p, first, n)

    cdef void decayed(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t n,
    ) noexcept nogil:
        """Do nothing: the solver updates all rows alike."""

    cdef void scattered(
        self, const Step *step, Parameter p, const int *rows, Py_ssize_t n,
        Py_ssize_t n_alike, void *gradients,
    ) noexcept nogil:
        """Refer to the gradients, which stay where they are until the update."""
        cdef Py_ssize_t i
        if n > 0:
            self.of[p.number].n_alike = n_alike
        for i in range(n):
            self.visit_row(&self.of[p.number], rows[i],
                           moved(gradients, i * p.columns * self.itemsize))

    cdef void visited(
        self, const Step *step, Parameter p, Py_ssize_t row, void *gradient,
    ) noexcept nogil:
        memcpy(self.take(p, row, 1), gradient, p.columns * self.itemsize)

    cdef void block(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        const void *g, Py_ssize_t g_stride, const void *z, Py_ssize_t n, void *memory,
    ) noexcept nogil:
        self.loops.product(
            True, False, rows, p.columns, n, 1, g, g_stride, z, p.columns, 0,
            self.take(p, first, rows), p.columns)

    cdef void dense(
        self, const Step *step, Parameter p, Py_ssize_t first, Py_ssize_t rows,
        void *gradients,
    ) noexcept nogil:
        cdef Py_ssize_t size = p.columns * self.itemsize
        memcpy(self.take(p, first, rows), gradients, rows * size)

    cdef void feature(
        self, const Step *step, int word, const void *gradient,
    ) noexcept nogil:
        cdef Gradient *own = &self.of[self.C.number]
        cdef Py_ssize_t slot = word, m = self.C.columns
        if self.C.decayed == NULL:
            self.whole(self.C, DENSE)
        else:
            if own.places[word] < 0:
                self.take(self.C, word, 1)
            slot = own.places[word]
        self.loops.add(moved(own.values, slot * m * self.itemsize), gradient, m, 1)

    cdef void features(self, const Step *step, void *gradients) noexcept nogil:
        self.loops.add(
            self.whole(self.C, DENSE), gradients, self.C.rows * self.C.columns, 1)

    cdef void vector(
        self, const Step *step, Parameter p, const void *gradient,
    ) noexcept nogil:
        memcpy(self.whole(p, VECTOR), gradient, p.rows * p.columns * self.itemsize)

    cdef void begin_rows(
        self, const Step *step, void *keep, Py_ssize_t n_outputs, Py_ssize_t stride,
    ) noexcept nogil:
        self.loops.fill(keep, stride, 1, 1)

    cdef void tile(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows, void *g,
        Products products, void *keep, void *memory,
    ) noexcept nogil:
        products.update(
            self.take(E, first, rows), rows, g, <Py_ssize_t>step.examples, 1, keep)

    cdef void rows(
        self, const Step *step, Parameter E, Py_ssize_t first, Py_ssize_t rows,
        Py_ssize_t column, Py_ssize_t n, void *z, void *g, void *keep, void *dz,
        void *memory,
    ) noexcept nogil:
        cdef Py_ssize_t stride = E.columns, size = self.itemsize
        self.loops.product(
            False, False, 1, n, rows, 1, g, rows,
            moved(E.values, (first * stride + column) * size), stride, 1, dz, n)
        self.loops.outer(
            g, rows, z, n, 1, moved(self.take(E, first, rows), column * size), stride)

    # -- exchange -----------------------------------------------------------------

    cdef void fill_whole(self) noexcept nogil:
        """Write zeros for arrays without a gradient, before they are added up."""
        cdef Py_ssize_t i
        cdef Gradient *gradient
        for i in range(self.n_parameters):
            gradient = &self.of[i]
            if gradient.kind == NOTHING and gradient.rows == NULL:
                memset(gradient.values, 0,
                       gradient.n_rows * gradient.columns * self.itemsize)

    cdef Py_ssize_t packed(self) noexcept nogil:
        """Return the number of bytes that `pack` writes."""
        cdef Py_ssize_t total = 0, i, n
        for i in range(self.n_parameters):
            n = self.of[i].n - self.of[i].n_alike
            total += 3 * sizeof(int64_t) + round_up(self.of[i].n * sizeof(int), 8)
            total += round_up(n * self.of[i].columns * self.itemsize, 8)
        return total

    cdef Py_ssize_t most_posted(self) noexcept nogil:
        """Return the maximum number of bytes that `pack` writes without `alike`."""
        cdef Py_ssize_t total = 0, i, n
        for i in range(self.n_parameters):
            n = self.of[i].n_rows if self.of[i].rows != NULL else 0
            total += 3 * sizeof(int64_t) + round_up(n * sizeof(int), 8)
            total += round_up(n * self.of[i].columns * self.itemsize, 8)
        return total

    cdef void pack(
        self, char *to, void *alike, int n_members, int member,
    ) noexcept nogil:
        """Copy the gradients of visited rows, for other processes.

        Those that all members visit go to `alike`, to be added up, unless it is NULL. If
        `n_members` is not 0, without those that no other reads, because this member
        updates the row in `merge`, whether others have visited it or not.
        """
        cdef int64_t *head
        cdef Gradient *gradient
        cdef Py_ssize_t i, j, size, n_alike
        for i in range(self.n_parameters):
            gradient = &self.of[i]
            size = gradient.columns * self.itemsize
            n_alike = gradient.n_alike if alike != NULL else 0
            head = <int64_t *>to
            head[0], head[1], head[2] = gradient.kind, gradient.n, n_alike
            to += 3 * sizeof(int64_t)
            memcpy(to, gradient.rows, gradient.n * sizeof(int))
            to += round_up(gradient.n * sizeof(int), 8)
            for j in range(n_alike):
                memcpy(moved(alike, j * size), gradient.at[j], size)
            for j in range(n_alike, gradient.n):
                if n_members == 0 or gradient.rows[j] % n_members != member:
                    memcpy(to + (j - n_alike) * size, gradient.at[j], size)
            to += round_up((gradient.n - n_alike) * size, 8)

    cdef void unpack(self, char *packed, Gradients first, void *alike) noexcept nogil:
        """Refer to the gradients that another process has packed or posted.

        Those of rows that all members visit, added up in `alike`, and of whole arrays
        become those of `first`.
        """
        cdef int64_t *head
        cdef int *rows
        cdef Gradient *gradient
        cdef Py_ssize_t i, j, size
        self.begin()
        for i in range(self.n_parameters):
            gradient = &self.of[i]
            size = gradient.columns * self.itemsize
            head = <int64_t *>packed
            packed += 3 * sizeof(int64_t)
            rows = <int *>packed
            packed += round_up(head[1] * sizeof(int), 8)
            if head[0] == DENSE or head[0] == VECTOR:
                first.of[i].kind = <Kind>head[0]
            if first.of[i].n == 0:
                for j in range(head[2]):
                    first.visit_row(&first.of[i], rows[j], moved(alike, j * size))
            for j in range(head[2], head[1]):
                self.visit_row(gradient, rows[j], packed + (j - head[2]) * size)
            packed += round_up((head[1] - head[2]) * size, 8)

    # -- update -------------------------------------------------------------------

    cdef void update(
        self, Parameter p, Gradient **members, int n_members, int member, bint alone,
        const Step *step,
    ) noexcept nogil:
        """Update this member's rows of p, and of the next, from all gradients.

        `members` are their arrays ``of``. All members must call this, and none may
        collect until all have returned. If this member is `alone`, it updates all rows.
        """
        cdef Gradient *own = NULL
        cdef Py_ssize_t first = 0, n = 0, size, j, start = 0
        if p is None:
            return
        for j in range(n_members - 1, -1, -1):
            if members[j][p.number].kind != NOTHING:
                own, start = &members[j][p.number], j
        if own != NULL and own.kind == VISITED:
            self.merge(p, members, n_members, member, alone, step)
        elif own != NULL:
            if own.kind == DENSE and not alone:
                first = p.rows * member // n_members
                n = p.rows * (member + 1) // n_members - first
            elif alone or member == 0:  # short
                n = p.rows
            size = p.columns * self.itemsize
            for j in range(start + 1, n_members):
                if members[j][p.number].kind != NOTHING:
                    self.loops.add(moved(own.values, first * size),
                                   moved(members[j][p.number].values, first * size),
                                   n * p.columns, 1)
            if own.kind == DENSE:
                self.solver.dense(step, p, first, n, moved(own.values, first * size))
            elif n > 0:
                self.solver.vector(step, p, own.values)
        self.update(p.next, members, n_members, member, alone, step)

    cdef void merge(
        self, Parameter p, Gradient **members, int n_members, int member, bint alone,
        const Step *step,
    ) noexcept nogil:
        """Update rows that this member alone has visited, and a share of the others."""
        cdef Gradient *own
        cdef Gradient *other
        cdef Py_ssize_t i, j, k
        cdef int row, place, holders
        for j in range(n_members):
            own = &members[j][p.number]
            if alone:  # else members have visited them together
                self.solver.visit(p, own.rows, own.n)
            for i in range(own.n):
                row, holders = own.rows[i], 1
                for k in range(n_members):
                    other = &members[k][p.number]
                    if k != j and other.n > 0 and other.places[row] >= 0:
                        if k < j:  # the first that has visited it stands for all
                            holders = 0
                            break
                        holders += 1
                if holders == 0:
                    continue
                if not alone and member != (j if holders == 1 else row % n_members):
                    continue
                for k in range(j + 1, n_members if holders > 1 else 0):
                    other = &members[k][p.number]
                    place = other.places[row] if other.n > 0 else -1
                    if place >= 0:
                        self.loops.add(own.at[i], other.at[place], p.columns, 1)
                self.solver.visited(step, p, row, own.at[i])
