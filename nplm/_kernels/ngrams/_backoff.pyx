"""Look-ups in a back-off model: one word of many contexts, or all words of each."""

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
    """Probability of some words after each context: the longest that knows decides.

    The weights of the longer contexts multiply it. `path` is scratch of
    ``X.shape[1] + 1`` entries.

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
                # The root knows every word: the follower w is at index w.
                out[row, j] = scale * prob[i if depth > 0 else word]


def backoff_distribution(
    Trie trie,
    const float[::1] prob,
    const float[::1] bow,
    const int[:, :] X,
    int[::1] path,
    double[:, ::1] out,
):
    """Probability of every word after each context, a row of `out` each.

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
            # Shortest context first, so that longer ones overwrite; the weights
            # still to come multiply once instead of at every level.
            for level in range(depth + 1):
                scale = 1
                for i in range(depth, level, -1):
                    scale *= bow[path[i]]
                context = path[level]
                # What the arrays of a damaged file may say is no place of theirs.
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
    """Probability of all chosen words together, after contexts `first` to `last`.

    Those that follow a context have probabilities of their own, and the others have
    the shorter context's times the weight,

        mass(c) = sum of P(w | c) over the chosen w that follow c
                  + bow(c) (mass(c') - sum of P(w | c') over the same w).

    `mass` has an entry for each context; those before `first` are filled already.

    Equivalent to ``mass[first:last] = rows[:, chosen].sum(axis=1)``, where `rows` is
    what ``backoff_distribution`` gives of these contexts.
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
                # P(w | c'), up the trie to the root, which knows every word.
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
            # Rounding may leave less than nothing where all chosen words follow.
            mass[c] = own if c == 0 else own + bow[c] * max(0.0, mass[parent[c]] - below)


def longest_contexts(Trie trie, const int[:, :] X, int[::1] path, int[::1] out):
    """Number of the longest context of the trie that ends each row.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to ``find_contexts`` of ever fewer columns, until one is there.
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
    """The weights of the contexts c w that n-grams (c, w) make, in their order.

    Of a trie in which each n-gram whose word has an entry in `next_context` makes a
    context, and each context of their length is made so: those of one nearest word w
    then stand in the order of the n-grams that end in w. ``next_context[w]``, negative
    where none is made, is the next of them, and goes on. `bow` has the weights from the
    context `first` on; ``weight`` of an n-gram whose context is not there stays as it
    is.

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
    """Number of each whole context, or -1.

    `path` is scratch of ``X.shape[1] + 1`` entries.

    Equivalent to looking each row of X up in a dictionary of contexts.
    """
    cdef Py_ssize_t row
    cdef int depth
    with nogil:
        for row in range(X.shape[0]):
            depth = descend(trie, X, row, path)
            out[row] = path[depth] if depth == X.shape[1] else -1


def find_ngrams(Trie trie, const int[::1] contexts, const int[:] y, int[::1] out):
    """Index of each n-gram ``(contexts[i], y[i])`` in `words`, or -1.

    Equivalent to ``out[i] = -1`` where ``contexts[i] < 0`` or the word is not
    among ``words[start[c]:start[c + 1]]``, else its place there.
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
    """Number of the context made of the words of `context` and then `word`, or -1."""
    cdef int n = 0
    cdef int found = 1 + word
    while context > 0:
        path[n] = context  # the longest first
        n += 1
        context = parent[context]
    while n > 0 and found >= 0:
        n -= 1
        found = find_child(trie, found, trie.context_word[path[n]])
    return found


def contexts_made(
    Trie trie,
    const int[::1] parent,
    int[::1] slot,
    int[::1] path,
    int[::1] made,
):
    """For each n-gram (c, w), the number of the context c w, or -1.

    `made` has an entry for each n-gram of less than the highest order; `slot` and
    `path` are scratch of ``n_words`` entries and of one for each order.

    Equivalent to looking up ``(*words_of(c), w)`` from the root for each n-gram.
    """
    cdef int level, above, context, first, last, i, word, below
    with nogil:
        for i in range(trie.start[1] if made.shape[0] > 0 else 0):
            made[i] = 1 + trie.words[i]
        for level in range(1, <int> trie.level_start.shape[0] - 2):
            for above in range(trie.level_start[level - 1], trie.level_start[level]):
                first = trie.start[above]
                last = trie.start[above + 1]
                for i in range(first, last):
                    slot[trie.words[i]] = i
                for context in range(
                    trie.child_start[above], trie.child_start[above + 1]
                ):
                    for i in range(trie.start[context], trie.start[context + 1]):
                        # c w is c' w and one older word. A pruned model may lack
                        # c' w among its n-grams: then what is in the slot is not
                        # its, and it is looked up from the root.
                        word = trie.words[i]
                        below = slot[word]
                        if first <= below < last and trie.words[below] == word:
                            below = made[below]
                        else:
                            below = context_after(trie, parent, above, word, path)
                        made[i] = -1 if below < 0 else find_child(
                            trie, below, trie.context_word[context]
                        )
