"""Kneser-Ney probabilities and back-off weights, in one pass over the trie."""

from libc.stdint cimport int64_t

from nplm._kernels.ngrams._trie cimport Trie


cdef inline int discount_class(int64_t count) noexcept nogil:
    """Return the index of a discount: 0, 1, 2 for counts of 1, 2, 3 or more."""
    return <int> (count - 1) if count < 3 else 2


cdef void estimate(
    Trie trie,
    int context,
    const int64_t[::1] counts,
    const double[::1] discounts,
    const int64_t[::1] tested,
    int64_t min_count,
    bint interpolate,
    bint spread,
    int n_possible,
    const double[::1] lower,
    double[::1] prob,
    double[::1] bow,
) noexcept nogil:
    """Estimate the probabilities of the followers of a context, and its weight.

    ``lower[w]`` is the probability of w one order below.
    """
    cdef int begin = trie.start[context]
    cdef int end = trie.start[context + 1]
    cdef int i
    cdef int n_seen = 0
    cdef int n_kept = 0
    cdef int64_t total = 0
    cdef double discounted = 0
    cdef double sum_kept = 0
    cdef double sum_lower = 0
    cdef double gamma, p
    for i in range(begin, end):
        if counts[i] > 0:
            n_seen += 1
            total += counts[i]
            if spread and tested[i] < min_count:
                discounted += counts[i]
            else:
                discounted += discounts[discount_class(counts[i])]
    if total == 0:
        bow[context] = 1
        for i in range(begin, end):
            prob[i] = lower[trie.words[i]]
        return
    # The discounted mass, (D1 N1 + D2 N2 + D3+ N3+) / total: equation (27) of Chen and
    # Goodman (1999).
    gamma = discounted / total
    for i in range(begin, end):
        if counts[i] > 0 and tested[i] >= min_count:
            p = (counts[i] - discounts[discount_class(counts[i])]) / total
            if interpolate:
                p += gamma * lower[trie.words[i]]
            prob[i] = p
            n_kept += 1
            sum_kept += p
            sum_lower += lower[trie.words[i]]
    if n_kept == n_possible:
        # Every word follows, so there is no word to back off to: distribute the
        # discounted mass over all words, as interpolation does.
        bow[context] = gamma
        if not interpolate:
            for i in range(begin, end):
                prob[i] += gamma * lower[trie.words[i]]
        return
    if interpolate and (spread or n_kept == n_seen):
        bow[context] = gamma
    else:
        # The mass of dropped n-grams goes to the lower order too.
        bow[context] = (1 - sum_kept) / (1 - sum_lower)
    for i in range(begin, end):
        if counts[i] == 0 or tested[i] < min_count:
            prob[i] = bow[context] * lower[trie.words[i]]


def kneser_ney(
    Trie trie,
    int level,
    int parent,
    int first,
    int last,
    const int64_t[::1] counts,
    const double[:, ::1] discounts,
    const int64_t[::1] tested,
    const int64_t[::1] min_counts,
    bint interpolate,
    bint spread,
    int impossible,
    double[::1] lower,
    double[::1] prob,
    double[::1] bow,
):
    """Fill the probabilities of n-grams and the weights of their contexts.

    Processes the contexts ``first <= c < last``, all of `level`. `parent` is the parent
    of the first one. All parents must be filled already; the root, the only context of
    level 0, has none.

    `counts` are the modified counts a(c, w) (``continuation_counts``). The order below
    the unigrams is the uniform distribution 1 / ``n_words``, without the word
    `impossible` (-1 for none), which no n-gram has. A follower w of a context
    c whose count in `tested` is below the minimum of its level gets its back-off
    probability, ``bow[c] * lower[w]``. Its mass goes to the words that are not kept,
    or with `spread` to all words: it is interpolated as the discounted mass is. `lower`
    is scratch of ``n_words`` entries.

    Equivalent to, for a context of level k with all its followers kept,
    ``D = discounts[k, np.minimum(a, 3) - 1]; bow = D.sum() / a.sum();
    prob = (a - D) / a.sum() + bow * lower[w]``.
    """
    cdef int context = first
    cdef int i
    cdef int n_possible = <int> lower.shape[0] - (impossible >= 0)
    with nogil:
        if level == 0:
            lower[:] = 1.0 / n_possible
            if impossible >= 0:
                lower[impossible] = 0
        while context < last:
            # The followers of a child follow its parent too, so the other entries of
            # `lower` are not read.
            if level > 0:
                for i in range(trie.start[parent], trie.start[parent + 1]):
                    lower[trie.words[i]] = prob[i]
            while context < last and (
                level == 0 or context < trie.child_start[parent + 1]
            ):
                estimate(
                    trie, context, counts, discounts[level], tested,
                    min_counts[level], interpolate, spread, n_possible, lower, prob, bow,
                )
                context += 1
            parent += 1
