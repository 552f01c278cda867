"""Probabilities of the bytes of words; see ``nplm.text.words.known_words``."""

from libc.math cimport log
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from nplm._kernels.ngrams._hashed cimport MULTIPLIER

cdef enum:
    # Bytes in the longest n-gram: the last one, and its context.
    ORDER = 5
    N_SYMBOLS = 257  # the bytes, and the end
    END = 255  # a byte that UTF-8 never has
    FEWEST_SLOTS = 1024


cdef inline uint64_t last_bytes(uint64_t window, int n) noexcept nogil:
    """Return the key of the last `n` bytes; a bit above them tells how many."""
    cdef uint64_t above = <uint64_t> 1 << 8 * n
    return window & (above - 1) | above


cdef class ByteNgrams:
    """Witten-Bell probabilities of the bytes of words and their ends.

    Parameters
    ----------
    words : list of bytes
        The words that they are estimated from.

    Notes
    -----
    No twin: it is tested against the definition.
    """

    cdef uint64_t[::1] keys  # 0 is an empty slot
    # Of each n-gram: how often it occurs, how many bytes follow it, how many different.
    cdef int64_t[:, ::1] counts
    cdef Py_ssize_t n_used

    def __init__(self, list words not None):
        cdef const unsigned char[:] word
        cdef uint64_t window
        cdef Py_ssize_t i
        self._set_slots(FEWEST_SLOTS)
        for word in words:
            window = END
            for i in range(word.shape[0] + 1):
                window = window << 8 | (word[i] if i < word.shape[0] else END)
                self._count(window, <int> min(i + 2, <Py_ssize_t> ORDER))

    cdef int _set_slots(self, Py_ssize_t n) except -1:
        self.keys, self.counts = np.zeros(n, np.uint64), np.zeros((n, 3), np.int64)
        self.n_used = 0
        return 0

    cdef inline Py_ssize_t _slot(self, uint64_t key) noexcept nogil:
        """Return the slot of an n-gram, or the empty one that it would have."""
        cdef Py_ssize_t mask = self.keys.shape[0] - 1
        cdef Py_ssize_t at = <Py_ssize_t> (key * MULTIPLIER >> 32) & mask
        while self.keys[at] != key and self.keys[at] != 0:
            at = at + 1 & mask
        return at

    cdef int _count(self, uint64_t window, int n_longest) except -1:
        """Count the last byte of a window after contexts of all lengths."""
        cdef Py_ssize_t own, context
        cdef int n
        for n in range(1, n_longest + 1):
            context = self._put(last_bytes(window >> 8, n - 1))
            own = self._put(last_bytes(window, n))
            # The slots may have moved.
            if self.keys[context] != last_bytes(window >> 8, n - 1):
                context = self._slot(last_bytes(window >> 8, n - 1))
            self.counts[context, 1] += 1
            self.counts[context, 2] += self.counts[own, 0] == 0
            self.counts[own, 0] += 1
        return 0

    cdef Py_ssize_t _put(self, uint64_t key) except -1:
        cdef uint64_t[::1] keys
        cdef int64_t[:, ::1] counts
        cdef Py_ssize_t at = self._slot(key), i
        if self.keys[at] == key:
            return at
        if 2 * self.n_used >= self.keys.shape[0]:
            keys, counts = self.keys, self.counts
            self._set_slots(2 * keys.shape[0])
            for i in range(keys.shape[0]):
                if keys[i] != 0:
                    self.counts[self._put(keys[i]), :] = counts[i]
            at = self._slot(key)
        self.keys[at] = key
        self.n_used += 1
        return at

    def log_prob(self, const unsigned char[:] word not None):
        """Return the natural logarithm of the probability of a word and its end."""
        cdef double total = 0
        cdef uint64_t window = END
        cdef Py_ssize_t i
        for i in range(word.shape[0] + 1):
            window = window << 8 | (word[i] if i < word.shape[0] else END)
            total += log(self._prob(window, <int> min(i + 2, <Py_ssize_t> ORDER)))
        return total

    cdef inline double _prob(self, uint64_t window, int n_longest) noexcept nogil:
        """Return the probability of the last byte of a window."""
        cdef double prob = 1.0 / N_SYMBOLS
        cdef Py_ssize_t own, context
        cdef int n
        cdef int64_t n_seen
        for n in range(1, n_longest + 1):
            context = self._slot(last_bytes(window >> 8, n - 1))
            n_seen = self.counts[context, 2]
            if n_seen == 0:
                break
            own = self._slot(last_bytes(window, n))
            # As many unseen bytes as different ones were seen.
            prob = (self.counts[own, 0] + n_seen * prob) / (
                self.counts[context, 1] + n_seen
            )
        return prob
