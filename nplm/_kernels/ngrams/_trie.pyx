"""The arrays of a context trie, in the form that kernels take."""


cdef class Trie:
    """The arrays of a ``ContextTrie``, in one argument.

    Parameters
    ----------
    level_start, context_word, child_start, start, words : ndarray of int32
        See ``nplm.models.ngrams.trie.context_trie``.
    """

    def __cinit__(
        self,
        const int[::1] level_start,
        const int[::1] context_word,
        const int[::1] child_start,
        const int[::1] start,
        const int[::1] words,
    ):
        self.level_start = level_start
        self.context_word = context_word
        self.child_start = child_start
        self.start = start
        self.words = words
        # Do not trust the offsets, which may come from a damaged file. A unigram trie
        # has no contexts of one word.
        self.n_words = <int> words.shape[0]
        if level_start.shape[0] > 2:
            self.n_words = level_start[2] - level_start[1]
