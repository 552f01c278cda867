"""What an output of the network is asked for, whichever kind it is.

An output makes a loss of the hidden units, the inputs and the next words. Where its
rows are shared out, each member of a team has some of them; the totals of its words
and dL/dz are all that members need to bring together.
"""

from libc.math cimport NAN, exp, log
from libc.string cimport memcpy, memset

from nplm._kernels.neural._inputs cimport Activations
from nplm._kernels.neural._loops cimport Scratch, Tier, round_up
from nplm._kernels.neural._solvers cimport Parameter, Solver, Step

from nplm._kernels.neural._loops import row_stride


cdef class Output:
    """One member's output units.

    No twin: its kinds have theirs.

    The verbs of a mini-batch, in their order: `begin` and `end` are the first
    member's, the others every member's. Scoring asks for `begin` and `forward` only,
    and takes ``log P = own.target - own.high - log(own.sum)`` (with all members'
    words, see `combine`). An output that is normalised by itself gives 0 for the
    maximum, 1 for the sum and log P for the target's logit.

    Parameters
    ----------
    tier : Tier
        Whose loops.
    scratch : Scratch
        Where memory is taken.
    at : Activations
        What comes from below.
    first, n_words : int
        This member's words.
    """

    def __cinit__(
        self, Tier tier, Scratch scratch, Activations at, *args, Py_ssize_t first,
        Py_ssize_t n_words, **kwargs,
    ):
        cdef double *totals
        self.at, self.loops, self.itemsize = at, tier.loops, tier.itemsize
        self.first, self.n_words = first, n_words
        self.words = at.words
        # Loops over columns go on to whole vectors.
        self.columns, self.wide = at.columns, round_up(at.columns, 16)
        totals = <double *>scratch.bytes(6 * self.wide * sizeof(double))
        self.own = Totals(totals, totals + self.wide, totals + 2 * self.wide)
        totals += 3 * self.wide
        self.all = Totals(totals, totals + self.wide, totals + 2 * self.wide)

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """Take a and x of K examples."""

    cdef void forward(self, Py_ssize_t K, void *logits) noexcept nogil:
        """Find the totals of this member's words, and keep what `backward` needs.

        In scoring `logits`, (K, n_words), is filled with them unless it is NULL.
        """

    cdef double logit(self, Py_ssize_t k, int word) noexcept nogil:
        """Logit of one word after example k, in scoring, once `begin` is done.

        Kinds that cannot say leave it: nobody asks them (``logits_are_single``).
        """
        return NAN

    cdef void combine(
        self, const Totals *parts, int n_parts, Py_ssize_t K,
    ) noexcept nogil:
        """Learn the maximum and sum over all words from those of all members.

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
        """Find dL/dz of this member's words, and let their parameters follow."""

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        """Give dL/da and dL/dx, from the sum of all members' dL/dz.

        What all rows have in common follows here.
        """

    cdef void follow(self, Solver solver, const Step *step) noexcept nogil:
        """Let the features that it read follow, once the inputs need them no more."""

    cdef double loss(
        self, const Totals *parts, int n_parts, Py_ssize_t K,
    ) noexcept nogil:
        """Negative log-likelihood of K examples, after `combine`."""
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
        Whether x feeds the output units too.
    row, n_rows : int
        The rows of E that are this member's.
    leader : Rows or None
        The team's first member, whose z is everyone's.
    **options
        Of `Output`.
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
        """A row of E, counted from this member's first."""
        return <char *>self.E.values + (self.row + row) * self.stride * self.itemsize

    cdef void begin(self, Py_ssize_t K) noexcept nogil:
        """z = [a | x | 1]."""
        cdef Py_ssize_t h = self.at.n_hidden, n = self.at.n_inputs if self.direct else 0
        cdef Py_ssize_t size = self.itemsize, k
        cdef char *z
        for k in range(K):
            z = <char *>self.z + k * self.stride * size
            memcpy(z, <char *>self.at.a + k * h * size, h * size)
            memcpy(z + h * size, <char *>self.at.x + k * n * size, n * size)
        self.loops.fill(<char *>self.z + (self.n_outputs - 1) * size, K, self.stride, 1)

    cdef void end(
        self, Py_ssize_t K, Solver solver, const Step *step,
    ) noexcept nogil:
        cdef Py_ssize_t h = self.at.n_hidden, n = self.at.n_inputs, size = self.itemsize
        self.loops.transpose(self.slopes, self.columns, h, K, self.at.da, h)
        if self.direct:
            self.loops.transpose(
                <char *>self.slopes + h * self.columns * size, self.columns, n, K,
                self.at.dx, n)
        else:
            memset(self.at.dx, 0, K * n * size)
