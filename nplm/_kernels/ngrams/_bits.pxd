"""Read bit-packed records, and Elias-Fano codes of monotone offsets.

See ``nplm.models.ngrams.trie.bits``.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define NPLM_LOWEST_BIT(word) __builtin_ctzll(word)
    #ifndef NPLM_PREFETCH
    #define NPLM_PREFETCH(address) __builtin_prefetch(address)
    #endif
    #else
    #ifndef NPLM_PREFETCH
    #define NPLM_PREFETCH(address) ((void) 0)
    #endif
    static int NPLM_LOWEST_BIT(uint64_t word) {
        int i = 0;
        while (!(word >> i & 1)) i++;
        return i;
    }
    #endif
    """
    int NPLM_LOWEST_BIT(uint64_t) noexcept nogil
    void NPLM_PREFETCH(const void*) noexcept nogil

cdef enum:
    # Number of offsets per sampled position in the bits of the high parts.
    SAMPLE = 32


cdef struct Offsets:
    # The high parts of offsets: bit ``high(i) + i`` is set for each i, so the position
    # of the i-th set bit gives high(i) (Elias 1974, Fano 1971).
    const uint64_t* high
    const uint32_t* sample  # position of every 32nd bit that is set
    uint64_t n_high  # length of `high`


cdef inline uint64_t read_bits(
    const unsigned char* data, uint64_t at, int n
) noexcept nogil:
    """Read `n` bits, at most 57, from bit `at`, on a little-endian machine."""
    cdef uint64_t word
    memcpy(&word, data + (at >> 3), 8)
    return (word >> (at & 7)) & ((<uint64_t> 1 << n) - 1)


cdef inline bint read_offsets(
    const Offsets* offsets, int64_t i, int64_t* first, int64_t* last
) noexcept nogil:
    """Read the high parts of offsets i and i + 1.

    Returns False if a damaged file has too few set bits.
    """
    cdef uint64_t at = offsets.sample[i // SAMPLE]
    cdef int left = <int> (i % SAMPLE)
    cdef uint64_t n_high = offsets.n_high
    cdef uint64_t word
    if at >> 6 >= n_high:
        return False
    word = offsets.high[at >> 6] & (~<uint64_t> 0 << (at & 63))
    at >>= 6
    while True:
        while word != 0 and left > 0:
            word &= word - 1
            left -= 1
        if word != 0:
            break
        at += 1
        if at == n_high:
            return False
        word = offsets.high[at]
    first[0] = (at << 6) + NPLM_LOWEST_BIT(word) - i
    word &= word - 1
    while word == 0:
        at += 1
        if at == n_high:
            return False
        word = offsets.high[at]
    last[0] = (at << 6) + NPLM_LOWEST_BIT(word) - (i + 1)
    return True
