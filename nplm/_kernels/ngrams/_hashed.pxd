"""Look-ups in a hash table of n-grams.

The key of words w0 (the newest), w1, ... is the sum of hash_word(wi) M**i: each older
word adds one product, and in a stream each word is hashed once.

The n-grams of a length are in buckets, one per cache line. A search begins at the
bucket of the key, and goes on to the next one only if an n-gram with the same highest
bits of the key was put beyond this one because it was full. The longest n-grams need no
weight and no filter, so more of them fit in a bucket.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from nplm._kernels.ngrams._trie cimport Ngrams

cdef extern from *:
    """
    /* Odd constants with irregular bits: 2**64 divided by the golden ratio, and the
       multipliers of the SplitMix64 generator. */
    static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15U;
    static const uint64_t MIX1 = 0xBF58476D1CE4E5B9U;
    static const uint64_t MIX2 = 0x94D049BB133111EBU;
    /* Bits of a key that a slot stores, and the bit that says that the searches of a
       quarter of the keys go on: slot i has it of the keys with the two highest bits i.
       The other 16 are the filter. */
    static const uint64_t TAG = 0xFFFFFFFFFFFE0000U;
    static const uint32_t LOW_TAG = 0xFFFE0000U;
    static const uint32_t PASSED = 0x10000U;
    typedef struct {
        uint32_t high[4], low[4];
        float prob[4], bow[4];
    } nplm_bucket;
    typedef struct {
        uint32_t low[7];
        float prob[7];
        uint8_t high[7], passed;
    } nplm_long_bucket;
    /* What a search finds if the n-gram is not there. */
    static const nplm_bucket NPLM_EMPTY __attribute__((aligned(64))) = {
        {0}, {0}, {-1, -1, -1, -1}, {1, 1, 1, 1}
    };
    static const void* const NPLM_NOTHING = &NPLM_EMPTY;

    /* Bit i is set if slot i of a bucket has the tag. The result is unpredictable, so
       avoid branches: compilers make them from || and ?:. */
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static inline int nplm_hits(const void* bucket, uint64_t wanted) {
        const nplm_bucket* own = (const nplm_bucket*) bucket;
        const __m128i low = _mm_and_si128(
            _mm_loadu_si128((const __m128i*) own->low), _mm_set1_epi32((int) LOW_TAG));
        const __m128i same = _mm_and_si128(
            _mm_cmpeq_epi32(low, _mm_set1_epi32((int) (uint32_t) wanted)),
            _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i*) own->high),
                            _mm_set1_epi32((int) (wanted >> 32))));
        return _mm_movemask_ps(_mm_castsi128_ps(same));
    }
    static inline int nplm_long_hits(const void* bucket, uint64_t wanted) {
        const nplm_long_bucket* own = (const nplm_long_bucket*) bucket;
        const __m128i low = _mm_set1_epi32((int) (uint32_t) wanted);
        const __m128i first = _mm_cmpeq_epi32(
            _mm_loadu_si128((const __m128i*) own->low), low);
        const __m128i last = _mm_cmpeq_epi32(
            _mm_loadu_si128((const __m128i*) (own->low + 3)), low);
        const __m128i high = _mm_cmpeq_epi8(
            _mm_loadl_epi64((const __m128i*) own->high),
            _mm_set1_epi8((char) (wanted >> 32)));
        return (_mm_movemask_ps(_mm_castsi128_ps(first))
                | _mm_movemask_ps(_mm_castsi128_ps(last)) << 3)
            & _mm_movemask_epi8(high) & 0x7f;
    }
    #else
    static inline int nplm_hits(const void* bucket, uint64_t wanted) {
        const nplm_bucket* own = (const nplm_bucket*) bucket;
        int hits = 0, i;
        for (i = 0; i < 4; i++)
            hits |= (((own->low[i] & LOW_TAG) == (uint32_t) wanted)
                     & (own->high[i] == (uint32_t) (wanted >> 32))) << i;
        return hits;
    }
    static inline int nplm_long_hits(const void* bucket, uint64_t wanted) {
        const nplm_long_bucket* own = (const nplm_long_bucket*) bucket;
        int hits = 0, i;
        for (i = 0; i < 7; i++)
            hits |= ((own->low[i] == (uint32_t) wanted)
                     & (own->high[i] == (uint8_t) (wanted >> 32))) << i;
        return hits;
    }
    #endif
    /* The first bit that is set, n if there is none of the lowest n. */
    #define NPLM_FIRST(hits, n) __builtin_ctz((hits) | 1 << (n))
    static inline void* nplm_either(int yes, const void* this, const void* that) {
        const uintptr_t all = -(uintptr_t) yes;
        return (void*) (((uintptr_t) this & all) | ((uintptr_t) that & ~all));
    }
    """
    int nplm_hits(const void* bucket, uint64_t wanted) noexcept nogil
    int nplm_long_hits(const void* bucket, uint64_t wanted) noexcept nogil
    int NPLM_FIRST(int hits, int n) noexcept nogil
    void* nplm_either(bint yes, const void* this, const void* that) noexcept nogil
    const uint64_t MULTIPLIER, MIX1, MIX2, TAG
    const uint32_t LOW_TAG, PASSED
    const void* NPLM_NOTHING

cdef enum:
    # n-grams per bucket of 64 bytes, and of the longest ones.
    SLOTS = 4
    LONG_SLOTS = 7
    BUCKET_SIZE = 64
    # Searches whose memory is prefetched together, while others are prepared.
    TOGETHER = 16


cdef struct Bucket:
    # n-grams, and contexts of the same words. The lowest 16 bits of a key are a filter:
    # the bits of the older words that extend the n-gram are set. An empty slot is zeros.
    uint32_t high[SLOTS]  # parts of the keys
    uint32_t low[SLOTS]
    float prob[SLOTS]  # negative if the slot is a context or a suffix
    float bow[SLOTS]   # 1 if it is not a context, or has no weight


cdef struct Slot:
    # A slot, seen from its `high`: the numbers of a bucket between are of other slots.
    uint32_t high
    uint32_t of_others[SLOTS - 1]
    uint32_t low
    uint32_t of_others_too[SLOTS - 1]
    float prob
    float of_others_either[SLOTS - 1]
    float bow


cdef struct LongBucket:
    # The longest n-grams: 40 bits of their keys, and their probabilities. An empty slot
    # is zeros.
    uint32_t low[LONG_SLOTS]
    float prob[LONG_SLOTS]
    uint8_t high[LONG_SLOTS]
    uint8_t passed  # bit i: searches of keys with the three highest bits i go on


cdef class Table(Ngrams):
    cdef const unsigned char[::1] memory
    cdef const int64_t[::1] bucket_start
    cdef Bucket* buckets
    cdef bint closed


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


cdef inline uint64_t long_tag(uint64_t key) noexcept nogil:
    """Return the 40 bits of a key that a slot of the longest n-grams stores."""
    return key >> 24 if key >> 24 else 1


cdef inline uint64_t home_number(uint64_t n_buckets, uint64_t key) noexcept nogil:
    """Return the number of the bucket where the search for a key begins."""
    cdef uint64_t high = ((key ^ (key >> 32)) * MIX1) >> 32
    return high * n_buckets >> 32


cdef inline Bucket* home(
    Bucket* buckets, uint64_t n_buckets, uint64_t key
) noexcept nogil:
    """Return the bucket where the search for a key begins."""
    return buckets + home_number(n_buckets, key)


cdef inline Bucket* next_bucket(
    Bucket* buckets, uint64_t n_buckets, Bucket* at
) noexcept nogil:
    """Return the next bucket of a search; the first one follows the last."""
    return buckets if at + 1 == buckets + n_buckets else at + 1


cdef inline int slot_in(const Bucket* bucket, uint64_t wanted) noexcept nogil:
    """Return the slot of a bucket with a tag, or SLOTS."""
    return NPLM_FIRST(nplm_hits(bucket, wanted), SLOTS)


cdef inline int long_slot_in(const LongBucket* bucket, uint64_t wanted) noexcept nogil:
    """Return the slot of a bucket of the longest n-grams with a tag, or LONG_SLOTS."""
    return NPLM_FIRST(nplm_long_hits(bucket, wanted), LONG_SLOTS)


cdef inline uint32_t stops(const Bucket* bucket, uint64_t key) noexcept nogil:
    """Return 0 if the search for an n-gram that the bucket lacks goes on."""
    return ~bucket.low[key >> 62] & PASSED


cdef inline bint continues(const Bucket* bucket, uint64_t key) noexcept nogil:
    """Whether the search for an n-gram that the bucket lacks goes on in the next."""
    return stops(bucket, key) == 0


cdef inline bint long_continues(const LongBucket* bucket, uint64_t key) noexcept nogil:
    """Whether the search for one of the longest n-grams goes on in the next bucket."""
    return bucket.passed >> (key >> 61) & 1


cdef inline const Bucket* find_bucket(
    Bucket* buckets, uint64_t n_buckets, uint64_t key, int* slot
) noexcept nogil:
    """Return the bucket of a key, and its slot; NPLM_NOTHING if it is not there."""
    cdef Bucket* first = home(buckets, n_buckets, key)
    cdef Bucket* at = first
    cdef uint64_t wanted = tag(key)
    while True:
        slot[0] = slot_in(at, wanted)
        if slot[0] < SLOTS:
            return at
        if not continues(at, key):
            break
        at = next_bucket(buckets, n_buckets, at)
        # In the table of a damaged file the search may not end otherwise.
        if at == first:
            break
    slot[0] = 0
    return <const Bucket*> NPLM_NOTHING


cdef inline const Slot* slot_of(const Bucket* bucket, int hits) noexcept nogil:
    """Return the slot of the lowest bit of `hits`; NPLM_NOTHING if there is none."""
    cdef const void* found = nplm_either(hits != 0, bucket, NPLM_NOTHING)
    return <const Slot*> (
        <const uint32_t*> found + (NPLM_FIRST(hits, SLOTS) & (SLOTS - 1))
    )


cdef inline Bucket* found_from(
    Bucket* at, uint64_t key, Bucket* first, Bucket* end, int* hits
) noexcept nogil:
    """Return the bucket where the search for a key ends; bit i of `hits` is slot i.

    Branch-free if the search ends at its first bucket: it is unpredictable whether an
    n-gram is there, and in which slot.
    """
    cdef Bucket* begun = at
    hits[0] = nplm_hits(at, tag(key))
    while (hits[0] | stops(at, key)) == 0:
        at = first if at + 1 == end else at + 1
        # In the table of a damaged file the search may not end otherwise.
        if at == begun:
            break
        hits[0] = nplm_hits(at, tag(key))
    return at


cdef inline float find_long_from(
    Bucket* at, Bucket* first, Bucket* end, uint64_t key
) noexcept nogil:
    """Return the probability of one of the longest n-grams, negative if not found.

    Its search begins at a bucket, and `first` follows the one before `end`.
    """
    cdef Bucket* begun = at
    cdef uint64_t wanted = long_tag(key)
    cdef LongBucket* own
    cdef int hit
    while True:
        own = <LongBucket*> at
        hit = long_slot_in(own, wanted)
        if hit < LONG_SLOTS:
            return own.prob[hit]
        if not long_continues(own, key):
            break
        at = first if at + 1 == end else at + 1
        if at == begun:
            break
    return -1


cdef inline float find_long(
    Bucket* buckets, uint64_t n_buckets, uint64_t key
) noexcept nogil:
    """Return the probability of one of the longest n-grams, negative if not found."""
    cdef Bucket* at = home(buckets, n_buckets, key)
    return find_long_from(at, buckets, buckets + n_buckets, key)
