"""Look n-grams up in a hash table, which ``_hashing`` fills.

A walk down a trie waits for memory several times per step. In a hash table a step reads
one bucket, whose address depends only on the words. A step is skipped if the filter of
the previous slot shows that no n-gram is one word longer.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport (
    BLOCK, MAX_WORDS, N_CHAINS, Chains, begin, begin_reading, expect_words, n_growing,
    one_of, prob_of, read_window,
)
from nplm._kernels.ngrams._trie cimport Ngrams

MAX_ORDER = MAX_WORDS


cdef class Table(Ngrams):
    """The arrays of a hash table, in one argument.

    Parameters
    ----------
    memory : ndarray of uint8
        Buckets of 64 bytes, aligned to cache lines.
    bucket_start : ndarray of int64, shape (order + 1,)
        The buckets of the n-grams of k + 1 words are those from ``bucket_start[k]`` to
        ``bucket_start[k + 1]``; unigrams have none.
    prob, bow : ndarray of float32, shape (n_words,)
        Probability of each word as a unigram, and its back-off weight as a context.
    closed : bool
        Whether each context is also an n-gram.
    """

    def __cinit__(
        self,
        const unsigned char[::1] memory,
        const int64_t[::1] bucket_start,
        const float[::1] prob,
        const float[::1] bow,
        bint closed,
    ):
        self.memory = memory
        self.bucket_start = bucket_start
        self.prob = prob
        self.bow = bow
        self.n_context = <int> bucket_start.shape[0] - 2
        self.closed = closed
        # Read only: nothing is written through this pointer.
        self.buckets = <Bucket*> &memory[0]

    cdef bint look_up(
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n, double* out
    ) noexcept nogil:
        cdef Words words
        words.prob, words.bow = &self.prob[0], &self.bow[0]
        words.n = <int> self.prob.shape[0]
        # The compiler unrolls the loops over words of the usual orders.
        if self.n_context == 2:
            return look_up_all(self, words, X, stride, y, n, out, 2)
        if self.n_context == 3:
            return look_up_all(self, words, X, stride, y, n, out, 3)
        if self.n_context == 4:
            return look_up_all(self, words, X, stride, y, n, out, 4)
        if self.n_context == 5:
            return look_up_all(self, words, X, stride, y, n, out, 5)
        return look_up_all(self, words, X, stride, y, n, out, self.n_context)


cdef struct Words:
    const float* prob
    const float* bow
    int n


cdef struct Searches:
    # Hashes of the words read.
    uint64_t hash[1 + BLOCK * MAX_WORDS]
    # Of each chain: its key, where its search begins and ends, and the words in the
    # longest n-gram found.
    uint64_t key[N_CHAINS]
    Bucket* bucket[N_CHAINS]
    int n_found[N_CHAINS]
    const Slot* slot[N_CHAINS]


cdef inline bint look_up_all(
    Table table, Words words, const int* X, Py_ssize_t stride, const int* y,
    Py_ssize_t n_windows, double* out, int n_context,
) noexcept nogil:
    cdef Chains chains
    cdef Searches searches
    cdef int valid = True
    cdef uint64_t power
    cdef Py_ssize_t first = 0, row
    cdef int n, j, k
    searches.hash[0] = 0
    while first < n_windows:
        n = <int> min(<Py_ssize_t> BLOCK, n_windows - first)
        begin_reading(&chains)
        for j in range(n):
            row = first + j
            k = read_window(
                &chains, words.n, X + row * stride, stride, y + row, j, n_context,
                &valid,
            )
            for k in range(k, chains.n_read):
                searches.hash[k] = hash_word(chains.words[k])
            begin_search(&chains, &searches, table, j)
            if (j + 1) % TOGETHER == 0 or j + 1 == n:
                for k in range(j - j % TOGETHER, j + 1):
                    NPLM_PREFETCH(searches.bucket[k])
        for j in range(BLOCK, BLOCK + chains.n_contexts):
            begin_search(&chains, &searches, table, j)
            # Contexts of contexts are not looked up.
            chains.context[j] = N_CHAINS - 1
        searches.n_found[N_CHAINS - 1] = MAX_WORDS
        for j in range(BLOCK, BLOCK + chains.n_contexts):
            NPLM_PREFETCH(searches.bucket[j])
        expect_words(&chains, words.prob, words.bow)
        begin(&chains, words.prob, words.bow, n, n_context)
        power = MULTIPLIER
        for k in range(1, n_context):
            power *= MULTIPLIER
            step(&chains, &searches, table, k, power, n_context)
        last_step(&chains, &searches, table, n_context)
        for j in range(n):
            out[first + j] = prob_of(&chains, j, n_context)
        first += n
    return valid


cdef inline void begin_search(
    Chains* chains, Searches* searches, Table table, int chain
) noexcept nogil:
    """Set the key of a chain to that of its two newest words, and its bucket."""
    cdef int newest = chains.newest[chain]
    cdef uint64_t key = searches.hash[newest] + searches.hash[newest - 1] * MULTIPLIER
    searches.key[chain] = key
    searches.bucket[chain] = home(
        table.buckets + table.bucket_start[1],
        table.bucket_start[2] - table.bucket_start[1], key,
    )
    searches.n_found[chain] = 1


cdef inline void step(
    Chains* chains, Searches* searches, Table table, int k, uint64_t power,
    int n_context,
) noexcept nogil:
    """Look up the live chains with k words of context, and prefetch those with more.

    `power` is that of the multiplier for the next older word.
    """
    cdef Bucket* longer = table.buckets + table.bucket_start[k + 1]
    cdef uint64_t n_longer = table.bucket_start[k + 2] - table.bucket_start[k + 1]
    cdef int end = n_growing(k, n_context)
    # n-grams that a longer one may have as context; all if there may be others.
    cdef int n_needed = k + 1 if table.closed else 0
    cdef int i, chain, goes, n_fetched = 0, n_next = 0
    cdef uint64_t key, older
    cdef float prob
    cdef const Slot* slot
    find_all(
        searches.key, searches.bucket, chains.live, chains.n_live,
        table.buckets + table.bucket_start[k], longer, searches.slot,
    )
    for i in range(chains.n_live):
        chain = chains.live[i]
        slot = searches.slot[chain]
        searches.n_found[chain] = k + (slot != NPLM_NOTHING)
        prob = slot.prob
        chains.n_words[chain] += (k - chains.n_words[chain]) * (prob >= 0)
        chains.prob[chain] = one_of(prob >= 0, prob, chains.prob[chain])
        chains.bow[chain * (n_context + 1) + k + 1] = slot.bow
        older = searches.hash[chains.newest[chain] - k - 1]
        key = searches.key[chain] + older * power
        # The filter of an empty slot has no bits set.
        goes = (
            (chain < end) & (searches.n_found[chains.context[chain]] >= n_needed)
            & <int> (slot.low >> (older >> 60) & 1)
        )
        chains.live[n_next] = chain
        searches.key[chain] = key
        searches.bucket[chain] = home(longer, n_longer, key)
        n_next += goes
        if i % TOGETHER == TOGETHER - 1:
            expect_all(searches.bucket, chains.live + n_fetched, n_next - n_fetched)
            n_fetched = n_next
    expect_all(searches.bucket, chains.live + n_fetched, n_next - n_fetched)
    chains.n_live = n_next


cdef inline void last_step(
    Chains* chains, Searches* searches, Table table, int k
) noexcept nogil:
    """Look up the live chains with the oldest words of their contexts."""
    cdef Bucket* first = table.buckets + table.bucket_start[k]
    cdef Bucket* end = table.buckets + table.bucket_start[k + 1]
    cdef int i, chain
    cdef float prob
    for i in range(chains.n_live):
        chain = chains.live[i]
        prob = find_long_from(
            searches.bucket[chain], first, end, searches.key[chain]
        )
        if prob >= 0:
            chains.prob[chain], chains.n_words[chain] = prob, k
