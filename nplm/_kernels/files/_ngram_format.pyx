"""Lines of n-grams, written from a tree: ARPA files and count files."""

from libc.math cimport fabs, log10
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

# A number and its tab take less: sign, digits, point, 7 decimals.
NUMBER_BYTES = 32

cdef enum:
    DECIMALS = 10000000


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


cdef inline Py_ssize_t put_ngram(
    char* out, int context, int n_context_words, int word, const int[::1] parent,
    const int[::1] context_word, const char* text, const int64_t[::1] word_start,
    const unsigned char[::1] boundary_text, int boundary,
) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef int k
    for k in range(n_context_words):
        if context_word[context] == boundary:
            memcpy(out + at, &boundary_text[0], boundary_text.shape[0])
            at += boundary_text.shape[0]
        else:
            at += put_word(out + at, text, &word_start[0], context_word[context])
        out[at] = 32  # space
        at += 1
        context = parent[context]
    return at + put_word(out + at, text, &word_start[0], word)


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
    cdef int i
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t capacity = out.shape[0]
    cdef bint has_weights = made.shape[0] > 0
    cdef char* line = <char*> &out[0]
    with nogil:
        while context < last:
            if at + (start[context + 1] - start[context]) * longest > capacity:
                break
            for i in range(start[context], start[context + 1]):
                at += put_log10(line + at, prob[i])
                line[at] = 9  # tab
                at += 1
                at += put_ngram(
                    line + at, context, n_context_words, words[i], parent,
                    context_word, <const char*> &text[0], word_start, boundary_text,
                    boundary,
                )
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


def format_counts(
    int first,
    int last,
    int n_context_words,
    Py_ssize_t longest,
    const int[::1] parent,
    const int[::1] context_word,
    const int[::1] start,
    const int[::1] words,
    const int64_t[::1] counts,
    const unsigned char[::1] text,
    const int64_t[::1] word_start,
    const unsigned char[::1] boundary_text,
    int boundary,
    unsigned char[::1] out,
):
    """Write the lines of a count file for the followers of contexts.

    As ``format_ngrams``, n-grams that occur only.
    """
    cdef int context = first
    cdef int i
    cdef Py_ssize_t at = 0
    cdef char* line = <char*> &out[0]
    with nogil:
        while context < last:
            if at + (start[context + 1] - start[context]) * longest > out.shape[0]:
                break
            for i in range(start[context], start[context + 1]):
                if counts[i] == 0:
                    continue
                at += put_ngram(
                    line + at, context, n_context_words, words[i], parent,
                    context_word, <const char*> &text[0], word_start, boundary_text,
                    boundary,
                )
                line[at] = 9
                at += 1
                at += put_integer(line + at, counts[i])
                line[at] = 10
                at += 1
            context += 1
    return context, at
