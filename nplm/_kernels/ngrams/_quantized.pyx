"""Look-ups in a quantized, bit-packed trie of n-grams."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH, SAMPLE, Offsets
from nplm._kernels.ngrams._chains cimport (
    BLOCK, N_CHAINS, Chains, begin, begin_reading, n_growing, prob_of, read_window,
)
from nplm._kernels.ngrams._trie cimport Ngrams

SAMPLED = SAMPLE

ctypedef fused Number:
    int
    uint64_t


def pack_records(const Number[::1] values, int width, unsigned char[::1] packed):
    """Pack numbers of `width` bits, 57 at most, end to end into zeros, lowest first.

    The bytes end with 8 that stay zeros.

    Equivalent to ``packed[:-8] = np.packbits(bits, bitorder="little")`` where row i of
    `bits` has the lowest `width` bits of number i, lowest first.
    """
    cdef Py_ssize_t i, at = 0
    # Bits that are not written yet, and how many: fewer than 8 of the numbers before.
    cdef uint64_t bits = 0
    cdef int n = 0
    if not 0 < width <= 57 or packed.shape[0] < (values.shape[0] * width + 7) // 8 + 8:
        raise ValueError("there is no room for the records")
    with nogil:
        for i in range(values.shape[0]):
            bits |= (<uint64_t> values[i]) << n
            n += width
            memcpy(&packed[at], &bits, 8)
            at += n >> 3
            # In two steps: there may be 64 bits.
            bits = bits >> (n >> 3 << 2) >> (n >> 3 << 2)
            n &= 7


cdef class QuantizedTrie(Ngrams):
    """The levels of a quantized trie, in one argument.

    Parameters
    ----------
    prob, bow : ndarray of float32, shape (n_words,)
        Probability of each word as a unigram, and its back-off weight as a context.
    start : ndarray of int64, shape (n_words + 1,)
        The bigrams that end with word w are those from ``start[w]`` to
        ``start[w + 1]``.
    levels : list of tuple
        For the n-grams of 2, 3, ... words: ``records, high, sample, prob, bow``, the
        number of n-grams, and the bits of a word, a code and the low part of an
        offset. The last level has no weights and offsets.
    """

    def __cinit__(
        self, const float[::1] prob, const float[::1] bow, const int64_t[::1] start,
        levels,
    ):
        self.prob = prob
        self.bow = bow
        self.start = start
        self.levels = levels
        self.n_context = len(levels)
        cdef const unsigned char[::1] records
        cdef const uint64_t[::1] high
        cdef const uint32_t[::1] sample
        cdef const float[::1] probs
        cdef const float[::1] bows
        cdef Level* own
        for k, (records, high, sample, probs, bows, n, word, code, low) in enumerate(
            levels
        ):
            own = &self.level[k]
            own.records = &records[0]
            own.prob = &probs[0]
            own.n = n
            own.word, own.code, own.low = word, code, low
            own.bow = NULL
            own.width = word + code
            if k + 1 < len(levels):
                own.offsets = Offsets(&high[0], &sample[0], len(high))
                own.bow = &bows[0]
                own.width = word + 2 * code + low

    cdef bint look_up(
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n_windows,
        double* out, int* orders,
    ) noexcept nogil:
        cdef int n_context = self.n_context, n_words = <int> self.prob.shape[0]
        cdef const float* prob = &self.prob[0]
        cdef const float* bow = &self.bow[0]
        cdef Chains chains
        cdef Ranges ranges
        cdef Py_ssize_t row = 0
        cdef int valid = True
        cdef int n, i, j, k, chain, word, n_next
        cdef int64_t start, stop
        while row < n_windows:
            n = <int> min(<Py_ssize_t> BLOCK, n_windows - row)
            begin_reading(&chains)
            for j in range(n):
                read_window(
                    &chains, n_words, X + (row + j) * stride, stride, y + row + j, j,
                    n_context, &valid,
                )
                word = chains.words[chains.newest[j]]
                NPLM_PREFETCH(prob + word)
                NPLM_PREFETCH(bow + word)
                NPLM_PREFETCH(&self.start[word])
            begin(&chains, prob, bow, n, n_context)
            n_next = 0
            for i in range(chains.n_live):
                chain = chains.live[i]
                word = chains.words[chains.newest[chain]]
                start, stop = self.start[word], self.start[word + 1]
                ranges.first[chain], ranges.n[chain] = start, length_of(start, stop)
                chains.live[n_next] = chain
                n_next += 0 <= start < stop <= self.level[0].n
            chains.n_live = n_next
            for k in range(1, n_context + 1):
                step(&chains, &ranges, self, k, n_context)
            for j in range(n):
                out[row + j] = prob_of(&chains, j, n_context)
            if orders != NULL:
                for j in range(n):
                    orders[row + j] = chains.n_words[j] + 1
            row += n
        return valid


cdef struct Ranges:
    # The range in which each chain is searched: `n` n-grams of a level, from `first`
    # on. After a step, `first` is the n-gram found.
    int64_t first[N_CHAINS]
    int64_t n[N_CHAINS]
    int many[N_CHAINS]


cdef void search(
    Chains* chains, Ranges* ranges, const Level* level, int k
) noexcept nogil:
    """Halve the ranges of all chains together, until each has at most FEW records."""
    cdef int n_many = chains.n_live
    cdef int i, chain, n_next
    cdef int64_t half, middle
    for i in range(n_many):
        chain = chains.live[i]
        ranges.many[i] = chain
        ranges.n[chain] = n_searched(
            ranges.n[chain], chains.words[chains.newest[chain] - k]
        )
        middle = ranges.first[chain] + (ranges.n[chain] >> 1)
        NPLM_PREFETCH(level.records + (middle * level.width >> 3))
    while n_many > 0:
        n_next = 0
        for i in range(n_many):
            chain = ranges.many[i]
            half = ranges.n[chain] >> 1
            middle = ranges.first[chain] + half
            if ranges.n[chain] > 1:
                ranges.first[chain] = (
                    middle
                    if word_at(level, middle) <= chains.words[chains.newest[chain] - k]
                    else ranges.first[chain]
                )
                ranges.n[chain] -= half
            middle = ranges.first[chain] + (ranges.n[chain] >> 1)
            NPLM_PREFETCH(level.records + (middle * level.width >> 3))
            ranges.many[n_next] = chain
            n_next += ranges.n[chain] > FEW
        n_many = n_next


cdef void step(
    Chains* chains, Ranges* ranges, QuantizedTrie trie, int k, int n_context
) noexcept nogil:
    """Look up the live chains extended by the k-th word of their contexts."""
    cdef const Level* level = &trie.level[k - 1]
    cdef int n_longer = n_growing(k, n_context)
    cdef int64_t first, n, n_next_level
    cdef int i, chain, word, n_next = 0
    cdef float prob
    search(chains, ranges, level, k)
    for i in range(chains.n_live):
        chain = chains.live[i]
        word = chains.words[chains.newest[chain] - k]
        first = find_record(level, ranges.first[chain], ranges.n[chain], word)
        if word_at(level, first) != word:
            continue
        ranges.first[chain] = first
        prob = prob_at(level, first)
        if prob >= 0:
            chains.prob[chain], chains.n_words[chain] = prob, k
        if level.bow != NULL:
            chains.bow[chain * (n_context + 1) + k + 1] = bow_at(level, first)
            expect_sample(level, first)
        chains.live[n_next] = chain
        n_next += chain < n_longer
    chains.n_live = n_next
    if k == n_context:
        return
    for i in range(chains.n_live):
        expect_children(level, ranges.first[chains.live[i]])
    n_next = 0
    n_next_level = trie.level[k].n
    for i in range(chains.n_live):
        chain = chains.live[i]
        children(level, ranges.first[chain], &first, &n)
        ranges.first[chain] = first
        ranges.n[chain] = length_of(first, n)
        chains.live[n_next] = chain
        # Offsets of a damaged file may be outside the records of the next level.
        n_next += 0 <= first < n <= n_next_level
    chains.n_live = n_next
