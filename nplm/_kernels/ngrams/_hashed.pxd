"""Look-ups in a hash table of n-grams.

The key of words w0 (the newest), w1, ... is the sum of hash_word(wi) M**i: each older
word adds one product, and in a stream each word is hashed once.
"""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define NPLM_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define NPLM_PREFETCH(address) ((void) 0)
    #endif
    /* Odd constants with irregular bits: 2**64 divided by the golden ratio, and the
       multipliers of the SplitMix64 generator. */
    static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15U;
    static const uint64_t MIX1 = 0xBF58476D1CE4E5B9U;
    static const uint64_t MIX2 = 0x94D049BB133111EBU;
    static const uint64_t TAG = 0xFFFFFFFFFFFF0000U;
    /* A bucket of empty slots. */
    typedef struct {
        uint64_t key;
        float prob, bow;
    } nplm_slot;
    static const nplm_slot NPLM_EMPTY[4] __attribute__((aligned(64))) = {
        {0, -1, 1}, {0, -1, 1}, {0, -1, 1}, {0, -1, 1}
    };
    static const void* const NPLM_NOTHING = NPLM_EMPTY;

    /* Bit i is set if slot i of a bucket has the tag or is empty. The result is
       unpredictable, so avoid branches: compilers make them from || and ?:. */
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static inline int nplm_hits(const void* bucket, uint64_t wanted) {
        const __m128i* slot = (const __m128i*) bucket;
        const __m128i first = _mm_unpacklo_epi32(
            _mm_loadu_si128(slot), _mm_loadu_si128(slot + 1));
        const __m128i second = _mm_unpacklo_epi32(
            _mm_loadu_si128(slot + 2), _mm_loadu_si128(slot + 3));
        const __m128i low = _mm_unpacklo_epi64(first, second);
        const __m128i high = _mm_unpackhi_epi64(first, second);
        const __m128i tag = _mm_and_si128(low, _mm_set1_epi32((int) (uint32_t) TAG));
        const __m128i same = _mm_and_si128(
            _mm_cmpeq_epi32(tag, _mm_set1_epi32((int) (uint32_t) wanted)),
            _mm_cmpeq_epi32(high, _mm_set1_epi32((int) (wanted >> 32))));
        const __m128i empty =
            _mm_cmpeq_epi32(_mm_or_si128(low, high), _mm_setzero_si128());
        return _mm_movemask_ps(_mm_castsi128_ps(_mm_or_si128(same, empty)));
    }
    #else
    static inline int nplm_hits(const void* bucket, uint64_t wanted) {
        const nplm_slot* slot = (const nplm_slot*) bucket;
        int hits = 0, i;
        for (i = 0; i < 4; i++)
            hits |= (((slot[i].key & TAG) == wanted) | (slot[i].key == 0)) << i;
        return hits;
    }
    #endif
    /* The first bit that is set, 4 if there is none. */
    #define NPLM_FIRST(hits) __builtin_ctz((hits) | 1 << 4)
    static inline void* nplm_either(int yes, const void* this, const void* that) {
        const uintptr_t all = -(uintptr_t) yes;
        return (void*) (((uintptr_t) this & all) | ((uintptr_t) that & ~all));
    }
    """
    void NPLM_PREFETCH(const void*) noexcept nogil
    int nplm_hits(const void* bucket, uint64_t wanted) noexcept nogil
    int NPLM_FIRST(int hits) noexcept nogil
    void* nplm_either(bint yes, const void* this, const void* that) noexcept nogil
    const uint64_t MULTIPLIER, MIX1, MIX2, TAG
    const void* NPLM_NOTHING

cdef enum:
    # Slots of 16 bytes per cache line.
    BUCKET = 4


cdef struct Slot:
    # An n-gram, and the context of the same words. The lowest 16 bits of the key are a
    # filter: the bits of the older words that extend the n-gram are set. An empty slot
    # has key 0.
    uint64_t key
    float prob  # negative if the slot is a context, a suffix or empty
    float bow   # 1 if it is not a context, or has no weight


cdef class Table:
    cdef const unsigned char[::1] memory
    cdef const int64_t[::1] slot_start
    cdef const float[::1] prob
    cdef const float[::1] bow
    cdef Slot* slots


cdef inline uint64_t hash_word(int word) noexcept nogil:
    cdef uint64_t h = (<uint64_t> word + 1) * MULTIPLIER
    h = (h ^ (h >> 30)) * MIX1
    h = (h ^ (h >> 27)) * MIX2
    return h ^ (h >> 31)


cdef inline uint64_t filter_bit(uint64_t word_hash) noexcept nogil:
    return <uint64_t> 1 << (word_hash >> 60)


cdef inline uint64_t tag(uint64_t key) noexcept nogil:
    """Return the bits of a key that a slot stores; never 0."""
    return key & TAG if key & TAG else TAG


cdef inline uint64_t home_number(uint64_t n_slots, uint64_t key) noexcept nogil:
    """Return the number of the first slot of the bucket where a search begins."""
    cdef uint64_t high = ((key ^ (key >> 32)) * MIX1) >> 32
    return (high * (n_slots // BUCKET) >> 32) * BUCKET


cdef inline Slot* home(Slot* slots, uint64_t n_slots, uint64_t key) noexcept nogil:
    """Return the bucket where the search for a key begins."""
    return slots + home_number(n_slots, key)


cdef inline Slot* next_bucket(Slot* slots, uint64_t n_slots, Slot* at) noexcept nogil:
    """Return the next bucket of a search; the first one follows the last."""
    return slots if at + BUCKET == slots + n_slots else at + BUCKET


cdef inline int place_in_bucket(const Slot* at, uint64_t wanted) noexcept nogil:
    """Return the slot of a bucket with a tag, else its first empty one, or BUCKET."""
    # Buckets are filled from the first slot on.
    return NPLM_FIRST(nplm_hits(at, wanted))


cdef inline Slot* find_slot(Slot* slots, uint64_t n_slots, uint64_t key) noexcept nogil:
    """Return the slot of a key, or an empty slot if the table does not contain it.

    The table of a damaged file may have no empty slot; then a static one is returned.
    """
    cdef Slot* first = home(slots, n_slots, key)
    cdef Slot* at = first
    cdef uint64_t wanted = tag(key)
    cdef int hit
    while True:
        hit = place_in_bucket(at, wanted)
        if hit < BUCKET:
            return at + hit
        at = next_bucket(slots, n_slots, at)
        if at == first:
            return <Slot*> NPLM_NOTHING
