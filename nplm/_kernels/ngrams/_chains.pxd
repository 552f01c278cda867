"""Look up a block of windows together, one older word per step.

A chain is an n-gram that grows: it begins with its newest word, and each step looks up
the n-gram with one more older word. The windows of a block step together, so that their
memory is fetched in parallel. In a stream, the context of a window is the n-gram of the
previous one, and both share a chain. The sentences of a block begin after the same
boundaries, and share the chain of these.

A kernel calls `read_window` and `begin`, stores what it finds in `prob`, `n_words` and
the weights, removes the chains that end from `live`, and finally calls `prob_of`.
"""

from nplm._kernels._ids cimport checked_id

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Whether n ids are equal. A call of memcmp takes longer than the few there are. */
    static inline int nplm_same_ids(const int *a, const int *b, int n) {
        uint64_t differ = 0, x, y;
        int i;
        for (i = 0; i + 1 < n; i += 2) {
            memcpy(&x, a + i, 8);
            memcpy(&y, b + i, 8);
            differ |= x ^ y;
        }
        return !(differ | (n & 1 ? (uint64_t) (a[n - 1] ^ b[n - 1]) : 0));
    }
    /* One of two numbers, without the branch that compilers make of ?: here: it would
       be unpredictable. */
    static inline float nplm_one_of(int yes, float this, float that) {
        uint32_t a, b;
        memcpy(&a, &this, 4);
        memcpy(&b, &that, 4);
        b ^= (a ^ b) & -(uint32_t) yes;
        memcpy(&this, &b, 4);
        return this;
    }
    """
    bint same_ids "nplm_same_ids"(const int* a, const int* b, int n) noexcept nogil
    float one_of "nplm_one_of"(bint yes, float this, float that) noexcept nogil

cdef enum:
    # Windows per block, whose memory accesses overlap.
    BLOCK = 128
    # Words in the longest n-gram.
    MAX_WORDS = 16
    # One more than there are: no chain has the last number.
    N_CHAINS = 2 * BLOCK + 1
    # Weights of a chain: of the contexts of no word, one word, ...
    N_WEIGHTS = MAX_WORDS + 1


cdef struct Chains:
    # Chain j is the n-gram of window j, and chain BLOCK + i is one of the `n_contexts`
    # contexts that no window before has as n-gram.
    int n_contexts
    int n_live
    int live[N_CHAINS]
    int newest[N_CHAINS]  # index of the newest word, after the older ones
    int context[N_CHAINS]  # the chain of the context of each window
    # Of each chain: the words of context in the longest n-gram found, its probability,
    # and weights of contexts, 1 if not found, `stride` apart.
    int n_words[N_CHAINS]
    float prob[N_CHAINS]
    float bow[N_CHAINS * N_WEIGHTS]
    int n_read
    int begun  # index of the context of the sentence that begins last; 0 without one
    # The entry before the first word is read but never used.
    int words[1 + BLOCK * MAX_WORDS]


cdef inline int check_width(Py_ssize_t width, int n_context) except -1:
    if width != n_context:
        raise ValueError(f"X has {width} columns, not {n_context}")
    return 0


cdef inline void begin_reading(Chains* chains) noexcept nogil:
    """Prepare for the first window of a block; see `read_window`."""
    chains.n_contexts, chains.n_read, chains.begun = 0, 1, 0
    chains.words[0] = 0


cdef inline int read_window(
    Chains* chains, int n_words, const int* row, Py_ssize_t stride, const int* y, int j,
    int n_context, int* valid,
) noexcept nogil:
    """Read the words of window j, the next one of a block.

    Its context is `row`, and `y` its next word. In a block of several windows the
    context of the window before is `stride` ids before, and its next word is before
    `y`. Ids that are not below `n_words` are
    replaced, and clear `valid`. Returns the index of the first word that was read.
    """
    cdef int first = chains.n_read, end = first, chain = j - 1, word, k
    # Not compared with `words`: a processor waits to read pairs of numbers that it has
    # just written one by one.
    if j == 0 or not (
        same_ids(row, row - stride + 1, n_context - 1)
        and row[n_context - 1] == (y - 1)[0]
    ):
        if not (chains.begun and same_ids(row, &chains.words[chains.begun], n_context)):
            chains.begun = end
            chains.newest[BLOCK + chains.n_contexts] = end + n_context - 1
            chains.n_contexts += 1
        for k in range(n_context):
            chains.words[end + k] = checked_id(&row[k], n_words, valid)
        end += n_context
        chain = BLOCK + chains.n_contexts - 1
    chains.context[j] = chain
    word = checked_id(y, n_words, valid)
    chains.words[end] = word
    chains.newest[j] = end
    chains.n_read = end + 1
    return first


cdef inline void begin(
    Chains* chains, const float* prob, const float* bow, int n, int n_context
) noexcept nogil:
    """Begin the chains of `n` windows and of their contexts with their newest words.

    `prob` and `bow` have the probability of each word as a unigram, and its back-off
    weight as a context.
    """
    cdef int stride = n_context + 1
    cdef int i, k, chain, word
    cdef float* own
    # Contexts come first in each step: windows ask what it found of theirs.
    chains.n_live = 0
    for i in range(chains.n_contexts + n):
        chain = BLOCK + i if i < chains.n_contexts else i - chains.n_contexts
        word = chains.words[chains.newest[chain]]
        own = &chains.bow[chain * stride]
        own[0], own[1] = 1, bow[word]
        for k in range(2, stride):
            own[k] = 1
        chains.prob[chain] = prob[word]
        chains.n_words[chain] = 0
        chains.live[chains.n_live] = chain
        chains.n_live += chain < n_growing(0, n_context)


cdef inline int n_growing(int k, int n_context) noexcept nogil:
    """Return the bound of the chains that may grow beyond k words of context.

    Chains of contexts end one word earlier than those of windows.
    """
    if k + 1 < n_context:
        return N_CHAINS
    return BLOCK if k < n_context else 0


cdef inline double prob_of(const Chains* chains, int j, int n_context) noexcept nogil:
    """Return the probability of window j: that of its n-gram, times longer weights."""
    cdef const float* bow = &chains.bow[chains.context[j] * (n_context + 1)]
    cdef int n_words = chains.n_words[j]
    cdef double scale = 1
    cdef int k
    # Longest context first, as in the trie, for the same bits. Branch-free: skipped
    # contexts multiply by the weight 1 of the empty context.
    for k in range(n_context, 0, -1):
        scale *= bow[k & -(k > n_words)]
    return scale * chains.prob[j]
