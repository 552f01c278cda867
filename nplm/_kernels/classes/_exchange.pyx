"""Moving words between classes to raise the likelihood of class bigrams.

Ney and Kneser (1993), with the sparse bookkeeping of Martin, Liermann and Ney
(1998): a move changes one row and one column of the class-bigram counts, and
only where the word has a neighbour.

Both directions are stored alike, on side 0 what stands before a word and on side
1 what stands after it, so one loop serves both.
"""

from libc.math cimport exp, log
from libc.stdint cimport int64_t, uint64_t


cdef extern from *:
    int __builtin_ctzll(unsigned long long) nogil


# A word moves for more than this many nats: less is rounding.
cdef double LEAST_GAIN = 1e-6
# Classes less probable than exp(-30) beside the best are never drawn.
cdef double NEGLIGIBLE = -30.0


cdef inline double x_log_x(const double[::1] table, int64_t x) noexcept nogil:
    return table[x] if x < table.shape[0] else x * log(<double> x)


cdef inline void shift(
    int[:, :, ::1] counts, uint64_t[:, :, ::1] nonzero, int g, int h, int by
) noexcept nogil:
    """Add `by` to the count of class g before class h."""
    counts[0, g, h] += by
    counts[1, h, g] += by
    if counts[0, g, h] == 0:
        nonzero[0, g, h >> 6] &= ~(<uint64_t> 1 << (h & 63))
        nonzero[1, h, g >> 6] &= ~(<uint64_t> 1 << (g & 63))
    else:
        nonzero[0, g, h >> 6] |= <uint64_t> 1 << (h & 63)
        nonzero[1, h, g >> 6] |= <uint64_t> 1 << (g & 63)


cdef inline void place(
    int[:, :, ::1] counts,
    uint64_t[:, :, ::1] nonzero,
    int64_t[:, ::1] totals,
    const int[:, ::1] sums,
    const int[:, ::1] seen,
    int* n_seen,
    int itself,
    const int64_t[:, ::1] word_totals,
    int w,
    int h,
    int sign,
) noexcept nogil:
    """Put word w into class h (sign 1), or take it out (sign -1)."""
    cdef int k, c
    for k in range(n_seen[0]):
        c = seen[0, k]
        shift(counts, nonzero, c, h, sign * sums[0, c])
    for k in range(n_seen[1]):
        c = seen[1, k]
        shift(counts, nonzero, h, c, sign * sums[1, c])
    if itself > 0:
        shift(counts, nonzero, h, h, sign * itself)
    totals[0, h] += sign * word_totals[0, w]
    totals[1, h] += sign * word_totals[1, w]


cdef inline int choose(
    const double[::1] gains, int n_open, int g, double temperature, double uniform
) noexcept nogil:
    """The best class, g if none is better; or a draw at a temperature above 0."""
    cdef int h, best = 0
    cdef double below, total = 0.0
    for h in range(1, n_open):
        if gains[h] > gains[best]:
            best = h
    if temperature <= 0:
        return best if gains[best] > gains[g] + LEAST_GAIN else g
    for h in range(n_open):
        below = (gains[h] - gains[best]) / temperature
        if below > NEGLIGIBLE:
            total += exp(below)
    total *= uniform
    for h in range(n_open):
        below = (gains[h] - gains[best]) / temperature
        if below > NEGLIGIBLE:
            total -= exp(below)
            if total < 0:
                return h
    return best


cdef inline int gather(
    const int[:, ::1] start,
    const int[:, ::1] neighbour,
    const int[:, ::1] count,
    const int[::1] labels,
    int w,
    int[:, ::1] sums,
    int[:, ::1] seen,
    int* n_seen,
) noexcept nogil:
    """Sum the counts of the neighbours of w by class; returns those of w itself."""
    cdef int side, j, c, itself = 0
    for side in range(2):
        n_seen[side] = 0
        for j in range(start[side, w], start[side, w + 1]):
            if neighbour[side, j] == w:
                itself = count[side, j]
                continue
            c = labels[neighbour[side, j]]
            if sums[side, c] == 0:
                seen[side, n_seen[side]] = c
                n_seen[side] += 1
            sums[side, c] += count[side, j]
    return itself


cdef inline void weigh(
    const int[:, :, ::1] counts,
    const uint64_t[:, :, ::1] nonzero,
    const int64_t[:, ::1] totals,
    const int[:, ::1] sums,
    const int[:, ::1] seen,
    const int* n_seen,
    int itself,
    int64_t n_before,
    int64_t n_after,
    const double[::1] table,
    int n_open,
    double[::1] gains,
) noexcept nogil:
    """What a word that is in no class would add in each, but for a constant."""
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
    # Where two classes do not meet yet, n bigrams add n log n whatever the class:
    # that is the constant left out, and only classes that meet are visited.
    for side in range(2):
        for k in range(n_seen[side]):
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
    # Within class h, what stands before the word, after it, and the word next to
    # itself come on one count: together, not each on its own as above.
    for side in range(2):
        for k in range(n_seen[side]):
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
    int n_open,
    const int[:, ::1] start,
    const int[:, ::1] neighbour,
    const int[:, ::1] count,
    const int64_t[:, ::1] word_totals,
    const double[::1] table,
    int[::1] labels,
    int[:, :, ::1] counts,
    uint64_t[:, :, ::1] nonzero,
    int64_t[:, ::1] totals,
    int[:, ::1] sums,
    int[:, ::1] seen,
    double[::1] gains,
    double[::1] tally,
):
    """Move each of `words` in turn to its best class, or draw one.

    At a temperature t above 0 class h is drawn with probability proportional to
    ``exp(gain[h] / t)``, by the word's uniform number; at 0 the best class is
    taken. Classes from `n_open` on receive no words.

    On side 0 stands what comes before a word, on side 1 what comes after it. The
    neighbours of word w are ``neighbour[side, start[side, w]:start[side, w + 1]]``
    with their `count`, and `word_totals` their sum. ``counts[0, g, h]`` is the
    count of class g before class h, ``counts[1]`` its transpose, the bits of
    `nonzero` say where they are not 0, and ``totals[side, h]`` sums them over the
    neighbours of h. ``table[i]`` is ``i log i``. `sums` (zeros, and left so),
    `seen` and `gains` are scratch of one entry a class (and side). The gain in
    log-likelihood is added to ``tally[0]``, the number of moves to ``tally[1]``.

    Equivalent to ``gain[h] = F(labels with labels[w] = h)``, with F the sum of
    ``counts[0] log counts[0]`` less those of both rows of `totals`.
    """
    cdef int i, side, k, w, g, h, itself
    cdef int n_seen[2]
    with nogil:
        for i in range(words.shape[0]):
            w = words[i]
            g = labels[w]
            itself = gather(start, neighbour, count, labels, w, sums, seen, n_seen)
            place(
                counts, nonzero, totals, sums, seen, n_seen, itself, word_totals, w, g,
                -1,
            )
            weigh(
                counts, nonzero, totals, sums, seen, n_seen, itself, word_totals[0, w],
                word_totals[1, w], table, n_open, gains,
            )
            h = choose(gains, n_open, g, temperatures[i], uniforms[i])
            place(
                counts, nonzero, totals, sums, seen, n_seen, itself, word_totals, w, h,
                1,
            )
            labels[w] = h
            tally[0] += gains[h] - gains[g]
            tally[1] += h != g
            for side in range(2):
                for k in range(n_seen[side]):
                    sums[side, seen[side, k]] = 0
