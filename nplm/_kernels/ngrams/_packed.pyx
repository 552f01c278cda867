"""Look-ups in the packed structure of a trie, whose values are in a hash table."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH, Offsets, read_bits, read_offsets
from nplm._kernels.ngrams._hashed cimport (
    MULTIPLIER, Bucket, Table, find_bucket, find_long, hash_word, home,
)

cdef enum:
    # Words whose buckets are prefetched together.
    N_TOGETHER = 64


cdef class PackedTrie:
    """The arrays of a packed trie, in one argument.

    Parameters
    ----------
    context_word, words : ndarray of uint8
        Records of `width` bits, as in ``ContextTrie``.
    child_high, start_high : ndarray of uint64
        Elias-Fano codes of `child_start` and `start`, all of which are high parts.
    child_sample, start_sample : ndarray of uint32
        Position of every 32nd bit that is set.
    width : int
        Number of bits of a word.
    n_contexts, n_ngrams : int
        Numbers of records.
    """

    cdef object arrays  # owns the memory of the pointers
    cdef const unsigned char* context_word
    cdef const unsigned char* words
    cdef Offsets child_start
    cdef Offsets start
    cdef int width
    cdef int64_t n_contexts, n_ngrams

    def __cinit__(
        self,
        const unsigned char[::1] context_word,
        const uint64_t[::1] child_high,
        const uint32_t[::1] child_sample,
        const uint64_t[::1] start_high,
        const uint32_t[::1] start_sample,
        const unsigned char[::1] words,
        int width,
        int64_t n_contexts,
        int64_t n_ngrams,
    ):
        self.arrays = (
            context_word, child_high, child_sample, start_high, start_sample, words
        )
        self.context_word, self.words = &context_word[0], &words[0]
        self.child_start = Offsets(
            &child_high[0], &child_sample[0], child_high.shape[0]
        )
        self.start = Offsets(&start_high[0], &start_sample[0], start_high.shape[0])
        self.width, self.n_contexts, self.n_ngrams = width, n_contexts, n_ngrams


cdef inline int word_at(
    const unsigned char* records, int64_t i, int width
) noexcept nogil:
    return <int> read_bits(records, i * width, width)


cdef inline int64_t find_child(PackedTrie trie, int64_t context, int word) noexcept nogil:
    """Return the number of the context extended by an older word, or -1."""
    cdef int64_t low, high, half, n
    if not read_offsets(&trie.child_start, context, &low, &high):
        return -1
    n = high - low
    # The offsets of a damaged file may be out of range.
    if not 0 <= low < high <= trie.n_contexts:
        return -1
    while n > 1:
        half = n >> 1
        if word_at(trie.context_word, low + half, trie.width) <= word:
            low += half
        n -= half
    return low if word_at(trie.context_word, low, trie.width) == word else -1


def packed_distribution(
    PackedTrie trie, Table table, const int[:, :] X, double[:, ::1] out
):
    """Compute the probability of every word after each context, a row of `out` each.

    Equivalent to ``backoff_distribution(...)``, bit for bit.

    No twin: see ``child_keys``.
    """
    cdef int n_words = <int> table.prob.shape[0]
    cdef int n_context = table.n_context
    cdef int64_t path[16]
    cdef uint64_t keys[16]
    cdef float weight[16]
    cdef uint64_t power
    cdef Bucket* buckets
    cdef int64_t n_buckets, context
    cdef Py_ssize_t row
    cdef int depth, level, i, word, slot
    cdef const Bucket* at
    cdef double scale
    if X.shape[1] != n_context:
        raise ValueError(f"X has {X.shape[1]} columns, not {n_context}")
    with nogil:
        for row in range(X.shape[0]):
            word = id_below(&X[row, n_context - 1], n_words)
            path[1] = 1 + word
            keys[1] = hash_word(word)
            weight[1] = table.bow[word]
            depth, power = 1, MULTIPLIER
            while depth < n_context:
                word = X[row, n_context - 1 - depth]
                context = find_child(trie, path[depth], word)
                if context < 0:
                    break
                keys[depth + 1] = keys[depth] + hash_word(word) * power
                buckets = table.buckets + table.bucket_start[depth]
                n_buckets = table.bucket_start[depth + 1] - table.bucket_start[depth]
                depth += 1
                path[depth] = context
                at = find_bucket(buckets, n_buckets, keys[depth], &slot)
                weight[depth] = at.bow[slot]
                power *= MULTIPLIER
            # Shortest context first, so that longer ones overwrite. The weights of the
            # longer contexts are multiplied once instead of at every level.
            for level in range(depth + 1):
                scale = 1
                for i in range(depth, level, -1):
                    scale *= weight[i]
                if level == 0:
                    for i in range(n_words):
                        out[row, i] = scale * table.prob[i]
                else:
                    fill_followers(
                        trie, table, path[level], level, keys[level], scale,
                        out[row],
                    )


cdef void fill_followers(
    PackedTrie trie, Table table, int64_t context, int level, uint64_t key,
    double scale, double[::1] out,
) noexcept nogil:
    """Fill in the probabilities of the words that follow a context, times `scale`."""
    cdef Bucket* buckets = table.buckets + table.bucket_start[level]
    cdef int64_t n_buckets = table.bucket_start[level + 1] - table.bucket_start[level]
    cdef bint longest = level == table.n_context
    cdef int words[N_TOGETHER]
    cdef uint64_t keys[N_TOGETHER]
    cdef int64_t i, last
    cdef int j, n, slot
    cdef const Bucket* at
    cdef float prob
    if not read_offsets(&trie.start, context, &i, &last):
        return
    # The offsets of a damaged file may be out of range.
    last = min(last, trie.n_ngrams)
    while 0 <= i < last:
        n = <int> min(<int64_t> N_TOGETHER, last - i)
        for j in range(n):
            words[j] = word_at(trie.words, i + j, trie.width)
            keys[j] = hash_word(words[j]) + MULTIPLIER * key
            NPLM_PREFETCH(home(buckets, n_buckets, keys[j]))
        for j in range(n):
            if longest:
                prob = find_long(buckets, n_buckets, keys[j])
            else:
                at = find_bucket(buckets, n_buckets, keys[j], &slot)
                prob = at.prob[slot]
            if prob >= 0 and words[j] < out.shape[0]:
                out[words[j]] = scale * prob
        i += n
