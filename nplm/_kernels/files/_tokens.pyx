"""Encode white-space separated words as ids, in the order of first occurrence."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

# Reasons to stop.
ENDED, WORDS_FULL, TEXT_FULL = range(3)

# Entries of `state`.
cdef enum:
    N_WORDS
    N_LINES
    WORDS_IN_LINE

cdef enum:
    # A slot has 32 bits of the hash above the id + 1; an empty slot is 0.
    ID_BITS = 32
    LINE_END = -1


cdef inline int blank(const unsigned char* at, Py_ssize_t left) noexcept nogil:
    """Return the bytes of the UTF-8 white space of str.split here, 0 if none."""
    cdef unsigned char c = at[0]
    if c < 0x80:
        return c == 32 or 9 <= c <= 13 or 28 <= c <= 31
    if c == 0xC2:
        return 2 if left > 1 and (at[1] == 0x85 or at[1] == 0xA0) else 0
    if left < 3 or not 0xE1 <= c <= 0xE3:
        return 0
    if c == 0xE1:  # U+1680
        return 3 if at[1] == 0x9A and at[2] == 0x80 else 0
    if c == 0xE3:  # U+3000
        return 3 if at[1] == 0x80 and at[2] == 0x80 else 0
    if at[1] == 0x80:  # U+2000 to U+200A, U+2028, U+2029, U+202F
        return 3 if at[2] <= 0x8A or 0xA8 <= at[2] <= 0xA9 or at[2] == 0xAF else 0
    return 3 if at[1] == 0x81 and at[2] == 0x9F else 0  # U+205F


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    """Mix the high bits of an FNV-1a hash into the low ones."""
    return h ^ (h >> 29)


cdef inline Py_ssize_t slot_of(
    uint64_t h, const unsigned char* token, Py_ssize_t n,
    const uint64_t[::1] slots, const unsigned char[::1] text, const int64_t[::1] start,
) noexcept nogil:
    """Return the slot of a word, or the empty slot in which to insert it."""
    cdef Py_ssize_t mask = slots.shape[0] - 1
    cdef Py_ssize_t at = h & mask
    cdef uint64_t slot
    cdef int64_t begin, word
    while slots[at] != 0:
        slot = slots[at]
        if slot >> ID_BITS == h >> ID_BITS:
            word = <int64_t> <uint32_t> slot - 1
            begin = start[word]
            if start[word + 1] - begin == n and memcmp(&text[begin], token, n) == 0:
                break
        at = (at + 1) & mask
    return at


def place_words(
    uint64_t[::1] slots,
    const unsigned char[::1] text,
    const int64_t[::1] start,
    int64_t n_words,
):
    """Fill an empty hash table with `n_words` words; see ``encode_text``.

    No twin: the layout of the table is private to this module.
    """
    cdef int64_t word, i
    cdef uint64_t h
    with nogil:
        for word in range(n_words):
            h = <uint64_t> 14695981039346656037U
            for i in range(start[word], start[word + 1]):
                h = (h ^ text[i]) * <uint64_t> 1099511628211U
            h = mixed(h)
            slots[slot_of(
                h, &text[start[word]], start[word + 1] - start[word], slots, text, start
            )] = (h >> ID_BITS << ID_BITS) | <uint64_t> (word + 1)


def encode_text(
    const unsigned char[::1] chunk,
    Py_ssize_t at,
    bint is_last,
    uint64_t[::1] slots,
    unsigned char[::1] text,
    int64_t[::1] start,
    int64_t[::1] counts,
    int64_t[::1] state,
    int[::1] ids,
    Py_ssize_t n,
):
    """Encode a chunk of UTF-8 as ids, from byte `at` on, into `ids` from `n` on.

    Words are separated by the white space of ``str.split``. New words get the next
    ids. A line with words ends with -1. A word at the end of the chunk is left for the
    next call, unless the chunk `is_last`.

    `state` has the number of words known, of lines ended, and of words in the current
    line. Word w is ``text[start[w]:start[w + 1]]`` and occurred ``counts[w]`` times.
    `slots` is a hash table whose size is a power of two. `ids` has one more entry than
    the chunk has bytes. Returns the reason to stop, the byte reached, and the number of
    ids written. If `counts` or `text` is full, or `slots` half full, the caller must
    enlarge it.

    Equivalent to, for each line, ``[known.setdefault(word, len(known)) for word in
    line.split()] + [-1]``.

    No twin: it is tested against ``str.split`` and a dictionary.
    """
    cdef Py_ssize_t size = chunk.shape[0]
    cdef Py_ssize_t end, slot
    cdef uint64_t h
    cdef int width = 0
    cdef int64_t word
    cdef int reason = 0
    with nogil:
        while at < size:
            width = blank(&chunk[at], size - at)
            if width > 0:
                if chunk[at] == 10:
                    state[N_LINES] += 1
                    if state[WORDS_IN_LINE] > 0:
                        ids[n] = LINE_END
                        n += 1
                        state[WORDS_IN_LINE] = 0
                at += width
                continue
            h = <uint64_t> 14695981039346656037U
            end = at
            while end < size and blank(&chunk[end], size - end) == 0:
                h = (h ^ chunk[end]) * <uint64_t> 1099511628211U
                end += 1
            if end == size and not is_last:
                break
            h = mixed(h)
            slot = slot_of(h, &chunk[at], end - at, slots, text, start)
            if slots[slot] != 0:
                word = <int64_t> <uint32_t> slots[slot] - 1
            else:
                word = state[N_WORDS]
                if word == counts.shape[0] or 2 * word >= slots.shape[0]:
                    reason = 1
                    break
                if start[word] + end - at > text.shape[0]:
                    reason = 2
                    break
                memcpy(&text[start[word]], &chunk[at], end - at)
                start[word + 1] = start[word] + end - at
                counts[word] = 0
                slots[slot] = (h >> ID_BITS << ID_BITS) | <uint64_t> (word + 1)
                state[N_WORDS] += 1
            counts[word] += 1
            ids[n] = <int> word
            n += 1
            state[WORDS_IN_LINE] += 1
            at = end
        if is_last and at == size and state[WORDS_IN_LINE] > 0:
            ids[n] = LINE_END
            n += 1
            state[WORDS_IN_LINE] = 0
            state[N_LINES] += 1
    return reason, at, n
