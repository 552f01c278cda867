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
    int __builtin_popcountll(unsigned long long) nogil


# A word moves only for a gain above this many nats: less is rounding error.
cdef double LEAST_GAIN = 1e-6
# Classes less probable than exp(-30) relative to the best are never drawn.
cdef double NEGLIGIBLE = -30.0
# Gains are tabulated for adding at most 16 to a count below 4096 (0.5 MB).
cdef enum:
    MOST_ADDED = 16
    COUNTS = 4096
    # Of 64 entries of a row, fewer non-zero ones than this are visited one by one.
    FEW = 16


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
    # joint[n, m] is `together(m, n)`, for the most frequent arguments.
    cdef double[:, ::1] joint

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
        self.joint = cvarray((MOST_ADDED + 1, COUNTS), sizeof(double), "d")
        cdef int n, m
        for n in range(MOST_ADDED + 1):
            for m in range(COUNTS):
                self.joint[n, m] = (
                    x_log_x(table, m + n) - x_log_x(table, m) - x_log_x(table, n)
                )


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
    # (zero between words), the classes of these neighbours, the gain of each class, the
    # part of its totals in that, and the probability of the class relative to the best.
    cdef int[:, ::1] sums
    cdef int[:, ::1] seen
    cdef int[2] n_seen
    cdef double[::1] gains
    cdef double[::1] of_totals
    cdef double[::1] weights

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
        self.weights = cvarray((n_classes,), sizeof(double), "d")
        self.of_totals = cvarray((n_classes,), sizeof(double), "d")
        self.sums[:] = 0


cdef inline double x_log_x(const double[::1] table, int64_t x) noexcept nogil:
    return table[x] if x < table.shape[0] else x * log(<double> x)


cdef inline double together(Neighbours neighbours, int m, int n) noexcept nogil:
    """Return the gain of adding n to a count of m, less that of adding n to 0."""
    if n <= MOST_ADDED and m < COUNTS:
        return neighbours.joint[n, m]
    return (
        x_log_x(neighbours.table, m + n)
        - x_log_x(neighbours.table, m)
        - x_log_x(neighbours.table, n)
    )


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
    weigh_totals(classes, neighbours, w, h)


cdef inline int choose(
    Classes classes, int g, double temperature, double uniform
) noexcept nogil:
    """Return the best class, g if none is better; or draw one at temperature > 0."""
    cdef int h, best = 0
    cdef double below, most, total = 0.0
    cdef const double* gains = &classes.gains[0]
    cdef double* weights = &classes.weights[0]
    for h in range(1, classes.n_open):
        if gains[h] > gains[best]:
            best = h
    if temperature <= 0:
        if gains[best] > gains[g] + LEAST_GAIN:
            return best
        return g
    most = gains[best]
    for h in range(classes.n_open):
        below = (gains[h] - most) / temperature
        weights[h] = exp(below) if below > NEGLIGIBLE else 0.0
        total += weights[h]
    total *= uniform
    for h in range(classes.n_open):
        total -= weights[h]
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


cdef inline void weigh_totals(
    Classes classes, Neighbours neighbours, int w, int h
) noexcept nogil:
    """Compute the part of the totals in the gain of adding word w to class h."""
    cdef int side
    cdef int64_t total
    classes.of_totals[h] = 0.0
    for side in range(2):
        total = classes.totals[side, h]
        classes.of_totals[h] += x_log_x(neighbours.table, total) - x_log_x(
            neighbours.table, total + neighbours.totals[side, w]
        )


cdef inline void weigh_row(
    Classes classes, Neighbours neighbours, int side, int c, int n
) noexcept nogil:
    """Add the gain of n more bigrams of each class with class c."""
    cdef double* gains = &classes.gains[0]
    cdef const int* row = &classes.counts[side, c, 0]
    cdef const double* joint
    cdef int block, h, m, stop
    cdef bint large
    cdef uint64_t bits
    for block in range(<int> classes.nonzero.shape[2]):
        bits = classes.nonzero[side, c, block]
        stop = min(64 * block + 64, classes.n_open)
        if n > MOST_ADDED or __builtin_popcountll(bits) < FEW:
            while bits != 0:
                h = 64 * block + __builtin_ctzll(bits)
                bits &= bits - 1
                if h < stop:
                    gains[h] += together(neighbours, row[h], n)
            continue
        joint = &neighbours.joint[n, 0]
        large = False
        for h in range(64 * block, stop):
            m = row[h]
            large |= m >= COUNTS
            gains[h] += joint[m if m < COUNTS else 0]
        if large:
            for h in range(64 * block, stop):
                if row[h] >= COUNTS:
                    gains[h] += together(neighbours, row[h], n)


cdef inline void weigh(
    Classes classes, Neighbours neighbours, int itself, int w, int g
) noexcept nogil:
    """Compute the gain of moving word w from class g to each, up to a constant.

    The counts are those without the word, though it is in class g still: only the row
    and the column of g differ.
    """
    cdef const int[:, :, ::1] counts = classes.counts
    cdef const int64_t[:, ::1] totals = classes.totals
    cdef const int[:, ::1] sums = classes.sums
    cdef const double[::1] table = neighbours.table
    cdef double* gains = &classes.gains[0]
    cdef const int* row
    cdef const int* other
    cdef int n_open = classes.n_open
    cdef int side, k, h, c, n, m, a, b
    cdef double stay = 0.0
    for h in range(n_open):
        gains[h] = classes.of_totals[h]
    # If two classes have no bigram yet, n new ones add n log n for any class: this
    # constant is omitted, and pairs of classes without bigrams add 0.
    for side in range(2):
        other = &sums[1 - side, 0]
        for k in range(classes.n_seen[side]):
            c = classes.seen[side, k]
            n = sums[side, c]
            row = &counts[side, c, 0]
            if c == g:
                for h in range(n_open):
                    gains[h] += together(neighbours, row[h] - other[h], n)
                stay -= x_log_x(table, n)
                continue
            stay += together(neighbours, row[g] - n, n)
            weigh_row(classes, neighbours, side, c, n)
    # Within class h, the neighbours before the word, after it, and the word itself all
    # add to the same count: correct the terms that were summed separately above.
    for k in range(classes.n_seen[0]):
        h = classes.seen[0, k]
        a = sums[0, h]
        b = sums[1, h]
        if h < n_open and b > 0:
            m = counts[0, h, h]
            gains[h] += (
                x_log_x(table, m + a + b)
                - x_log_x(table, m + a)
                - x_log_x(table, m + b)
                + x_log_x(table, m)
            )
    if itself > 0:
        for h in range(n_open):
            m = counts[0, h, h] + sums[0, h] + sums[1, h]
            gains[h] += x_log_x(table, m + itself) - x_log_x(table, m)
    m = counts[0, g, g]
    n = sums[0, g] + sums[1, g] + itself
    stay += x_log_x(table, m) - x_log_x(table, m - n)
    for side in range(2):
        stay += x_log_x(
            table, totals[side, g] - neighbours.totals[side, w]
        ) - x_log_x(table, totals[side, g])
    gains[g] = stay


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
    cdef int i, side, k, w, g, h, itself, previous = -1
    with nogil:
        for i in range(words.shape[0]):
            w = words[i]
            g = classes.labels[w]
            itself = gather(classes, neighbours, w)
            # Words are visited by frequency: most are as frequent as the one before.
            if previous < 0 or (
                neighbours.totals[0, w] != neighbours.totals[0, previous]
                or neighbours.totals[1, w] != neighbours.totals[1, previous]
            ):
                for h in range(classes.n_open):
                    weigh_totals(classes, neighbours, w, h)
            previous = w
            weigh(classes, neighbours, itself, w, g)
            h = choose(classes, g, temperatures[i], uniforms[i])
            if h != g:
                place(classes, neighbours, itself, w, g, -1)
                place(classes, neighbours, itself, w, h, 1)
                classes.labels[w] = h
                classes.tally[GAIN] += classes.gains[h] - classes.gains[g]
                classes.tally[MOVES] += 1
            classes.tally[VISITED] += 1
            for side in range(2):
                for k in range(classes.n_seen[side]):
                    classes.sums[side, classes.seen[side, k]] = 0
