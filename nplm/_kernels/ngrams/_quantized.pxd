"""Records of a quantized, bit-packed trie of n-grams.

See ``nplm.models.ngrams.trie.quantized_trie``.
"""

from libc.stdint cimport int64_t, uint64_t

from nplm._kernels.ngrams._bits cimport (
    NPLM_PREFETCH, SAMPLE, Offsets, read_bits, read_offsets,
)
from nplm._kernels.ngrams._chains cimport MAX_WORDS
from nplm._kernels.ngrams._trie cimport Ngrams


cdef enum:
    # Ranges of this many records, about two cache lines, are searched one by one.
    FEW = 16


cdef struct Level:
    # The n-grams of one length, sorted by their words, newest first. A record has a
    # word, the codes of a probability and a weight, and the low bits of the offset of
    # the extensions by one older word; `offsets` encodes its high bits.
    const unsigned char* records
    Offsets offsets
    const float* prob
    const float* bow
    int64_t n  # number of records
    int width  # bits of a record, and of its parts
    int word
    int code
    int low


cdef class QuantizedTrie(Ngrams):
    cdef const int64_t[::1] start
    cdef object levels  # owns the memory of the pointers
    cdef Level level[MAX_WORDS]


cdef inline int word_at(const Level* level, int64_t i) noexcept nogil:
    return <int> read_bits(level.records, i * level.width, level.word)


cdef inline int64_t length_of(int64_t first, int64_t last) noexcept nogil:
    """Return the length of a range; 0 if it is none, as it may be in a damaged file."""
    # A difference of other numbers may overflow.
    return last - first if 0 <= first < last else 0


cdef inline void children(
    const Level* level, int64_t i, int64_t* first, int64_t* last
) noexcept nogil:
    """Find the extensions of n-gram i by one older word.

    The range is empty if a damaged file has too few set bits. Its numbers may be
    negative, which must not be shifted.
    """
    cdef int64_t low_at = i * level.width + level.width - level.low
    if not read_offsets(&level.offsets, i, first, last):
        first[0] = last[0] = 0
        return
    first[0] = <int64_t> (
        <uint64_t> first[0] << level.low | read_bits(level.records, low_at, level.low)
    )
    low_at += level.width
    last[0] = <int64_t> (
        <uint64_t> last[0] << level.low | read_bits(level.records, low_at, level.low)
    )


cdef inline void expect_sample(const Level* level, int64_t i) noexcept nogil:
    """Prefetch what `expect_children` reads; it is near for n-grams that are."""
    NPLM_PREFETCH(level.offsets.sample + i // SAMPLE)


cdef inline void expect_children(const Level* level, int64_t i) noexcept nogil:
    """Prefetch what `children` reads of n-gram i, or of the next few."""
    NPLM_PREFETCH(level.offsets.high + (level.offsets.sample[i // SAMPLE] >> 6))


cdef inline int64_t n_searched(int64_t n, int word) noexcept nogil:
    """Return how many of `n` records from the first on may have a word.

    Their words are distinct, and sorted: no more than `word` are less than it. Frequent
    words have low ids.
    """
    return n if n <= word else <int64_t> word + 1


cdef inline int64_t find_record(
    const Level* level, int64_t first, int64_t n, int word
) noexcept nogil:
    """Return the last of the sorted records whose word is at most `word`.

    The first one if there is none; `n` is positive.
    """
    cdef int64_t half
    while n > 1:
        half = n >> 1
        first = first + half if word_at(level, first + half) <= word else first
        n -= half
    return first


cdef inline float prob_at(const Level* level, int64_t i) noexcept nogil:
    return level.prob[read_bits(
        level.records, i * level.width + level.word, level.code
    )]


cdef inline float bow_at(const Level* level, int64_t i) noexcept nogil:
    return level.bow[read_bits(
        level.records, i * level.width + level.word + level.code, level.code
    )]
