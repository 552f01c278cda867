"""A cache of the words of each context, with weights that fall with their distance.

Both kernels mix two caches and a distribution of single words, `unigram`: the cache of
words has `prior` words of it beside its own, and the cache of the words after the last one
has `bigram_prior` words of the cache of words. A negative `bigram_prior` leaves the second
out. Words of the leading run of `boundary` are not in the cache: they fill the columns
before the start of a text.
"""

from nplm._kernels._ids cimport id_below


cdef Py_ssize_t first_word(
    const int[:, :] X, Py_ssize_t row, int boundary,
) noexcept nogil:
    """Return the column after the leading run of boundaries."""
    cdef Py_ssize_t column = 0
    while column < X.shape[1] and X[row, column] == boundary:
        column += 1
    return column


def cache_prob(
    const int[:, :] X,
    const int[:] y,
    int boundary,
    const double[::1] weights,
    const double[::1] unigram,
    double prior,
    double bigram_prior,
    double[::1] out,
):
    """Fill ``out[i]`` with the probability of ``y[i]`` after row i of X.

    ``weights[j]`` is the weight of column j of X.

    Equivalent to ``out[i] = p[y[i]]`` for the row p that `cache_distribution` gives.
    """
    cdef Py_ssize_t row, i, n = X.shape[1]
    cdef int n_words = <int> unigram.shape[0], word, target, before, last
    cdef double total, hits, bigram_total, bigram_hits, p
    with nogil:
        for row in range(X.shape[0]):
            target = id_below(&y[row], n_words)
            last = id_below(&X[row, n - 1], n_words) if n > 0 else -1
            total = hits = bigram_total = bigram_hits = 0
            i = first_word(X, row, boundary)
            before = id_below(&X[row, i - 1], n_words) if i > 0 else -1
            for i in range(i, n):
                word = id_below(&X[row, i], n_words)
                total += weights[i]
                if word == target:
                    hits += weights[i]
                if before == last:
                    bigram_total += weights[i]
                    if word == target:
                        bigram_hits += weights[i]
                before = word
            p = (hits + prior * unigram[target]) / (total + prior)
            if bigram_prior >= 0:
                p = (bigram_hits + bigram_prior * p) / (bigram_total + bigram_prior)
            out[row] = p


def cache_distribution(
    const int[:, :] X,
    int boundary,
    const double[::1] weights,
    const double[::1] unigram,
    double prior,
    double bigram_prior,
    double[:, ::1] out,
):
    """Fill each row of `out` with the probability of every word after that row of X.

    ``weights[j]`` is the weight of column j of X.

    Equivalent to, with the counts c of words and b of words after the last one,
    ``p = (c + prior * unigram) / (c.sum() + prior)`` and then
    ``out[i] = (b + bigram_prior * p) / (b.sum() + bigram_prior)``.
    """
    cdef Py_ssize_t row, i, start, word, n = X.shape[1]
    cdef int n_words = <int> unigram.shape[0], before, last, found
    cdef double total, bigram_total, share, single, pair
    with nogil:
        for row in range(X.shape[0]):
            last = id_below(&X[row, n - 1], n_words) if n > 0 else -1
            total = bigram_total = 0
            start = first_word(X, row, boundary)
            before = id_below(&X[row, start - 1], n_words) if start > 0 else -1
            for i in range(start, n):
                total += weights[i]
                if before == last:
                    bigram_total += weights[i]
                before = id_below(&X[row, i], n_words)
            share, pair = 1, 0
            if bigram_prior >= 0:
                pair = 1 / (bigram_total + bigram_prior)
                share = bigram_prior * pair
            single = share / (total + prior)
            for word in range(n_words):
                out[row, word] = prior * single * unigram[word]
            before = id_below(&X[row, start - 1], n_words) if start > 0 else -1
            for i in range(start, n):
                found = id_below(&X[row, i], n_words)
                out[row, found] += single * weights[i]
                if before == last:
                    out[row, found] += pair * weights[i]
                before = found
