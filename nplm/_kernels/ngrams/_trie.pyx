"""Classes that kernels take: n-grams in which windows are looked up, and a trie."""

from cpython.buffer cimport PyBUF_STRIDES, PyObject_GetBuffer, PyBuffer_Release
from libc.math cimport log

import numpy as np

from nplm._kernels.ngrams._chains cimport check_width

cdef object ndarray = np.ndarray
cdef object empty = np.empty
cdef object ID_TYPE = np.dtype(np.intc)


cdef class Ngrams:
    """n-grams in which blocks of windows are looked up, as a subclass does.

    It has the probability of each word as a unigram and its back-off weight as a
    context, `prob` and `bow`, and the number of words in the longest context.
    """

    @property
    def n_words(self):
        """Size of the vocabulary."""
        return self.prob.shape[0]

    cdef bint look_up(
        self, const int* X, const int* y, Py_ssize_t n, double* out
    ) noexcept nogil:
        """Compute the probabilities of `n` next words; return whether ids are in range.

        The rows of X are contexts of ``n_context`` words. Ids that are out of range are
        replaced.
        """

    def few_log_prob(self, X, y, Py_ssize_t most):
        """Return the natural logarithms of the probabilities of a few next words.

        Parameters
        ----------
        X : ndarray of int32, shape (n, n_context)
            Contexts, in C order.
        y : ndarray of int32, shape (n,)
            Next words.
        most : int
            Largest `n`.

        Returns
        -------
        log_prob : ndarray of float64, shape (n,), or None
            None if `X` and `y` are other objects, or an id is out of range.

        Notes
        -----
        A sentence is looked up in less time than Cython takes for the memoryviews of
        three arrays, so this function reads the buffers itself.

        Equivalent to ``np.log(windows_prob(...))``, bit for bit `windows_log_prob`.

        No twin: see ``windows_prob``.
        """
        cdef Py_buffer rows, words, values
        cdef bint valid = False
        cdef Py_ssize_t n, size = sizeof(int)
        if type(X) is not ndarray or type(y) is not ndarray:
            return None
        # Compared by identity: a buffer with its format takes longer, as NumPy spells
        # the type out for each.
        if X.dtype is not ID_TYPE or y.dtype is not ID_TYPE:
            return None
        PyObject_GetBuffer(X, &rows, PyBUF_STRIDES)
        try:
            PyObject_GetBuffer(y, &words, PyBUF_STRIDES)
            try:
                n = words.shape[0] if words.ndim == 1 else 0
                if (
                    0 < n <= most
                    and rows.ndim == 2 and rows.shape[0] == n
                    and rows.shape[1] == self.n_context
                    and rows.strides[0] == self.n_context * size
                    and rows.strides[1] == words.strides[0] == size
                ):
                    out = empty(n)
                    PyObject_GetBuffer(out, &values, PyBUF_STRIDES)
                    with nogil:
                        valid = log_prob(
                            self, <const int*> rows.buf, <const int*> words.buf, n,
                            <double*> values.buf,
                        )
                    PyBuffer_Release(&values)
            finally:
                PyBuffer_Release(&words)
        finally:
            PyBuffer_Release(&rows)
        return out if valid else None


cdef inline bint log_prob(
    Ngrams ngrams, const int* X, const int* y, Py_ssize_t n, double* out
) noexcept nogil:
    """Fill in the logarithms of the probabilities; return whether ids are in range."""
    cdef bint valid = ngrams.look_up(X, y, n, out)
    cdef Py_ssize_t row
    for row in range(n):
        out[row] = log(out[row])
    return valid


def windows_prob(
    Ngrams ngrams, const int[:, ::1] X, const int[::1] y, double[::1] out
):
    """Compute the probability of each next word, from the longest n-gram stored.

    Equivalent to ``backoff_prob(...)``: in a hash table bit for bit, in a quantized
    trie with the values of the codes.

    No twin: look-ups in a quantized trie have ``quantized_prob``, and those in a hash
    table are tested against the twin of ``backoff_prob``.
    """
    check_width(X.shape[1], ngrams.n_context)
    if X.shape[0] > 0:
        with nogil:
            ngrams.look_up(&X[0, 0], &y[0], X.shape[0], &out[0])


def windows_log_prob(
    Ngrams ngrams, const int[:, ::1] X, const int[::1] y, double[::1] out
):
    """Compute the natural logarithm of the probability of each next word.

    Returns False if an id is out of range: then `out` is not to be used.

    Equivalent to ``np.log(windows_prob(...))``.

    No twin: see ``windows_prob``.
    """
    cdef bint valid = True
    check_width(X.shape[1], ngrams.n_context)
    if X.shape[0] > 0:
        with nogil:
            valid = log_prob(ngrams, &X[0, 0], &y[0], X.shape[0], &out[0])
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
