"""What word-by-word scorers share; see ``_ngram_scorers`` for their look-ups."""

from libc.stdint cimport uint64_t

from nplm._kernels.ngrams._chains cimport MAX_WORDS
from nplm._kernels.ngrams.decoding._kenlm cimport Steps
from nplm._kernels.ngrams.decoding._word_ids cimport Ids, WordIds

cdef enum:
    # Words looked up together.
    CHUNK = 32


cdef struct Context:
    # The preceding words that an n-gram can contain, newest first.
    int n_words
    int words[MAX_WORDS]
    uint64_t hashes[MAX_WORDS]
    # The length of the longest of their contexts in the table; bow[k] is the weight of
    # the context of k + 1 words.
    int n_found
    float bow[MAX_WORDS]


cdef struct Chains:
    # For each word: the number of context words and the probability of the longest
    # n-gram that it ends, and the weights of the contexts that it ends, as in
    # `Context`.
    int known[CHUNK + 1]
    float prob[CHUNK + 1]
    int n_found[CHUNK + 1]
    float bow[CHUNK + 1][MAX_WORDS]
    # Hashes of the preceding words, oldest first, and of the words.
    uint64_t hashes[MAX_WORDS + CHUNK + 1]


cdef class State:
    cdef Context context
    cdef int n_telling  # the newest words, on which later probabilities depend


cdef class WordScorer(Steps):
    cdef int n_context, boundary, n_words, unknown
    cdef Ids ids
    cdef WordIds words  # the same, or None if these are others
    # Probability of each word as a unigram, and its weight as a context.
    cdef const float* prob
    cdef const float* bow
    cdef bint closed
    # Whether probabilities and weights are log10, as in files of KenLM.
    cdef bint in_log10
    cdef Context start

    cdef void find_start(self) noexcept

    cdef void look_up(
        self, const Context* context, const int* ids, int n, bint follow,
        Chains* chains,
    ) noexcept nogil

    cdef void prefetch(self, const Context* context, int id) noexcept nogil

    cdef void begin_in(self, Context* context, bint bos) noexcept nogil

    cdef double score_words(
        self, Context* context, const int* ids, int n, double total,
        double* log_prob, int* orders, bint suffixes=*,
    ) noexcept nogil

    cdef State after_text(
        self, State state, object word, double* log_prob, int* order, bint suffixes
    )

    cdef State after_word(
        self, State state, int id, double* log_prob, int* order, bint suffixes
    )

    cdef int score_in_full(
        self, Context* context, const int* ids, int n, list scores, double scale,
        double zero,
    ) except -1

    cdef int next_ids(
        self, WordIds words, const unsigned char* text, Py_ssize_t n, Py_ssize_t* at,
        int* ids,
    ) except -1

    cdef State telling(self, State state)

    cdef int id_of(self, word) except -1


cdef inline float log10_of(
    const Chains* chains, int j, const float* bow, int n_found
) noexcept nogil:
    """Return the log10 of the probability of word j, in KenLM's order of additions."""
    cdef float total = chains.prob[j]
    cdef int k
    for k in range(chains.known[j], n_found):
        total += bow[k]
    return total
