"""Relative frequencies of all orders, separate or mixed (section 4.1)."""

from libc.stdint cimport int64_t

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._trie cimport Trie, descend, find_follower


def relative_frequencies(
    Trie trie,
    const int64_t[::1] counts,
    const int64_t[::1] totals,
    const int[:, :] X,
    const int[:] y,
    int[::1] path,
    double[:, ::1] out,
):
    """Fill ``out[i, k]`` with p_k(y[i]), the members of the paper's mixture.

    p_0 is uniform. p_k is the relative frequency after the nearest k - 1 words, or
    p_{k-1} if these were never seen as a context. `path` is scratch of
    ``X.shape[1] + 1`` entries.

    Equivalent to, for a row and each of its contexts c seen,
    ``out[i, k] = counts[c, y] / totals[c]``.
    """
    cdef Py_ssize_t row
    cdef int depth, level, context, i, word
    cdef double p
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            out[row, 0] = 1.0 / trie.start[1]
            word = id_below(&y[row], trie.n_words)
            p = <double> counts[word] / totals[0]
            out[row, 1] = p
            for level in range(1, <int> X.shape[1] + 1):
                if level <= depth and totals[path[level]] > 0:
                    context = path[level]
                    i = find_follower(trie, context, word)
                    p = <double> counts[i] / totals[context] if i >= 0 else 0.0
                out[row, level + 1] = p


def context_frequencies(
    Trie trie,
    const int64_t[::1] totals,
    const int[:, :] X,
    int[::1] path,
    int64_t[::1] out,
):
    """Fill `out` with the frequency of each whole context, 0 if it was never seen.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to ``out[i] = totals[c]`` for the context c that is row i of X.
    """
    cdef Py_ssize_t row
    cdef int depth
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            out[row] = totals[path[depth]] if depth == X.shape[1] else 0


def mixed_frequencies(
    Trie trie,
    const int64_t[::1] counts,
    const int64_t[::1] totals,
    const double[:, ::1] weights,
    const int[:, :] X,
    int[::1] path,
    double[:, ::1] out,
):
    """Fill each row of `out` with the mixture's probability of every word.

    ``weights[i]`` are the mixture weights of row i. `path` is scratch of
    ``X.shape[1] + 1`` entries.

    Equivalent to ``out[i, w] = weights[i] @ p``, where p is the row of
    ``relative_frequencies`` for the next word w.
    """
    cdef Py_ssize_t row, word
    cdef int depth, level, context, i
    cdef double scale, weight
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            # An order whose context is unseen falls back on the one below, which gets
            # its weight.
            while depth > 0 and totals[path[depth]] == 0:
                depth -= 1
            for word in range(out.shape[1]):
                out[row, word] = weights[row, 0] / out.shape[1]
            for level in range(depth + 1):
                weight = weights[row, level + 1]
                if level == depth:
                    for i in range(depth + 2, <int> weights.shape[1]):
                        weight += weights[row, i]
                context = path[level]
                scale = weight / totals[context]
                for i in range(trie.start[context], trie.start[context + 1]):
                    out[row, trie.words[i]] += scale * counts[i]
