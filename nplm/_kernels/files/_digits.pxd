"""Numbers as decimal digits."""

from libc.stdint cimport uint64_t


cdef inline Py_ssize_t put_integer(char* out, uint64_t value) noexcept nogil:
    """Write a number of at most 20 digits; return their number."""
    cdef char digits[20]
    cdef int n = 0
    cdef Py_ssize_t at = 0
    while True:
        digits[n] = <char> (48 + value % 10)
        value = value // 10
        n += 1
        if value == 0:
            break
    while n > 0:
        n -= 1
        out[at] = digits[n]
        at += 1
    return at
