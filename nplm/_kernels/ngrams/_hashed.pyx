"""Look n-grams up in a hash table, which ``_hashing`` fills.

A walk down a trie waits for memory several times per step. In a hash table a step reads
one bucket, whose address depends only on the words. A step is skipped if the filter of
the previous slot shows that no n-gram is one word longer.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels._ids cimport checked_id
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._chains cimport (
    BLOCK, MAX_WORDS, N_CHAINS, one_of, same_ids,
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
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n, double* out,
        int* orders,
    ) noexcept nogil:
        cdef Words words
        words.prob, words.bow = &self.prob[0], &self.bow[0]
        words.n = <int> self.prob.shape[0]
        # The compiler unrolls the loops over words of the usual orders.
        if self.n_context == 2:
            return look_up_all(self, words, X, stride, y, n, out, orders, 2)
        if self.n_context == 3:
            return look_up_all(self, words, X, stride, y, n, out, orders, 3)
        if self.n_context == 4:
            return look_up_all(self, words, X, stride, y, n, out, orders, 4)
        if self.n_context == 5:
            return look_up_all(self, words, X, stride, y, n, out, orders, 5)
        return look_up_all(
            self, words, X, stride, y, n, out, orders, self.n_context
        )


cdef struct Words:
    const float* prob
    const float* bow
    int n


cdef struct Chain:
    # An n-gram that grows by one older word per step: that of a window, or of a context
    # that is not the n-gram of the window before. What a step needs is together.
    uint64_t key
    const void* at  # the bucket where its search begins; then the slot found
    const uint64_t* newest  # the hash of its newest word, after those of the older ones
    const Chain* context  # of the words before its newest one
    int word  # the newest one
    # Words of context in the longest n-gram found; words in the longest context found.
    short n_words
    short n_found
    float prob  # of the longest n-gram found
    float bow[MAX_WORDS + 1]  # weights of the contexts of k words; 1 if not found


cdef struct Block:
    # Windows first, then `n_contexts` contexts.
    Chain chain[N_CHAINS]
    int n_contexts
    int n_live
    Chain* live[N_CHAINS]  # contexts first: windows ask what was found of theirs
    uint64_t hashes[1 + BLOCK * MAX_WORDS]


cdef inline bint look_up_all(
    Table table, Words words, const int* X, Py_ssize_t stride, const int* y,
    Py_ssize_t n_windows, double* out, int* orders, int n_context,
) noexcept nogil:
    cdef Block block
    cdef Chain all_found  # the context of contexts, which is not looked up
    cdef int valid = True
    cdef uint64_t power
    cdef Py_ssize_t first = 0
    cdef int n, j, k
    block.hashes[0] = 0
    all_found.n_found = MAX_WORDS
    while first < n_windows:
        n = <int> min(<Py_ssize_t> BLOCK, n_windows - first)
        valid &= read_windows(
            &block, &all_found, table, words, X + first * stride, stride, y + first, n,
            n_context,
        )
        if n_context == 1:
            for j in range(block.n_live):
                set_unigram(block.live[j], words, 1)
        else:
            step(&block, table, words, 1, MULTIPLIER * MULTIPLIER, n_context)
        power = MULTIPLIER * MULTIPLIER
        for k in range(2, n_context):
            power *= MULTIPLIER
            step(&block, table, words, k, power, n_context)
        last_step(&block, table, n_context)
        for j in range(n):
            out[first + j] = prob_of(&block.chain[j], n_context)
        if orders != NULL:
            for j in range(n):
                orders[first + j] = block.chain[j].n_words + 1
        first += n
    return valid


cdef inline bint read_windows(
    Block* block, const Chain* all_found, Table table, Words words, const int* X,
    Py_ssize_t stride, const int* y, int n, int n_context,
) noexcept nogil:
    """Begin the chains of `n` windows and of their contexts, and prefetch.

    In a stream, the context of a window is the n-gram of the window before. Sentences
    begin after the same boundaries, and share the chain of these. Ids out of range are
    replaced; returns whether there are none.
    """
    cdef Bucket* buckets = table.buckets + table.bucket_start[1]
    cdef uint64_t n_buckets = table.bucket_start[2] - table.bucket_start[1]
    cdef uint64_t* newest = block.hashes
    cdef const int* row = X
    cdef const int* begun = NULL  # the context of the sentence that begins last
    cdef const Chain* context = NULL
    cdef Chain* chain
    cdef int valid = True
    cdef int word = 0
    cdef int j, k
    block.n_contexts = 0
    for j in range(n):
        chain = &block.chain[j]
        if j > 0 and (
            same_ids(row, row - stride + 1, n_context - 1)
            and row[n_context - 1] == y[j - 1]
        ):
            context = chain - 1
        else:
            for k in range(n_context):
                word = checked_id(&row[k], words.n, &valid)
                newest += 1
                newest[0] = hash_word(word)
            if begun == NULL or not same_ids(row, begun, n_context):
                begun = row
                begin(
                    &block.chain[BLOCK + block.n_contexts], all_found, word, newest,
                    buckets, n_buckets,
                )
                block.n_contexts += 1
            context = &block.chain[BLOCK + block.n_contexts - 1]
        word = checked_id(&y[j], words.n, &valid)
        newest += 1
        newest[0] = hash_word(word)
        begin(chain, context, word, newest, buckets, n_buckets)
        row += stride
        if (j + 1) % TOGETHER == 0 or j + 1 == n:
            expect(&block.chain[j - j % TOGETHER], chain + 1, words)
    chain = &block.chain[BLOCK]
    expect(chain, chain + block.n_contexts, words)
    block.n_live = block.n_contexts + n
    for j in range(block.n_contexts):
        block.live[j] = chain + j
    for j in range(n):
        block.live[block.n_contexts + j] = &block.chain[j]
    return valid


cdef inline void begin(
    Chain* chain, const Chain* context, int word, const uint64_t* newest,
    Bucket* buckets, uint64_t n_buckets,
) noexcept nogil:
    """Begin a chain with the key of its two newest words, and its bucket."""
    chain.key = newest[0] + (newest - 1)[0] * MULTIPLIER
    chain.at = home(buckets, n_buckets, chain.key)
    chain.newest, chain.context, chain.word = newest, context, word


cdef inline void expect(const Chain* chain, const Chain* end, Words words) noexcept nogil:
    """Prefetch what `step` reads first of chains; see `expect_live`."""
    cdef const Chain* begun = chain
    while chain < end:
        NPLM_PREFETCH(chain.at)
        chain += 1
    chain = begun
    while chain < end:
        NPLM_PREFETCH(words.prob + chain.word)
        NPLM_PREFETCH(words.bow + chain.word)
        chain += 1


cdef inline void expect_live(Chain* const* live, int n) noexcept nogil:
    """Prefetch the buckets of chains.

    Do so for several at once: a processor translates the addresses of several pages
    together only if there are few instructions between their prefetches.
    """
    cdef int i
    for i in range(n):
        NPLM_PREFETCH(live[i].at)


cdef inline void find_all(Block* block, Bucket* first, Bucket* end) noexcept nogil:
    """Find the slots of the live chains.

    Searches that go on do so together, after their memory was prefetched.
    """
    cdef Chain* further[N_CHAINS]
    cdef Bucket* bucket[N_CHAINS]
    cdef Chain* chain
    cdef Bucket* at
    cdef int n = 0, i, hits
    for i in range(block.n_live):
        chain = block.live[i]
        at = <Bucket*> chain.at
        hits = nplm_hits(at, tag(chain.key))
        chain.at = slot_of(at, hits)
        further[n], bucket[n] = chain, at
        n += (hits | stops(at, chain.key)) == 0
    for i in range(n):
        bucket[i] = first if bucket[i] + 1 == end else bucket[i] + 1
        NPLM_PREFETCH(bucket[i])
    for i in range(n):
        at = found_from(bucket[i], further[i].key, first, end, &hits)
        further[i].at = slot_of(at, hits)


cdef inline void set_unigram(Chain* chain, Words words, int n_context) noexcept nogil:
    """Set what is found of the newest word of a chain alone."""
    cdef int k
    chain.prob, chain.n_words = words.prob[chain.word], 0
    chain.bow[0], chain.bow[1] = 1, words.bow[chain.word]
    for k in range(2, n_context + 1):
        chain.bow[k] = 1


cdef inline void step(
    Block* block, Table table, Words words, int k, uint64_t power, int n_context,
) noexcept nogil:
    """Look up the live chains with k words of context, and prefetch those with more.

    `power` is that of the multiplier for the next older word.
    """
    cdef Bucket* longer = table.buckets + table.bucket_start[k + 1]
    cdef uint64_t n_longer = table.bucket_start[k + 2] - table.bucket_start[k + 1]
    # Chains of contexts end one word earlier than those of windows.
    cdef const Chain* end = &block.chain[N_CHAINS if k + 1 < n_context else BLOCK]
    # n-grams that a longer one may have as context; all if there may be others.
    cdef int n_needed = k + 1 if table.closed else 0
    cdef int i, goes, n_fetched = 0, n_next = 0
    cdef uint64_t older
    cdef float prob
    cdef Chain* chain
    cdef const Slot* slot
    find_all(block, table.buckets + table.bucket_start[k], longer)
    for i in range(block.n_live):
        chain = block.live[i]
        slot = <const Slot*> chain.at
        prob = slot.prob
        if k == 1:
            set_unigram(chain, words, n_context)
        chain.n_words += (k - chain.n_words) * (prob >= 0)
        chain.prob = one_of(prob >= 0, prob, chain.prob)
        chain.bow[k + 1] = slot.bow
        chain.n_found = k + (slot != NPLM_NOTHING)
        older = (chain.newest - k - 1)[0]
        chain.key += older * power
        chain.at = home(longer, n_longer, chain.key)
        # The filter of an empty slot has no bits set.
        goes = (
            (chain < end) & (chain.context.n_found >= n_needed)
            & <int> (slot.low >> (older >> 60) & 1)
        )
        block.live[n_next] = chain
        n_next += goes
        if i % TOGETHER == TOGETHER - 1:
            expect_live(block.live + n_fetched, n_next - n_fetched)
            n_fetched = n_next
    expect_live(block.live + n_fetched, n_next - n_fetched)
    block.n_live = n_next


cdef inline void last_step(Block* block, Table table, int k) noexcept nogil:
    """Look up the live chains with the oldest words of their contexts."""
    cdef Bucket* first = table.buckets + table.bucket_start[k]
    cdef Bucket* end = table.buckets + table.bucket_start[k + 1]
    cdef Chain* chain
    cdef int i
    cdef float prob
    for i in range(block.n_live):
        chain = block.live[i]
        prob = find_long_from(<Bucket*> chain.at, first, end, chain.key)
        if prob >= 0:
            chain.prob, chain.n_words = prob, k


cdef inline double prob_of(const Chain* chain, int n_context) noexcept nogil:
    """Return the probability of a window: that of its n-gram, times longer weights."""
    cdef const float* bow = chain.context.bow
    cdef int n_words = chain.n_words
    cdef double scale = 1
    cdef int k
    # Longest context first, as in the trie, for the same bits. Branch-free: skipped
    # contexts multiply by the weight 1 of the empty context.
    for k in range(n_context, 0, -1):
        scale *= bow[k & -(k > n_words)]
    return scale * chain.prob
