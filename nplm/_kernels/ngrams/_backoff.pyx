"""Look-ups in the trie of a back-off model."""

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._trie cimport Trie, descend, find_child, find_follower


def backoff_prob(
    Trie trie,
    const float[::1] prob,
    const float[::1] bow,
    const int[:, :] X,
    const int[:, :] words,
    int[::1] path,
    double[:, :] out,
):
    """Compute the probabilities of several words after each context.

    The probability is that of the longest n-gram stored, times the back-off weights of
    the longer contexts. `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to ``backoff_distribution(...); out[:] = np.take_along_axis(rows,
    words, axis=1)``.
    """
    cdef Py_ssize_t row, j
    cdef int longest, depth, context, i, word
    cdef double scale
    with nogil:
        for row in range(X.shape[0]):
            longest = descend(trie, X, row, path)
            for j in range(words.shape[1]):
                word = id_below(&words[row, j], trie.n_words)
                depth = longest
                scale = 1
                i = -1
                while depth > 0:
                    context = path[depth]
                    i = find_follower(trie, context, word)
                    if i >= 0:
                        break
                    scale *= bow[context]
                    depth -= 1
                # Every word follows the root: follower w has index w.
                out[row, j] = scale * prob[i if depth > 0 else word]


def backoff_distribution(
    Trie trie,
    const float[::1] prob,
    const float[::1] bow,
    const int[:, :] X,
    int[::1] path,
    double[:, ::1] out,
):
    """Compute the probability of every word after each context, a row of `out` each.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to, for each row, ``p = prob[:n_words].copy()`` and then for each
    context c of the row in the trie, shortest first, ``p *= bow[c];
    p[words[start[c]:start[c + 1]]] = prob[start[c]:start[c + 1]]``.
    """
    cdef Py_ssize_t row
    cdef int depth, level, context, i, first, last
    cdef unsigned int word, n_words = <unsigned int> out.shape[1]
    cdef double scale
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            # Shortest context first, so that longer ones overwrite. The weights of the
            # longer contexts are multiplied once instead of at every level.
            for level in range(depth + 1):
                scale = 1
                for i in range(depth, level, -1):
                    scale *= bow[path[i]]
                context = path[level]
                # The offsets of a damaged file may be out of range.
                first = max(0, trie.start[context])
                last = min(<int> trie.words.shape[0], trie.start[context + 1])
                for i in range(first, last):
                    word = <unsigned int> trie.words[i]
                    if word < n_words:
                        out[row, word] = scale * prob[i]


def backoff_masses(
    Trie trie,
    const float[::1] prob,
    const float[::1] bow,
    const int[::1] parent,
    const unsigned char[::1] chosen,
    int first,
    int last,
    double[::1] mass,
):
    """Compute the total probability of the chosen words after a range of contexts.

    Chosen words that follow a context have stored probabilities; the others back off
    to the shorter context c':

        mass(c) = sum of P(w | c) over the chosen w that follow c
                  + bow(c) (mass(c') - sum of P(w | c') over the same w).

    Fills ``mass[first:last]``; the entries before `first` must be filled already.

    Equivalent to ``mass[first:last] = rows[:, chosen].sum(axis=1)``, where `rows` is
    the output of ``backoff_distribution`` for these contexts.
    """
    cdef int c, i, j, shorter, word
    cdef double own, below, scale
    with nogil:
        for c in range(first, last):
            own = below = 0
            for i in range(trie.start[c], trie.start[c + 1]):
                word = trie.words[i]
                if not chosen[word]:
                    continue
                own += prob[i]
                # P(w | c'): go up the trie; every word follows the root.
                scale = 1
                j = word
                shorter = parent[c]
                while shorter > 0:
                    j = find_follower(trie, shorter, word)
                    if j >= 0:
                        break
                    scale *= bow[shorter]
                    shorter = parent[shorter]
                    j = word
                below += scale * prob[j]
            # Rounding may make the rest negative if all chosen words follow.
            mass[c] = own if c == 0 else own + bow[c] * max(0.0, mass[parent[c]] - below)


def longest_contexts(Trie trie, const int[:, :] X, int[::1] path, int[::1] out):
    """Find the number of the longest context of the trie that ends each row.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to ``find_contexts`` of fewer and fewer columns, until one is found.
    """
    cdef Py_ssize_t row
    cdef int depth
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            out[row] = path[depth]


def weights_in_turn(
    const int[::1] words,
    int[::1] next_context,
    const float[::1] bow,
    int first,
    float[::1] weight,
):
    """Fill the back-off weights of n-grams (c, w): those of the contexts c w.

    Requires that each n-gram whose word has an entry in `next_context` is a context,
    and that each context of that length is such an n-gram. The contexts of one nearest
    word w are then in the order of the n-grams that end in w. ``next_context[w]`` is
    the next of them, negative if there is none, and is advanced. `bow` has the weights
    from context `first` on. An n-gram whose context is not in that range keeps its
    entry of `weight`.

    Equivalent to, for each i in turn, ``made = next_context[words[i]]++``,
    ``weight[i] = bow[made - first]``.
    """
    cdef Py_ssize_t i
    cdef int made
    with nogil:
        for i in range(words.shape[0]):
            made = next_context[words[i]]
            if made < 0:
                continue
            next_context[words[i]] = made + 1
            if first <= made < first + bow.shape[0]:
                weight[i] = bow[made - first]


def find_contexts(Trie trie, const int[:, :] X, int[::1] path, int[::1] out):
    """Find the number of each whole context, or -1.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to looking up each row of X in a dictionary of contexts.
    """
    cdef Py_ssize_t row
    cdef int depth
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            out[row] = path[depth] if depth == X.shape[1] else -1


def find_ngrams(Trie trie, const int[::1] contexts, const int[:] y, int[::1] out):
    """Find the index of each n-gram ``(contexts[i], y[i])`` in `words`, or -1.

    Equivalent to ``out[i] = -1`` if ``contexts[i] < 0`` or the word is not in
    ``words[start[c]:start[c + 1]]``, else its index in `words`.
    """
    cdef Py_ssize_t i
    cdef int c
    with nogil:
        for i in range(contexts.shape[0]):
            c = contexts[i]
            out[i] = -1 if c < 0 else find_follower(trie, c, y[i])


cdef int context_after(
    Trie trie, const int[::1] parent, int context, int word, int[::1] path
) noexcept nogil:
    """Return the number of the context of the words of `context` and `word`, or -1."""
    cdef int n = 0
    cdef int found = 1 + word
    while context > 0:
        path[n] = context  # longest first
        n += 1
        context = parent[context]
    while n > 0 and found >= 0:
        n -= 1
        found = find_child(trie, found, trie.context_word[path[n]])
    return found


def contexts_made(
    Trie trie,
    const int[::1] parent,
    int first,
    int last,
    int[::1] slot,
    int[::1] path,
    int[::1] made,
):
    """Find the number of the context c w for each n-gram (c, w), or -1.

    Fills `made` for the n-grams of the contexts ``first <= c < last``; the entries of
    the contexts before `first` must be filled already. `made` has an entry for each
    n-gram below the highest order. `slot` is scratch of ``n_words`` entries, `path` of
    one entry per order.

    Equivalent to looking up ``(*words_of(c), w)`` from the root for each n-gram.
    """
    cdef int above = -1
    cdef int begin = 0
    cdef int end = 0
    cdef int context, i, word, below
    with nogil:
        for context in range(first, last):
            if context == 0:
                for i in range(trie.start[1]):
                    made[i] = 1 + trie.words[i]
                continue
            if parent[context] != above:
                above = parent[context]
                begin = trie.start[above]
                end = trie.start[above + 1]
                for i in range(begin, end):
                    slot[trie.words[i]] = i
            for i in range(trie.start[context], trie.start[context + 1]):
                # c w is c' w with one more older word. A pruned model may lack the
                # n-gram c' w: then the slot holds another n-gram, and the context is
                # looked up from the root.
                word = trie.words[i]
                below = slot[word]
                if begin <= below < end and trie.words[below] == word:
                    below = made[below]
                else:
                    below = context_after(trie, parent, above, word, path)
                made[i] = -1 if below < 0 else find_child(
                    trie, below, trie.context_word[context]
                )
