"""Look-up steps in a context trie of sorted arrays, and what other n-grams share.

See ``nplm.models.ngrams.trie.context_trie``.
"""

from nplm._kernels._ids cimport id_below


cdef class Ngrams:
    cdef const float[::1] prob
    cdef const float[::1] bow
    cdef readonly int n_context  # words in the longest context

    cdef bint look_up(
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n, double* out,
        int* orders,
    ) noexcept nogil


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
    """Return the index of `word` in the sorted ``words[low:high]``, or -1.

    Also returns -1 if the range is invalid: the offsets may come from a damaged file.
    """
    cdef int n = high - low
    cdef int half
    if not 0 <= low < high <= words.shape[0]:
        return -1
    # Branch-free binary search: low becomes the last index with words[low] <= word.
    while n > 1:
        half = n >> 1
        low = low + half if words[low + half] <= word else low
        n -= half
    return low if words[low] == word else -1


cdef inline int find_follower(Trie trie, int context, int word) noexcept nogil:
    """Return the index in ``words`` of the n-gram of a context and a word, or -1."""
    return find(trie.words, trie.start[context], trie.start[context + 1], word)


cdef inline int find_child(Trie trie, int context, int word) noexcept nogil:
    """Return the number of the context extended by an older word, or -1."""
    return find(
        trie.context_word,
        trie.child_start[context],
        trie.child_start[context + 1],
        word,
    )


cdef inline int descend(
    Trie trie, const int[:, :] X, Py_ssize_t row, int[::1] path
) noexcept nogil:
    """Return the length of the longest context of the trie that ends a row of X.

    Sets ``path[k]`` to the number of the context of the nearest k words.
    """
    cdef Py_ssize_t n_context = X.shape[1]
    cdef Py_ssize_t depth
    cdef int context
    path[0] = 0
    if n_context == 0:
        return 0
    # The root has a child for each word of the vocabulary.
    context = 1 + id_below(&X[row, n_context - 1], trie.n_words)
    path[1] = context
    for depth in range(1, n_context):
        # Older words are only compared: an invalid id is not found.
        context = find_child(trie, context, X[row, n_context - 1 - depth])
        if context < 0:
            return <int> depth
        path[depth + 1] = context
    return <int> n_context
