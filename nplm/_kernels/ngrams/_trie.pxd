"""Steps in a context trie of sorted arrays.

See ``nplm.models.ngrams.trie.context_trie``.
"""

from nplm._kernels._ids cimport id_below


cdef class Trie:
    cdef const int[::1] level_start
    cdef const int[::1] context_word
    cdef const int[::1] child_start
    cdef const int[::1] start
    cdef const int[::1] words
    cdef int n_words  # size of the vocabulary


cdef inline int find(
    const int[::1] words, int low, int high, int word
) noexcept nogil:
    """Index of `word` in the sorted ``words[low:high]``, or -1.

    Nor is it where there is no such place: offsets may be those of a damaged file.
    """
    cdef int n = high - low
    cdef int half
    if not 0 <= low < high <= words.shape[0]:
        return -1
    # Halve without a branch to mispredict: low becomes the last index <= word.
    while n > 1:
        half = n >> 1
        low = low + half if words[low + half] <= word else low
        n -= half
    return low if words[low] == word else -1


cdef inline int find_follower(Trie trie, int context, int word) noexcept nogil:
    """Index in ``words`` of the n-gram of a context and a word, or -1."""
    return find(trie.words, trie.start[context], trie.start[context + 1], word)


cdef inline int find_child(Trie trie, int context, int word) noexcept nogil:
    """Number of the context that is one older word longer, or -1."""
    return find(
        trie.context_word,
        trie.child_start[context],
        trie.child_start[context + 1],
        word,
    )


cdef inline int descend(
    Trie trie, const int[:, :] X, Py_ssize_t row, int[::1] path
) noexcept nogil:
    """Length of the longest context of the trie that ends the row of X.

    ``path[k]`` becomes the number of the context of its nearest k words.
    """
    cdef Py_ssize_t n_context = X.shape[1]
    cdef Py_ssize_t depth
    cdef int context
    path[0] = 0
    if n_context == 0:
        return 0
    # The root's children are dense: one for each word of the vocabulary.
    context = 1 + id_below(&X[row, n_context - 1], trie.n_words)
    path[1] = context
    for depth in range(1, n_context):
        # Older words are only compared: what is no id is not found.
        context = find_child(trie, context, X[row, n_context - 1 - depth])
        if context < 0:
            return <int> depth
        path[depth + 1] = context
    return <int> n_context
