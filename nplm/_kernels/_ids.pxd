"""Read word ids from the caller's arrays, always in range.

Ids are checked before a kernel is called, but another thread, or a process that writes
to a mapped file, may change the arrays at any time. A kernel therefore reads each id
once, with `id_below`, and uses the value returned.
"""

cdef extern from *:
    """
    /* volatile: the compiler must not read the array again after the comparison. */
    static inline int nplm_id_below(const int *at, int n) {
        const int id = *(const volatile int *) at;
        return (unsigned int) id < (unsigned int) n ? id : n - 1;
    }
    /* The same, and clears `valid` if the id was out of range. */
    static inline int nplm_checked_id(const int *at, int n, int *valid) {
        const int id = *(const volatile int *) at;
        const int below = (unsigned int) id < (unsigned int) n;
        *valid &= below;
        return below ? id : n - 1;
    }
    """
    int id_below "nplm_id_below"(const int *at, int n) noexcept nogil
    int checked_id "nplm_checked_id"(const int *at, int n, int *valid) noexcept nogil
