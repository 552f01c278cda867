"""Look n-grams up in a hash table, which ``_hashing`` fills.

A walk down a trie waits for memory several times per step. In a hash table a step reads
one bucket, whose address depends only on the words. A step is skipped if the filter of
the previous slot shows that no n-gram is one word longer.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport (
    BLOCK, MAX_WORDS, N_CHAINS, Chains, begin, n_growing, prob_of,
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
    """

    def __cinit__(
        self,
        const unsigned char[::1] memory,
        const int64_t[::1] bucket_start,
        const float[::1] prob,
        const float[::1] bow,
    ):
        self.memory = memory
        self.bucket_start = bucket_start
        self.prob = prob
        self.bow = bow
        self.n_context = <int> bucket_start.shape[0] - 2
        # Read only: nothing is written through this pointer.
        self.buckets = <Bucket*> &memory[0]

    cdef void look_up(
        self, const int[:, :] X, const int[:] y, double[::1] out
    ) noexcept nogil:
        cdef int n_context = self.n_context
        cdef Chains chains
        cdef Keys keys
        cdef Py_ssize_t first = 0
        cdef uint64_t power
        cdef int n, j, k
        while first < X.shape[0]:
            n = <int> min(<Py_ssize_t> BLOCK, X.shape[0] - first)
            begin(&chains, self.prob, self.bow, X, y, first, n)
            hash_words(&chains, &keys)
            power = 1
            for k in range(1, n_context):
                power *= MULTIPLIER
                step(&chains, &keys, self, k, power, n_context)
            last_step(&chains, &keys, self, n_context, power * MULTIPLIER)
            for j in range(n):
                out[first + j] = prob_of(&chains, j, n_context)
            first += n


cdef struct Keys:
    # Keys of each word read, and of each chain so far.
    uint64_t word[1 + BLOCK * MAX_WORDS]
    uint64_t chain[N_CHAINS]
    # In a step, the current bucket of each chain, and the chains not found yet.
    Bucket* bucket[N_CHAINS]
    int sought[N_CHAINS]


cdef void hash_words(Chains* chains, Keys* keys) noexcept nogil:
    """Hash the words, and set the key of each chain to that of its newest word."""
    cdef int i, chain
    for i in range(chains.n_read):
        keys.word[i] = hash_word(chains.words[i])
    for i in range(chains.n_live):
        chain = chains.live[i]
        keys.chain[chain] = keys.word[chains.newest[chain]]


cdef int begin_step(
    Chains* chains, Keys* keys, Bucket* buckets, uint64_t n_buckets, int k,
    uint64_t power,
) noexcept nogil:
    """Extend the keys of the live chains by the k-th word; prefetch their buckets."""
    cdef int i, chain
    for i in range(chains.n_live):
        chain = chains.live[i]
        keys.chain[chain] += keys.word[chains.newest[chain] - k] * power
        keys.bucket[chain] = home(buckets, n_buckets, keys.chain[chain])
        keys.sought[i] = chain
        NPLM_PREFETCH(keys.bucket[chain])
    return chains.n_live


cdef void go_to_next_buckets(
    Keys* keys, int n_sought, Bucket* buckets, uint64_t n_buckets, const void* nothing
) noexcept nogil:
    cdef int i, chain
    cdef Bucket* at
    for i in range(n_sought):
        chain = keys.sought[i]
        at = next_bucket(buckets, n_buckets, keys.bucket[chain])
        # In the table of a damaged file the search may not end otherwise.
        if at == home(buckets, n_buckets, keys.chain[chain]):
            at = <Bucket*> nothing
        keys.bucket[chain] = at
        NPLM_PREFETCH(at)


cdef void step(
    Chains* chains, Keys* keys, Table table, int k, uint64_t power, int n_context
) noexcept nogil:
    """Look up the live chains extended by the k-th word of their contexts."""
    cdef Bucket* buckets = table.buckets + table.bucket_start[k]
    cdef uint64_t n_buckets = table.bucket_start[k + 1] - table.bucket_start[k]
    cdef int n_longer = n_growing(k, n_context)
    cdef int n_sought = begin_step(chains, keys, buckets, n_buckets, k, power)
    cdef int i, chain, hit, n_missed, n_next = 0
    cdef float prob
    cdef Bucket* bucket
    # Branch-free: it is unpredictable whether an n-gram is there, and in which bucket.
    # Chains that continue in the next bucket do so together.
    while n_sought > 0:
        n_missed = 0
        for i in range(n_sought):
            chain = keys.sought[i]
            bucket = keys.bucket[chain]
            hit = slot_in(bucket, tag(keys.chain[chain]))
            keys.sought[n_missed] = chain
            n_missed += (hit == SLOTS) & goes_on(bucket, keys.chain[chain])
            bucket = <Bucket*> nplm_either(hit < SLOTS, bucket, NPLM_NOTHING)
            hit &= SLOTS - 1
            prob = bucket.prob[hit]
            chains.prob[k][chain] = prob
            chains.n_words[chain] += (k - chains.n_words[chain]) * (prob >= 0)
            chains.bow[k + 1][chain] = bucket.bow[hit]
            chains.live[n_next] = chain
            # The filter of an empty slot has no bits set.
            n_next += (chain < n_longer) & (
                bucket.low[hit] >> (keys.word[chains.newest[chain] - k - 1] >> 60) & 1
            )
        n_sought = n_missed
        go_to_next_buckets(keys, n_sought, buckets, n_buckets, NPLM_NOTHING)
    chains.n_live = n_next


cdef void last_step(
    Chains* chains, Keys* keys, Table table, int k, uint64_t power
) noexcept nogil:
    """Look up the live chains extended by the oldest word of their contexts."""
    cdef Bucket* buckets = table.buckets + table.bucket_start[k]
    cdef uint64_t n_buckets = table.bucket_start[k + 1] - table.bucket_start[k]
    cdef int n_sought = begin_step(chains, keys, buckets, n_buckets, k, power)
    cdef int i, chain, hit, found, n_missed
    cdef LongBucket* bucket
    while n_sought > 0:
        n_missed = 0
        for i in range(n_sought):
            chain = keys.sought[i]
            bucket = <LongBucket*> keys.bucket[chain]
            hit = long_slot_in(bucket, long_tag(keys.chain[chain]))
            found = hit < LONG_SLOTS
            keys.sought[n_missed] = chain
            n_missed += (1 - found) & long_goes_on(bucket, keys.chain[chain])
            chains.prob[k][chain] = bucket.prob[hit - 1 + found]
            chains.n_words[chain] += (k - chains.n_words[chain]) * found
        n_sought = n_missed
        go_to_next_buckets(keys, n_sought, buckets, n_buckets, NPLM_LONG_NOTHING)
    chains.n_live = 0
