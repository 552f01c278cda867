"""Ids of words by their bytes."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

cdef enum:
    # A slot has 32 bits of the hash above the id + 1; an empty slot is 0.
    ID_BITS = 32

cdef uint64_t FNV_START
cdef uint64_t FNV_PRIME


cdef class WordIds:
    cdef list words
    cdef bytes text
    cdef const unsigned char* data  # of `text`
    cdef int64_t[::1] start
    cdef uint64_t[::1] slots

    cdef int find(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h
    ) noexcept nogil


cdef inline bint is_blank(unsigned char c) noexcept nogil:
    """Whether a byte is white space of the n-gram toolkits."""
    return c == 32 or c == 9 or c == 10 or c == 13


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    """Mix the high bits of an FNV-1a hash into the low ones."""
    return h ^ (h >> 29)
