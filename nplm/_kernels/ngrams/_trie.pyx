"""Classes that kernels take: n-grams in which windows are looked up, and a trie."""

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport log

from nplm._kernels.ngrams._chains cimport check_width

cnp.import_array()

cdef enum:
    # Windows that are looked up before Python handles an interrupt.
    BLOCK_WINDOWS = 1 << 15


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
        self, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n, double* out,
        int* orders,
    ) noexcept nogil:
        """Compute the probabilities of `n` next words; return whether ids are in range.

        The rows of X are contexts of ``n_context`` words, `stride` ids apart. Ids that
        are out of range are replaced. `orders`, unless it is NULL, gets the length of
        the longest n-gram found of each.
        """


cdef inline bint log_prob(
    Ngrams ngrams, const int* X, Py_ssize_t stride, const int* y, Py_ssize_t n,
    double* out,
) noexcept nogil:
    """Fill in the logarithms of the probabilities; return whether ids are in range."""
    cdef bint valid = ngrams.look_up(X, stride, y, n, out, NULL)
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
            ngrams.look_up(
                &X[0, 0], X.shape[1], &y[0], X.shape[0], &out[0], NULL
            )


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
            valid = log_prob(
                ngrams, &X[0, 0], X.shape[1], &y[0], X.shape[0], &out[0]
            )
    return bool(valid)


def quick_log_prob(dict fitted not None, str name not None, X, y):
    """Return the logarithms of probabilities of next words, of arrays as users have them.

    Parameters
    ----------
    fitted : dict
        Attributes of a model.
    name : str
        The one whose ``kernel`` is `Ngrams`.
    X : ndarray of int32, shape (n, n_context)
        Contexts; a view of a text, too.
    y : ndarray of int32, shape (n,)
        Next words.

    Returns
    -------
    log_prob : ndarray of float64, shape (n,), or None
        None if the arguments are others, or an id is out of range.

    Notes
    -----
    A sentence is looked up in less time than Cython takes for the memoryviews of three
    arrays, or than Python takes for these comparisons.

    Equivalent to ``np.log(windows_prob(...))``, bit for bit `windows_log_prob`.

    No twin: see ``windows_prob``.
    """
    cdef cnp.npy_intp n, first = 0
    cdef Py_ssize_t stride, most
    cdef const int* contexts
    cdef const int* words
    cdef double* values
    cdef Ngrams ngrams
    cdef bint valid = True
    index = fitted.get(name)
    if index is None or not is_array_of_ids(X, 2) or not is_array_of_ids(y, 1):
        return None
    ngrams, n = index.kernel, cnp.PyArray_DIM(y, 0)
    stride = cnp.PyArray_STRIDE(X, 0)
    if not (
        n > 0
        and cnp.PyArray_DIM(X, 0) == n
        and cnp.PyArray_DIM(X, 1) == ngrams.n_context
        and cnp.PyArray_STRIDE(X, 1) == cnp.PyArray_STRIDE(y, 0) == sizeof(int)
        and stride % <Py_ssize_t> sizeof(int) == 0
        and fitted["n_features_in_"] == ngrams.n_context
        and fitted["n_words_"] == ngrams.prob.shape[0]
        and "feature_names_in_" not in fitted
    ):
        return None
    stride //= <Py_ssize_t> sizeof(int)
    out = cnp.PyArray_EMPTY(1, &n, cnp.NPY_FLOAT64, False)
    contexts, words = <const int*> cnp.PyArray_DATA(X), <const int*> cnp.PyArray_DATA(y)
    values = <double*> cnp.PyArray_DATA(out)
    while valid and first < n:
        most = min(n - first, <Py_ssize_t> BLOCK_WINDOWS)
        with nogil:
            valid = log_prob(
                ngrams, contexts + first * stride, stride, words + first, most,
                values + first,
            )
        first += most
        if first < n:
            PyErr_CheckSignals()
    return out if valid else None


cdef inline bint is_array_of_ids(object ids, int n_dimensions) noexcept:
    """Whether an object is an array of int32 in memory as processors have them."""
    return (
        cnp.PyArray_CheckExact(ids)
        and cnp.PyArray_TYPE(ids) == cnp.NPY_INT
        and cnp.PyArray_ISBEHAVED_RO(ids)
        and cnp.PyArray_NDIM(ids) == n_dimensions
    )


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
