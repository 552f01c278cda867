"""How ``build_binary`` of KenLM lays out n-grams: hash tables, and sorted records.

See ``nplm.formats.kenlm_files``.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from nplm._kernels.ngrams._bits cimport read_bits

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #define NPLM_SIGN UINT32_C(0x80000000)
    /* Factors of KenLM's hash of n-grams, and of MurmurHash64A. */
    #define NPLM_KEY_FACTOR UINT64_C(8978948897894561157)
    #define NPLM_WORD_FACTOR UINT64_C(17894857484156487943)
    #define NPLM_MURMUR UINT64_C(0xc6a4a7935bd1e995)
    /* The high 64 bits of a product. */
    #if defined(__SIZEOF_INT128__)
    static inline uint64_t nplm_high(uint64_t a, uint64_t b) {
        return (uint64_t) (((unsigned __int128) a * b) >> 64);
    }
    #else
    static inline uint64_t nplm_high(uint64_t a, uint64_t b) {
        const uint64_t al = (uint32_t) a, ah = a >> 32, bl = (uint32_t) b, bh = b >> 32;
        const uint64_t low = al * bl, mid = ah * bl + (low >> 32);
        const uint64_t rest = al * bh + (uint32_t) mid;
        return ah * bh + (mid >> 32) + (rest >> 32);
    }
    #endif
    static inline float nplm_float_of(uint32_t bits) {
        float value;
        memcpy(&value, &bits, 4);
        return value;
    }
    static inline uint32_t nplm_bits_of(float value) {
        uint32_t bits;
        memcpy(&bits, &value, 4);
        return bits;
    }
    """
    const uint32_t SIGN "NPLM_SIGN"
    # A weight with these bits is of an n-gram that begins no longer one.
    const uint32_t NO_EXTENSION "NPLM_SIGN"
    const uint64_t KEY_FACTOR "NPLM_KEY_FACTOR"
    const uint64_t WORD_FACTOR "NPLM_WORD_FACTOR"
    const uint64_t MURMUR "NPLM_MURMUR"
    uint64_t high_product "nplm_high"(uint64_t a, uint64_t b) noexcept nogil
    float float_of "nplm_float_of"(uint32_t bits) noexcept nogil
    uint32_t bits_of "nplm_bits_of"(float value) noexcept nogil

cdef enum:
    # Bytes of the entries of hash tables: of words and of the longest n-grams, which
    # have a key and 4 bytes, and of others, with a weight too.
    ENTRY = 12
    MIDDLE_ENTRY = 16
    # Bytes of a unigram of a trie: probability, weight, and where its bigrams begin.
    UNIGRAM = 16

cdef inline uint64_t read64(const unsigned char* at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return value


cdef inline uint32_t read32(const unsigned char* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef inline const unsigned char* at_byte(const unsigned char* data, Py_ssize_t place):
    """Return the address of a place, NULL of none (0)."""
    return data + place if place else NULL


# -- hash tables ------------------------------------------------------------------


cdef struct Buckets:
    # A hash table: the place of a key is its remainder, or one of the next.
    const unsigned char* base
    uint64_t n
    uint64_t reciprocal  # 2**64 / n, rounded down
    int size  # bytes of an entry


cdef inline uint64_t place_of(const Buckets* table, uint64_t key) noexcept nogil:
    """Return ``key % table.n``, without a division."""
    cdef uint64_t rest = key - high_product(key, table.reciprocal) * table.n
    while rest >= table.n:  # twice at most
        rest -= table.n
    return rest


cdef inline const unsigned char* find_key(
    const Buckets* table, uint64_t key, uint64_t place
) noexcept nogil:
    """Return what follows a key in its entry, NULL if it is not in the table."""
    cdef uint64_t found, _
    cdef const unsigned char* at
    for _ in range(table.n):  # a damaged table may be full
        at = table.base + place * table.size
        found = read64(at)
        if found == key:
            return at + 8
        if found == 0:
            return NULL
        place = place + 1 if place + 1 < table.n else 0
    return NULL


cdef inline Buckets table_at(
    const unsigned char* data, Py_ssize_t place, uint64_t n, int size
):
    cdef Buckets table
    table.base, table.n, table.size = data + place, n, size
    table.reciprocal = <uint64_t> -1 // n if n else 0
    return table


cdef inline uint64_t murmur_hash(const unsigned char* text, Py_ssize_t n) noexcept nogil:
    """Return KenLM's hash of a word: MurmurHash64A with the seed 0."""
    cdef uint64_t h = <uint64_t> n * MURMUR, k
    cdef Py_ssize_t i
    for i in range(n >> 3):
        k = read64(text + 8 * i) * MURMUR
        k = (k ^ (k >> 47)) * MURMUR
        h = (h ^ k) * MURMUR
    if n & 7:
        k = 0
        for i in range(n & 7):
            k |= <uint64_t> text[(n & ~7) + i] << (8 * i)
        h = (h ^ k) * MURMUR
    h = (h ^ (h >> 47)) * MURMUR
    return h ^ (h >> 47)


cdef inline uint64_t longer_key(uint64_t key, int older) noexcept nogil:
    """Return the key of an n-gram with one more word, by KenLM's id of it."""
    return key * KEY_FACTOR ^ (1 + <uint64_t> older) * WORD_FACTOR


# -- sorted records ---------------------------------------------------------------


cdef struct Level:
    # n-grams of a length, which a trie has sorted: first by those one word shorter,
    # without the oldest, then by the oldest word. A record has that word, a probability
    # and a weight, or their codes, and the low bits of the number of the first
    # extension; `high_starts` has the first record of each of the other bits.
    Buckets table
    const unsigned char* records
    const unsigned char* high_starts
    int64_t n_high
    const unsigned char* probs  # values of the codes; NULL without codes
    const unsigned char* bows
    int64_t n
    int width  # bits of a record, and of its parts
    int word, prob, bow, low


cdef inline float prob_at(const Level* level, int64_t i) noexcept nogil:
    # With codes, the weight's comes first.
    cdef int64_t at = i * level.width + level.word
    if level.probs == NULL:
        return float_of(<uint32_t> read_bits(level.records, at, 31) | SIGN)
    at += level.bow
    return float_of(read32(
        level.probs + 4 * read_bits(level.records, at, level.prob)
    ))


cdef inline float bow_at(const Level* level, int64_t i) noexcept nogil:
    cdef int64_t at = i * level.width + level.word
    if level.probs == NULL:
        return float_of(<uint32_t> read_bits(level.records, at + 31, 32))
    return float_of(read32(level.bows + 4 * read_bits(level.records, at, level.bow)))


cdef inline uint64_t high_at(const Level* level, uint64_t i) noexcept nogil:
    """Return the high part of the first extension of n-gram i."""
    cdef int64_t first = 0, n = level.n_high, half
    while n > 1:
        half = n >> 1
        if read64(level.high_starts + 8 * (first + half)) <= i:
            first += half
        n -= half
    return <uint64_t> first


cdef inline void extensions(
    const Level* level, int64_t i, int64_t* first, int64_t* after
) noexcept nogil:
    """Find the extensions of n-gram i by one older word."""
    cdef int64_t at = (i + 1) * level.width - level.low
    cdef uint64_t high = high_at(level, i), next = high
    first[0] = <int64_t> (high << level.low | read_bits(level.records, at, level.low))
    while next + 1 < <uint64_t> level.n_high and read64(
        level.high_starts + 8 * (next + 1)
    ) <= <uint64_t> i + 1:
        next += 1
    after[0] = <int64_t> (
        next << level.low | read_bits(level.records, at + level.width, level.low)
    )
