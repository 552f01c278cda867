"""Lines of n-grams: written from a tree, read into columns of word ids."""

from libc.math cimport fabs, isfinite, log10
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

from nplm._kernels._tree cimport find

# What stops `parse_ngrams` before the end of its lines.
GOOD, BAD_NUMBER, NOT_FINITE, UNKNOWN_WORD, BAD_LENGTH, BAD_WEIGHT = range(6)

# A number and its tab take less: sign, digits, point, 7 decimals.
NUMBER_BYTES = 32

cdef enum:
    DECIMALS = 10000000
    MAX_CONTEXT = 64


# -- from an n-gram to the context it makes ------------------------------------


cdef int context_after(
    const int[::1] child_start, const int[::1] context_word, const int[::1] parent,
    int context, int word,
) noexcept nogil:
    """Number of the context made of the words of `context` and then `word`, or -1."""
    cdef int before[MAX_CONTEXT]
    cdef int n = 0
    cdef int found = 1 + word
    while context > 0:
        before[n] = context_word[context]  # the oldest first
        n += 1
        context = parent[context]
    while n > 0 and found >= 0:
        n -= 1
        found = find(
            context_word, child_start[found], child_start[found + 1], before[n]
        )
    return found


def contexts_made(
    const int[::1] level_start,
    const int[::1] child_start,
    const int[::1] context_word,
    const int[::1] parent,
    const int[::1] start,
    const int[::1] words,
    int[::1] slot,
    int[::1] made,
):
    """For each n-gram (c, w), the number of the context c w, or -1.

    `made` has an entry for each n-gram of less than the highest order; `slot` is
    scratch of ``n_words`` entries.

    Equivalent to looking up ``(*words_of(c), w)`` from the root for each n-gram.
    """
    cdef int level, above, context, first, last, i, below
    with nogil:
        for i in range(start[1] if made.shape[0] > 0 else 0):
            made[i] = 1 + words[i]
        for level in range(1, <int> level_start.shape[0] - 2):
            for above in range(level_start[level - 1], level_start[level]):
                first = start[above]
                last = start[above + 1]
                for i in range(first, last):
                    slot[words[i]] = i
                for context in range(child_start[above], child_start[above + 1]):
                    for i in range(start[context], start[context + 1]):
                        # c w is c' w and one older word. A pruned model may lack
                        # c' w among its n-grams: then what is in the slot is not
                        # its, and it is looked up from the root.
                        below = slot[words[i]]
                        if first <= below < last and words[below] == words[i]:
                            below = made[below]
                        else:
                            below = context_after(
                                child_start, context_word, parent, above, words[i]
                            )
                        made[i] = -1 if below < 0 else find(
                            context_word, child_start[below], child_start[below + 1],
                            context_word[context],
                        )


# -- writing -------------------------------------------------------------------


cdef inline Py_ssize_t put_integer(char* out, uint64_t value) noexcept nogil:
    cdef char digits[20]
    cdef int n = 0
    cdef Py_ssize_t at = 0
    while True:
        digits[n] = <char> (48 + value % 10)
        value = value // 10
        n += 1
        if value == 0:
            break
    while n > 0:
        n -= 1
        out[at] = digits[n]
        at += 1
    return at


cdef inline Py_ssize_t put_log10(char* out, double probability) noexcept nogil:
    """Write log10 with seven decimals; 0 as -99, the toolkits' log of zero."""
    cdef double value = log10(probability) if probability > 0 else -99.0
    cdef uint64_t scaled = <uint64_t> (fabs(value) * DECIMALS + 0.5)
    cdef uint64_t decimals = scaled % DECIMALS
    cdef uint64_t unit = DECIMALS // 10
    cdef Py_ssize_t at = 0
    if value < 0 and scaled > 0:
        out[at] = 45  # -
        at += 1
    at += put_integer(out + at, scaled // DECIMALS)
    if decimals > 0:
        out[at] = 46  # .
        at += 1
        while decimals > 0:
            out[at] = <char> (48 + decimals // unit)
            decimals = decimals % unit
            unit = unit // 10
            at += 1
    return at


cdef inline Py_ssize_t put_word(
    char* out, const char* text, const int64_t* at, int word
) noexcept nogil:
    cdef Py_ssize_t n = at[word + 1] - at[word]
    memcpy(out, text + at[word], n)
    return n


def format_ngrams(
    int first,
    int last,
    int n_context_words,
    Py_ssize_t longest,
    const int[::1] parent,
    const int[::1] context_word,
    const int[::1] start,
    const int[::1] words,
    const float[::1] prob,
    const float[::1] bow,
    const int[::1] made,
    const unsigned char[::1] text,
    const int64_t[::1] word_start,
    const unsigned char[::1] boundary_text,
    int boundary,
    unsigned char[::1] out,
):
    """Write the ARPA lines of the followers of contexts ``first <= c < last``.

    Stops before a context whose lines, of at most `longest` bytes each, might not
    fit in `out`; returns the next context and the bytes written. The word of id w is
    ``text[word_start[w]:word_start[w + 1]]``; a context that begins with the word
    `boundary` (-1: none) begins with `boundary_text` instead.
    """
    cdef int context = first
    cdef int c, i, k
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t capacity = out.shape[0]
    cdef bint has_weights = made.shape[0] > 0
    cdef char* line = <char*> &out[0]
    cdef const char* names = <const char*> &text[0]
    with nogil:
        while context < last:
            if at + (start[context + 1] - start[context]) * longest > capacity:
                break
            for i in range(start[context], start[context + 1]):
                at += put_log10(line + at, prob[i])
                line[at] = 9  # tab
                at += 1
                c = context
                for k in range(n_context_words):
                    if context_word[c] == boundary:
                        memcpy(line + at, &boundary_text[0], boundary_text.shape[0])
                        at += boundary_text.shape[0]
                    else:
                        at += put_word(line + at, names, &word_start[0], context_word[c])
                    line[at] = 32  # space
                    at += 1
                    c = parent[c]
                at += put_word(line + at, names, &word_start[0], words[i])
                if has_weights and made[i] >= 0 and not (
                    boundary >= 0 and words[i] == boundary
                ):
                    line[at] = 9
                    at += 1
                    at += put_log10(line + at, bow[made[i]])
                line[at] = 10  # newline
                at += 1
            context += 1
    return context, at
