"""Ids of words, asked by kernels."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH

cdef extern from *:
    """
    #define NPLM_FNV_START 14695981039346656037ULL
    #define NPLM_FNV_PRIME 1099511628211ULL
    """
    # Those of the FNV-1a hash.
    const uint64_t FNV_START "NPLM_FNV_START"
    const uint64_t FNV_PRIME "NPLM_FNV_PRIME"


cdef enum:
    # A slot has 32 bits of the hash above the id + 1; an empty slot is 0.
    ID_BITS = 32
    # Words of a text whose ids are found together.
    BATCH = 32


cdef struct Word:
    # Bytes of a text, and their hash.
    Py_ssize_t begin, end
    uint64_t hashed


cdef struct Batch:
    # Words of a text, and the ids that they have if these are spelled so.
    int n
    Word words[BATCH]
    int guesses[BATCH]


cdef class Ids:
    cdef bint find_word(self, object word, int* id) except -1


cdef class DictIds(Ids):
    cdef dict ids


cdef class WordIds(Ids):
    cdef const unsigned char[::1] text
    cdef const int64_t[::1] start
    cdef const uint64_t[::1] slots

    cdef void guess(
        self, const unsigned char* text, Py_ssize_t n, Py_ssize_t at, Batch* batch
    ) noexcept nogil

    cdef int guessed(
        self, const unsigned char* text, const Batch* batch, int i
    ) noexcept nogil

    cdef int find_guessed(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h, int guess
    ) noexcept nogil

    cdef int find(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h
    ) noexcept nogil


cdef Ids ids_of(object ids)

cdef object encodable(object text)

cdef const unsigned char* utf8_of(object text, Py_ssize_t* n) except NULL

cdef const unsigned char* hashed_text(
    object word, Py_ssize_t* n, uint64_t* h
) except? NULL


cdef inline Py_ssize_t home(uint64_t h, Py_ssize_t n_slots) noexcept nogil:
    """Return the first slot of a hash."""
    return <Py_ssize_t> ((h >> 32) * <uint64_t> n_slots >> 32)


cdef inline void expect(WordIds words, uint64_t h) noexcept nogil:
    """Prefetch the slot of a hash."""
    NPLM_PREFETCH(&words.slots[home(h, words.slots.shape[0])])


cdef inline uint64_t tag_of(uint64_t h) noexcept nogil:
    """Return the bits of a hash that a slot has, the low ones, in their place."""
    return h << ID_BITS


cdef inline int guess_id(WordIds words, uint64_t h) noexcept nogil:
    """Return the id in the first slot of a hash, or -1; prefetch where it begins.

    It is the word's, unless a word with the same bits of its hash has the slot: its
    letters are not compared.
    """
    cdef uint64_t slot = words.slots[home(h, words.slots.shape[0])]
    cdef int64_t i = <int64_t> <uint32_t> slot - 1
    if (
        slot >> ID_BITS << ID_BITS != tag_of(h)
        or not 0 <= i < words.start.shape[0] - 1
    ):
        return -1
    NPLM_PREFETCH(&words.start[i])
    return <int> i


cdef inline void expect_text(WordIds words, int guess) noexcept nogil:
    """Prefetch the letters of a word that was guessed."""
    cdef int64_t begin = words.start[guess] if guess >= 0 else -1
    if 0 <= begin < words.text.shape[0]:
        NPLM_PREFETCH(&words.text[begin])


cdef inline bint spells(
    const unsigned char[::1] text, const int64_t[::1] start, int64_t i,
    const unsigned char* word, Py_ssize_t n,
) noexcept nogil:
    """Whether word i, which is in range, has these letters."""
    cdef int64_t begin = start[i]
    return (
        0 <= begin <= text.shape[0] - n
        and start[i + 1] == begin + n + 1
        and (n == 0 or memcmp(&text[begin], word, n) == 0)
    )


cdef inline Py_ssize_t slot_of(
    const uint64_t[::1] slots, const unsigned char[::1] text, const int64_t[::1] start,
    const unsigned char* word, Py_ssize_t n, uint64_t h,
) noexcept nogil:
    """Return the slot of a word, or the empty one for it; -1 if a table is damaged."""
    cdef Py_ssize_t n_slots = slots.shape[0], at = home(h, n_slots), _
    cdef uint64_t slot
    cdef int64_t i
    for _ in range(n_slots):  # a damaged table may be full
        slot = slots[at]
        if slot == 0:
            return at
        i = <int64_t> <uint32_t> slot - 1
        if (
            slot >> ID_BITS << ID_BITS == tag_of(h)
            and 0 <= i < start.shape[0] - 1
            and spells(text, start, i, word, n)
        ):
            return at
        at = at + 1 if at + 1 < n_slots else 0
    return -1


cdef inline bint is_blank(unsigned char c) noexcept nogil:
    """Whether a byte is white space of the n-gram toolkits."""
    return c == 32 or c == 9 or c == 10 or c == 13


cdef inline uint64_t with_byte(uint64_t h, unsigned char c) noexcept nogil:
    """Return the FNV-1a hash of one more byte."""
    return (h ^ c) * FNV_PRIME


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    """Mix all bits of an FNV-1a hash into the high ones, which choose a slot."""
    return (h ^ (h >> 32)) * <uint64_t> 11400714819323198485U


cdef inline uint64_t hash_of(const unsigned char* text, Py_ssize_t n) noexcept nogil:
    """Return the hash of a word."""
    cdef uint64_t h = FNV_START
    cdef Py_ssize_t i
    for i in range(n):
        h = with_byte(h, text[i])
    return mixed(h)


cdef inline Py_ssize_t end_of_word(
    const unsigned char* text, Py_ssize_t n, Py_ssize_t at, uint64_t* hashed
) noexcept nogil:
    """Return the end of the word that begins at a byte, and its hash."""
    cdef uint64_t h = FNV_START
    while at < n and not is_blank(text[at]):
        h = with_byte(h, text[at])
        at += 1
    hashed[0] = mixed(h)
    return at


cdef inline bint next_word(
    const unsigned char* text, Py_ssize_t n, Word* word
) noexcept nogil:
    """Find the word after this one, between blanks; return whether there is one."""
    cdef Py_ssize_t at = word.end
    while at < n and is_blank(text[at]):
        at += 1
    word.begin, word.end = at, end_of_word(text, n, at, &word.hashed)
    return word.begin < word.end
