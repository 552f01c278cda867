"""Ids out of the caller's arrays: read once, and never out of range.

Ids are checked before a kernel is called, but the arrays stay the caller's: another
thread, or another writer of a mapped file, may change them at any time. A kernel
therefore takes an id by `id_below`, once, and uses what that returned.
"""

cdef extern from *:
    """
    /* volatile: the compiler must not read the array again after the comparison. */
    static inline int nplm_id_below(const int *at, int n) {
        const int id = *(const volatile int *) at;
        return (unsigned int) id < (unsigned int) n ? id : n - 1;
    }
    """
    int id_below "nplm_id_below"(const int *at, int n) noexcept nogil
