"""Exchange algorithm: move words between classes to raise the class-bigram likelihood.

Ney and Kneser (1993), with the sparse bookkeeping of Martin, Liermann and Ney
(1998): a move changes one row and one column of the class-bigram counts, and
only for classes of the neighbours of the word.

Arrays store both directions in the same way, the words before a word on side 0 and the
words after it on side 1, so that one loop handles both.
"""

from cython.view cimport array as cvarray
from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint64_t


cdef extern from *:
    int __builtin_ctzll(unsigned long long) nogil


# A word moves only for a gain above this many nats: less is rounding error.
cdef double LEAST_GAIN = 1e-6
# Classes less probable than exp(-30) relative to the best are never drawn.
cdef double NEGLIGIBLE = -30.0


# Entries of a tally.
cpdef enum:
    GAIN = 0     # gain in log-likelihood
    MOVES = 1    # words moved to another class
    VISITED = 2  # words visited


cdef class Neighbours:
    """The neighbours of each word of a text, and their counts.

    Parameters
    ----------
    start : ndarray of int32, shape (2, n_words + 1)
        The neighbours of word w are ``neighbour[side, start[side, w]:start[side,
        w + 1]]``.
    neighbour, count : ndarray of int32, shape (2, n_distinct)
        The neighbouring words, and how often each occurs there.
    totals : ndarray of int64, shape (2, n_words)
        The sums of `count` over each word's neighbours.
    table : ndarray of float64
        Precomputed ``i log i`` for small i.
    """

    cdef const int[:, ::1] start
    cdef const int[:, ::1] neighbour
    cdef const int[:, ::1] count
    cdef const int64_t[:, ::1] totals
    cdef const double[::1] table

    def __cinit__(
        self,
        const int[:, ::1] start,
        const int[:, ::1] neighbour,
        const int[:, ::1] count,
        const int64_t[:, ::1] totals,
        const double[::1] table,
    ):
        self.start = start
        self.neighbour = neighbour
        self.count = count
        self.totals = totals
        self.table = table


cdef class Classes:
    """A class for each word, and the counts of the class bigrams.

    Parameters
    ----------
    n_open : int
        Words move only to classes below this number.
    labels : ndarray of int32, shape (n_words,)
        The class of each word.
    counts : ndarray of int32, shape (2, n_classes, n_classes)
        ``counts[0, g, h]`` counts class g before class h; ``counts[1]`` is the
        transpose.
    nonzero : ndarray of uint64, shape (2, n_classes, n_blocks)
        Bit mask of the non-zero entries of `counts`.
    totals : ndarray of int64, shape (2, n_classes)
        ``totals[side, h]`` sums `counts` over the neighbours of h.
    tally : ndarray of float64, shape (3,)
        The GAIN, MOVES and VISITED, to which `exchange` adds.
    """

    cdef int n_open
    cdef int[::1] labels
    cdef int[:, :, ::1] counts
    cdef uint64_t[:, :, ::1] nonzero
    cdef int64_t[:, ::1] totals
    cdef double[::1] tally
    # Scratch with one entry per class: the counts of the neighbours of a word by class
    # (zero between words), the classes of these neighbours, and the gain of each class.
    cdef int[:, ::1] sums
    cdef int[:, ::1] seen
    cdef int[2] n_seen
    cdef double[::1] gains

    def __cinit__(
        self,
        int n_open,
        int[::1] labels,
        int[:, :, ::1] counts,
        uint64_t[:, :, ::1] nonzero,
        int64_t[:, ::1] totals,
        double[::1] tally,
    ):
        cdef Py_ssize_t n_classes = counts.shape[1]
        self.n_open = n_open
        self.labels = labels
        self.counts = counts
        self.nonzero = nonzero
        self.totals = totals
        self.tally = tally
        self.sums = cvarray((2, n_classes), sizeof(int), "i")
        self.seen = cvarray((2, n_classes), sizeof(int), "i")
        self.gains = cvarray((n_classes,), sizeof(double), "d")
        self.sums[:] = 0


cdef inline double x_log_x(const double[::1] table, int64_t x) noexcept nogil:
    return table[x] if x < table.shape[0] else x * log(<double> x)


cdef inline void shift(Classes classes, int g, int h, int by) noexcept nogil:
    """Add `by` to the count of class g before class h."""
    classes.counts[0, g, h] += by
    classes.counts[1, h, g] += by
    if classes.counts[0, g, h] == 0:
        classes.nonzero[0, g, h >> 6] &= ~(<uint64_t> 1 << (h & 63))
        classes.nonzero[1, h, g >> 6] &= ~(<uint64_t> 1 << (g & 63))
    else:
        classes.nonzero[0, g, h >> 6] |= <uint64_t> 1 << (h & 63)
        classes.nonzero[1, h, g >> 6] |= <uint64_t> 1 << (g & 63)


cdef inline void place(
    Classes classes, Neighbours neighbours, int itself, int w, int h, int sign
) noexcept nogil:
    """Put word w into class h (sign 1), or take it out (sign -1)."""
    cdef int k, c
    for k in range(classes.n_seen[0]):
        c = classes.seen[0, k]
        shift(classes, c, h, sign * classes.sums[0, c])
    for k in range(classes.n_seen[1]):
        c = classes.seen[1, k]
        shift(classes, h, c, sign * classes.sums[1, c])
    if itself > 0:
        shift(classes, h, h, sign * itself)
    classes.totals[0, h] += sign * neighbours.totals[0, w]
    classes.totals[1, h] += sign * neighbours.totals[1, w]


cdef inline int choose(
    Classes classes, int g, double temperature, double uniform
) noexcept nogil:
    """Return the best class, g if none is better; or draw one at temperature > 0."""
    cdef int h, best = 0
    cdef double below, total = 0.0
    for h in range(1, classes.n_open):
        if classes.gains[h] > classes.gains[best]:
            best = h
    if temperature <= 0:
        if classes.gains[best] > classes.gains[g] + LEAST_GAIN:
            return best
        return g
    for h in range(classes.n_open):
        below = (classes.gains[h] - classes.gains[best]) / temperature
        if below > NEGLIGIBLE:
            total += exp(below)
    total *= uniform
    for h in range(classes.n_open):
        below = (classes.gains[h] - classes.gains[best]) / temperature
        if below > NEGLIGIBLE:
            total -= exp(below)
            if total < 0:
                return h
    return best


cdef inline int gather(
    Classes classes, Neighbours neighbours, int w
) noexcept nogil:
    """Sum the counts of the neighbours of w by class; return the count of w after w."""
    cdef int side, j, n, c, itself = 0
    for side in range(2):
        classes.n_seen[side] = 0
        for j in range(neighbours.start[side, w], neighbours.start[side, w + 1]):
            n = neighbours.count[side, j]
            if neighbours.neighbour[side, j] == w:
                itself = n
                continue
            c = classes.labels[neighbours.neighbour[side, j]]
            if classes.sums[side, c] == 0:
                classes.seen[side, classes.n_seen[side]] = c
                classes.n_seen[side] += 1
            classes.sums[side, c] += n
    return itself


cdef inline void weigh(
    Classes classes, Neighbours neighbours, int itself, int w
) noexcept nogil:
    """Compute the gain of adding an unassigned word to each class, up to a constant."""
    cdef const int[:, :, ::1] counts = classes.counts
    cdef const uint64_t[:, :, ::1] nonzero = classes.nonzero
    cdef const int64_t[:, ::1] totals = classes.totals
    cdef const int[:, ::1] sums = classes.sums
    cdef const int[:, ::1] seen = classes.seen
    cdef const double[::1] table = neighbours.table
    cdef double[::1] gains = classes.gains
    cdef int n_open = classes.n_open
    cdef int64_t n_before = neighbours.totals[0, w]
    cdef int64_t n_after = neighbours.totals[1, w]
    cdef int side, k, block, h, c, n, m, a, b
    cdef uint64_t bits
    cdef double alone
    for h in range(n_open):
        gains[h] = (
            x_log_x(table, totals[0, h])
            - x_log_x(table, totals[0, h] + n_before)
            + x_log_x(table, totals[1, h])
            - x_log_x(table, totals[1, h] + n_after)
        )
        if itself > 0:
            m = counts[0, h, h]
            gains[h] += x_log_x(table, m + itself) - x_log_x(table, m)
    # If two classes have no bigram yet, n new ones add n log n for any class: this is
    # the omitted constant, and only pairs of classes with bigrams are visited.
    for side in range(2):
        for k in range(classes.n_seen[side]):
            c = seen[side, k]
            n = sums[side, c]
            alone = x_log_x(table, n)
            for block in range(<int> nonzero.shape[2]):
                bits = nonzero[side, c, block]
                while bits != 0:
                    h = 64 * block + __builtin_ctzll(bits)
                    bits &= bits - 1
                    if h < n_open:
                        m = counts[side, c, h]
                        gains[h] += x_log_x(table, m + n) - x_log_x(table, m) - alone
    # Within class h, the neighbours before the word, after it, and the word itself all
    # add to the same count: correct the terms that were summed separately above.
    for side in range(2):
        for k in range(classes.n_seen[side]):
            h = seen[side, k]
            a = sums[0, h]
            b = sums[1, h]
            if h >= n_open or (side == 1 and a > 0):
                continue
            m = counts[0, h, h]
            gains[h] += (
                x_log_x(table, m + a + b + itself)
                - x_log_x(table, m + a)
                - x_log_x(table, m + b)
                - x_log_x(table, m + itself)
                + 2 * x_log_x(table, m)
            )


def exchange(
    const int[::1] words,
    const double[::1] uniforms,
    const double[::1] temperatures,
    Neighbours neighbours,
    Classes classes,
):
    """Move each of `words` in turn to its best class, or to one drawn at random.

    At temperature t > 0, class h is drawn with probability proportional to
    ``exp(gain[h] / t)``, using the uniform number of the word. At temperature 0 the
    best class is chosen.

    Equivalent to ``gain[h] = F(labels with labels[w] = h)``, where F is the sum of
    ``counts[0] log counts[0]`` minus the sums of ``totals log totals`` of both sides.
    """
    cdef int i, side, k, w, g, h, itself
    with nogil:
        for i in range(words.shape[0]):
            w = words[i]
            g = classes.labels[w]
            itself = gather(classes, neighbours, w)
            place(classes, neighbours, itself, w, g, -1)
            weigh(classes, neighbours, itself, w)
            h = choose(classes, g, temperatures[i], uniforms[i])
            place(classes, neighbours, itself, w, h, 1)
            classes.labels[w] = h
            classes.tally[GAIN] += classes.gains[h] - classes.gains[g]
            classes.tally[MOVES] += h != g
            classes.tally[VISITED] += 1
            for side in range(2):
                for k in range(classes.n_seen[side]):
                    classes.sums[side, classes.seen[side, k]] = 0
