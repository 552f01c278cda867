"""Look up a block of windows together, one older word per step.

A chain is an n-gram that grows: it begins with its newest word, and each step looks up
the n-gram with one more older word. The windows of a block step together, so that their
memory is fetched in parallel. In a stream, the context of a window is the n-gram of the
previous one, and both share a chain.

A kernel calls `begin`, stores what it finds in `prob`, `n_words` and `bow`, removes
the chains that end from `live`, and finally calls `prob_of`.
"""

from nplm._kernels._ids cimport id_below

cdef enum:
    # Windows per block, whose memory accesses overlap.
    BLOCK = 256
    # Words in the longest n-gram.
    MAX_WORDS = 16
    N_CHAINS = 2 * BLOCK


cdef struct Chains:
    # Chain j is the n-gram of window j, and chain BLOCK + j its context.
    int n_live
    int live[N_CHAINS]
    int newest[N_CHAINS]  # index of the newest word, after the older ones
    int n_words[N_CHAINS]  # words of context in the longest n-gram found
    # By the number of context words: the probability of the n-gram, if found, and the
    # weight of the context, 1 if not found.
    float prob[MAX_WORDS][N_CHAINS]
    float bow[MAX_WORDS + 1][N_CHAINS]
    int context[BLOCK]  # the chain of the context of each window
    int n_read
    # The entry before the first word is read but never used.
    int words[1 + BLOCK * MAX_WORDS]


cdef inline int check_width(Py_ssize_t width, int n_context) except -1:
    if width != n_context:
        raise ValueError(f"X has {width} columns, not {n_context}")
    return 0


cdef inline void begin(
    Chains* chains, const float[::1] prob, const float[::1] bow,
    const int[:, :] X, const int[:] y, Py_ssize_t first, int n,
) noexcept nogil:
    """Begin the chains of `n` windows: read their words and look up the newest.

    `prob` and `bow` have the probability of each word as a unigram, and its back-off
    weight as a context.
    """
    cdef int n_context = <int> X.shape[1]
    cdef int n_words = <int> prob.shape[0]
    cdef int end = 1
    cdef Py_ssize_t row
    cdef int j, k, word
    cdef bint follows
    chains.n_live = 0
    chains.words[0] = 0
    for k in range(n_context + 1):
        for j in range(n):
            chains.bow[k][j] = chains.bow[k][BLOCK + j] = 1
    for j in range(n):
        row = first + j
        follows = j > 0 and X[row, n_context - 1] == y[row - 1]
        for k in range(n_context - 1 if follows else 0):
            follows = follows and X[row, k] == X[row - 1, k + 1]
        chains.context[j] = j - 1
        if not follows:
            for k in range(n_context):
                chains.words[end + k] = id_below(&X[row, k], n_words)
            end += n_context
            chains.context[j] = BLOCK + j
            chains.newest[BLOCK + j] = end - 1
            chains.n_words[BLOCK + j] = 0
            chains.bow[1][BLOCK + j] = bow[chains.words[end - 1]]
            chains.live[chains.n_live] = BLOCK + j
            chains.n_live += n_context > 1
        word = id_below(&y[row], n_words)
        chains.words[end] = word
        chains.newest[j] = end
        chains.bow[1][j] = bow[word]
        chains.prob[0][j] = prob[word]
        chains.n_words[j] = 0
        chains.live[chains.n_live] = j
        chains.n_live += 1
        end += 1
    chains.n_read = end


cdef inline int n_growing(int k, int n_context) noexcept nogil:
    """Return the bound of the chains that may grow beyond k words of context.

    Chains of contexts end one word earlier than those of windows.
    """
    if k + 1 < n_context:
        return N_CHAINS
    return BLOCK if k < n_context else 0


cdef inline double prob_of(Chains* chains, int j, int n_context) noexcept nogil:
    """Return the probability of window j: that of its n-gram, times longer weights."""
    cdef int context = chains.context[j]
    cdef int n_words = chains.n_words[j]
    cdef double scale = 1
    cdef int k
    # Longest context first, as in the trie, for the same bits. Branch-free: skipped
    # contexts multiply by the weight 1 of the empty context.
    for k in range(n_context, 0, -1):
        scale *= chains.bow[k if k > n_words else 0][context]
    return scale * chains.prob[n_words][j]
