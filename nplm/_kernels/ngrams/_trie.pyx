"""Classes that kernels take: n-grams in which windows are looked up, and a trie."""

from libc.math cimport log

from nplm._kernels.ngrams._chains cimport check_width


cdef class Ngrams:
    """n-grams in which blocks of windows are looked up, as a subclass does.

    It has the probability of each word as a unigram and its back-off weight as a
    context, `prob` and `bow`, and the number of words in the longest context.
    """

    cdef void look_up(
        self, const int[:, :] X, const int[:] y, double[::1] out
    ) noexcept nogil:
        """Compute the probability of each next word."""


def windows_prob(Ngrams ngrams, const int[:, :] X, const int[:] y, double[::1] out):
    """Compute the probability of each next word, from the longest n-gram stored.

    Equivalent to ``backoff_prob(...)``: in a hash table bit for bit, in a quantized
    trie with the values of the codes.

    No twin: look-ups in a quantized trie have ``quantized_prob``, and those in a hash
    table are tested against the twin of ``backoff_prob``.
    """
    check_width(X.shape[1], ngrams.n_context)
    with nogil:
        ngrams.look_up(X, y, out)


def windows_log_prob(Ngrams ngrams, const int[:, :] X, const int[:] y, double[::1] out):
    """Compute the natural logarithm of the probability of each next word.

    Returns False if an id is out of range: then `out` is not filled.

    Equivalent to ``np.log(windows_prob(...))``.

    No twin: see ``windows_prob``.
    """
    cdef unsigned int n_words = <unsigned int> ngrams.prob.shape[0]
    cdef Py_ssize_t row, column
    cdef bint valid = True
    check_width(X.shape[1], ngrams.n_context)
    with nogil:
        for row in range(X.shape[0]):
            valid &= <unsigned int> y[row] < n_words
            for column in range(X.shape[1]):
                valid &= <unsigned int> X[row, column] < n_words
        if valid:
            ngrams.look_up(X, y, out)
            for row in range(X.shape[0]):
                out[row] = log(out[row])
    return bool(valid)


def take_logs(double[::1] values):
    """Replace values by their natural logarithms, with the bits of `windows_log_prob`.

    Equivalent to ``np.log(values, out=values)``, up to rounding.

    No twin: the name says it.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            values[i] = log(values[i])


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
