"""Base classes of the outputs.

An output computes the loss from the hidden units, the inputs and the next words. If its
rows are shared, each member of a team has some of them; members only exchange the
totals of their words and dL/dz.
"""

from libc.math cimport NAN, exp, log
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step

from nplm._kernels.neural._loops import row_stride


cdef class Output:
    """The output units of one member.

    No twin: its kinds have theirs.

    The methods are in the order of their calls in a mini-batch: only the first member
    runs `begin` and `end`. Scoring calls only `begin` and `forward`, and computes
    ``log P = own.target - own.high - log(own.sum)`` (with several members, see
    `combine`). A normalised output returns 0 for the maximum, 1 for the sum and log P
    for the target's logit.

    Parameters
    ----------
    tier : Tier
        Loops for this processor.
    scratch : Scratch
        Memory of the thread.
    at : Activations
        Activations of the lower layers.
    first, n_words : int
        The words of this member.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Py_ssize_t first,
        Py_ssize_t n_words, **kwargs,
    ):
        cdef double *totals
        self.at, self.loops, self.itemsize = at, tier.loops, tier.itemsize
        self.first, self.n_words = first, n_words
        self.words = at.words
        # Loops over columns extend to whole vectors.
        self.columns, self.wide = at.columns, round_up(at.columns, 16)
        totals = <double *>scratch.bytes(6 * self.wide * sizeof(double))
        self.own = Totals(totals, totals + self.wide, totals + 2 * self.wide)
        totals += 3 * self.wide
        self.all = Totals(totals, totals + self.wide, totals + 2 * self.wide)

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """Read a and x of K examples."""

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Compute the totals of this member's words, and keep what `backward` needs.

        Scoring fills `logits`, (K, n_words), unless it is NULL.
        """

    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil:
        """Return the logit of one word after example k, when scoring, after `begin`.

        Only outputs with ``logits_are_single`` implement it.
        """
        return NAN

    cdef void combine(
        self, const Totals *parts, int n_parts, Py_ssize_t K,
    ) noexcept nogil:
        """Compute the maximum and sum over all words from those of all members.

        Equivalent to ``Q = max(q_i); S = sum(s_i exp(q_i - Q))`` (section 3.2).
        Every member computes it for itself, in the same order.
        """
        cdef Py_ssize_t k
        cdef int i
        cdef double high, total
        for k in range(K):
            high = parts[0].high[k]
            for i in range(1, n_parts):
                high = max(high, parts[i].high[k])
            total = 0
            for i in range(n_parts):
                total += parts[i].sum[k] * exp(parts[i].high[k] - high)
            self.all.high[k] = high
            self.all.sum[k] = total

    cdef void backward(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute dL/dz of this member's words, and update their parameters."""

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Compute dL/da and dL/dx from the sum of all members' dL/dz.

        This also updates the parameters that all rows share.
        """

    cdef void follow(self, Solver solver, const Step *step) noexcept nogil:
        """Update the features that the output read, after the inputs used them."""

    cdef void arrange(
        self, const int[:] y, const Py_ssize_t[::1] index, Py_ssize_t start,
        Py_ssize_t K, int n_members, Py_ssize_t *places,
    ) noexcept nogil:
        """Order the K examples of a mini-batch, of which member i takes a part.

        Its part is from K * i // n_members on. Members should have as much work, and
        visit few of the same rows.
        """
        cdef Py_ssize_t k
        for k in range(K):
            places[k] = k

    cdef void skip(self) noexcept nogil:
        """Take part in a mini-batch without examples: members draw the same samples."""

    cdef double noise(self) noexcept nogil:
        """Return the noise of an estimate from samples, summed over the examples."""
        return 0

    cdef void adapt(self, double noise, Py_ssize_t K) noexcept nogil:
        """Adapt an estimate from samples to its noise in a mini-batch."""

    cdef double loss(
        self, const Totals *parts, int n_parts, Py_ssize_t K,
    ) noexcept nogil:
        """Return the negative log-likelihood of K examples, after `combine`."""
        cdef double total = 0, logit
        cdef Py_ssize_t k
        cdef int i
        for k in range(K):
            logit = parts[0].target[k]  # -inf for all but the target's member
            for i in range(1, n_parts):
                logit = max(logit, parts[i].target[k])
            total += self.all.high[k] + log(self.all.sum[k]) - logit
        return total


cdef class Rows(Output):
    """Outputs that are rows of E, times z = [a | x | 1].

    No twin: its kinds have theirs.

    Parameters
    ----------
    E : Parameter
        Rows of output units, (any, stride).
    direct : bool
        Whether x is also an input of the output units.
    row, n_rows : int
        The rows of E of this member.
    leader : Rows or None
        The first member of the team, whose z all members use.
    **options
        Options of `Output`.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, Parameter E, *, bint direct,
        Py_ssize_t row, Py_ssize_t n_rows, Rows leader, **options,
    ):
        self.E, self.direct, self.row, self.n_rows = E, direct, row, n_rows
        self.n_outputs = at.n_hidden + (at.n_inputs if direct else 0) + 1
        self.stride = row_stride(self.n_outputs)
        if row < 0 or row + n_rows > E.rows or E.columns != self.stride:
            raise ValueError(
                f"E of shape {E.rows, E.columns} lacks the {n_rows} rows of "
                f"{self.stride} numbers from {row} on")
        if leader is None:
            self.z = scratch.numbers(at.batch_size * self.stride)
        else:
            self.z = leader.z
        self.n_slopes = self.stride * at.columns
        self.slopes = scratch.numbers(self.n_slopes)
        self.keep = scratch.numbers(self.stride)

    cdef void *row_of(self, Py_ssize_t row) noexcept nogil:
        """Return a row of E, counted from the first of this member."""
        return <char *>self.E.values + (self.row + row) * self.stride * self.itemsize

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """z = [a | x | 1]."""
        cdef Py_ssize_t h = self.at.n_hidden, n = self.at.n_inputs if self.direct else 0
        cdef Py_ssize_t size = self.itemsize, k
        cdef char *z
        for k in range(K):
            z = <char *>self.z + k * self.stride * size
            memcpy(z, <char *>self.at.a + k * h * size, h * size)
            memcpy(z + h * size, <char *>self.at.x + self.at.of[k] * n * size, n * size)
        self.loops.fill(<char *>self.z + (self.n_outputs - 1) * size, K, self.stride, 1)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = self.at.n_hidden, n = self.at.n_inputs, size = self.itemsize
        cdef Py_ssize_t k
        self.loops.transpose(self.slopes, self.columns, h, K, self.at.da, h)
        memset(self.at.dx, 0, K * n * size)
        if not self.direct:
            return
        self.loops.transpose(  # in place of x, which is not needed any more
            <char *>self.slopes + h * self.columns * size, self.columns, n, K,
            <char *>self.z + h * size, self.stride)
        for k in range(K):
            self.at.add_to_dx(k, <char *>self.z + (k * self.stride + h) * size)
