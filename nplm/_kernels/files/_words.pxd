"""The words of a vocabulary in one array of bytes."""

from libc.stdint cimport int64_t


cdef class Words:
    cdef const unsigned char[::1] text
    cdef const int64_t[::1] start
