"""Write the lines of ARPA files and count files from a trie."""

from libc.math cimport fabs, log10
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from nplm._kernels.files._digits cimport put_integer
from nplm._kernels.ngrams._trie cimport Trie
from nplm._kernels.ngrams.decoding._word_ids cimport WordIds

# Upper bound for a number and its tab: sign, digits, point, 7 decimals.
NUMBER_BYTES = 32

cdef enum:
    DECIMALS = 10000000


cdef inline Py_ssize_t put_log10(char* out, double probability) noexcept nogil:
    """Write log10 with seven decimals; that of 0 as -99, like other toolkits."""
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


cdef class Spelling:
    """The n-grams of a trie, with the words to write them as text.

    Parameters
    ----------
    trie : Trie
        The n-grams.
    parent : ndarray of int32, shape (n_contexts,)
        The parent of each context, which is one word shorter.
    words : WordIds
        The word of each id.
    boundary_text : ndarray of uint8
        The text of the boundary as the oldest word of a context.
    boundary : int
        Id of the boundary, -1 if there is none.
    """

    cdef Trie trie
    cdef const int[::1] parent
    cdef WordIds words
    cdef const unsigned char[::1] boundary_text
    cdef int boundary

    def __cinit__(
        self,
        Trie trie not None,
        const int[::1] parent,
        WordIds words not None,
        const unsigned char[::1] boundary_text,
        int boundary,
    ):
        self.trie = trie
        self.parent = parent
        self.words = words
        self.boundary_text = boundary_text
        self.boundary = boundary


cdef inline Py_ssize_t put_word(char* out, WordIds words, int word) noexcept nogil:
    cdef int64_t begin = words.start[word]
    cdef Py_ssize_t n = words.start[word + 1] - begin - 1
    memcpy(out, <const char*> &words.text[0] + begin, n)
    return n


cdef inline Py_ssize_t put_ngram(
    char* out, Spelling spelling, int context, int n_context_words, int word
) noexcept nogil:
    cdef Py_ssize_t at = 0
    cdef int _, oldest
    for _ in range(n_context_words):
        oldest = spelling.trie.context_word[context]
        if oldest == spelling.boundary:
            memcpy(out + at, &spelling.boundary_text[0], spelling.boundary_text.shape[0])
            at += spelling.boundary_text.shape[0]
        else:
            at += put_word(out + at, spelling.words, oldest)
        out[at] = 32  # space
        at += 1
        context = spelling.parent[context]
    return at + put_word(out + at, spelling.words, word)


def format_ngrams(
    Spelling spelling,
    const float[::1] prob,
    const float[::1] weight,
    int context,
    int first,
    int last,
    int n_context_words,
    Py_ssize_t longest,
    unsigned char[::1] out,
):
    """Write the ARPA lines of the n-grams ``first <= i < last``, all of one order.

    The n-grams follow contexts of `n_context_words` words, beginning with `context`.
    `prob` and `weight` begin with n-gram `first`. The weight of an n-gram is its
    back-off weight as a context, NaN if it is not a context; `weight` is empty if no
    n-gram is. Lines have at most `longest` bytes; stops when the next one might not fit
    in `out`. Returns the context and the n-gram to continue from, and the number of
    bytes written.

    No twin: the tests read the lines with ``_ngram_parse``, with KenLM, and as text.
    """
    cdef Trie trie = spelling.trie
    cdef int i = first
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t capacity = out.shape[0]
    cdef bint has_weights = weight.shape[0] > 0
    cdef char* line = <char*> &out[0]
    with nogil:
        while i < last and at + longest <= capacity:
            while trie.start[context + 1] <= i:
                context += 1
            at += put_log10(line + at, prob[i - first])
            line[at] = 9  # tab
            at += 1
            at += put_ngram(
                line + at, spelling, context, n_context_words, trie.words[i]
            )
            if has_weights and weight[i - first] == weight[i - first]:
                line[at] = 9
                at += 1
                at += put_log10(line + at, weight[i - first])
            line[at] = 10  # newline
            at += 1
            i += 1
    return context, i, at


def format_counts(
    Spelling spelling,
    const int64_t[::1] counts,
    int context,
    int first,
    int last,
    int n_context_words,
    Py_ssize_t longest,
    unsigned char[::1] out,
):
    """Write the lines of a count file for the n-grams of one order that occur.

    See ``format_ngrams``; `counts` begins with n-gram `first`.

    No twin: see ``format_ngrams``.
    """
    cdef Trie trie = spelling.trie
    cdef int i = first
    cdef Py_ssize_t at = 0
    cdef char* line = <char*> &out[0]
    with nogil:
        while i < last and at + longest <= out.shape[0]:
            while trie.start[context + 1] <= i:
                context += 1
            if counts[i - first] > 0:
                at += put_ngram(
                    line + at, spelling, context, n_context_words, trie.words[i]
                )
                line[at] = 9
                at += 1
                at += put_integer(line + at, counts[i - first])
                line[at] = 10
                at += 1
            i += 1
    return context, i, at
