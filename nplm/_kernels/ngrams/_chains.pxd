"""Many windows looked up together, an older word a step.

A chain is an n-gram that grows: it begins with its newest word, and each step looks
up the one with another word before. Where the steps of a block of windows are made
together their memory is fetched together. In a stream the context of a window is the
n-gram of the last, so one chain serves both.

What looks n-grams up lets the chains `begin`, notes in `prob`, `n_words` and `bow`
what it finds, drops from `live` those that do not go on, and in the end asks for
`prob_of`.
"""

from nplm._kernels._ids cimport id_below

cdef enum:
    # Windows of a block: what waits for its memory waits beside so many others.
    BLOCK = 256
    # The longest n-gram.
    MAX_WORDS = 16
    N_CHAINS = 2 * BLOCK


cdef struct Chains:
    # Chain j is the n-gram of window j, and chain BLOCK + j its context.
    int n_live
    int live[N_CHAINS]
    int newest[N_CHAINS]  # where the newest word is, the older ones before it
    int n_words[N_CHAINS]  # of context, in the longest n-gram that was found
    # By words of context: the probability of the n-gram, if it was found; the weight
    # of the context, 1 of none and of what was not found.
    float prob[MAX_WORDS][N_CHAINS]
    float bow[MAX_WORDS + 1][N_CHAINS]
    int context[BLOCK]  # the chain of a window's context
    int n_read
    # What is before the first word is read but never used.
    int words[1 + BLOCK * MAX_WORDS]


cdef inline void begin(
    Chains* chains, const float[::1] prob, const float[::1] bow,
    const int[:, :] X, const int[:] y, Py_ssize_t first, int n,
) noexcept nogil:
    """Let the chains of `n` windows begin: their words, and the newest looked up.

    `prob` and `bow` are those of each word, as a unigram and as a context.
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
    """Chains below this may go on from k words of context: contexts end earlier."""
    if k + 1 < n_context:
        return N_CHAINS
    return BLOCK if k < n_context else 0


cdef inline double prob_of(Chains* chains, int j, int n_context) noexcept nogil:
    """Probability of window j: the n-gram's, by the weights of longer contexts."""
    cdef int context = chains.context[j]
    cdef int n_words = chains.n_words[j]
    cdef double scale = 1
    cdef int k
    # The longest first, as in the trie; without branches, and so the empty context's.
    for k in range(n_context, 0, -1):
        scale *= chains.bow[k if k > n_words else 0][context]
    return scale * chains.prob[n_words][j]
