"""Ids of words by their bytes, for text that is split at blanks.

To split a sentence, make a string of each word and ask Python's dictionary for its id
takes longer than to look its n-grams up. This table is asked with bytes in place.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

import numpy as np

# Those of the FNV-1a hash.
FNV_START = <uint64_t> 14695981039346656037U
FNV_PRIME = <uint64_t> 1099511628211U


cdef class WordIds:
    """A hash table of words in UTF-8.

    Parameters
    ----------
    words : list of str
        The word of each id.

    Raises
    ------
    UnicodeEncodeError
        If a word has lone surrogates, which UTF-8 cannot spell.

    Notes
    -----
    Equivalent to ``{word: i for i, word in enumerate(words)}.get``.

    No twin: it is tested against a dictionary.
    """

    def __init__(self, list words not None):
        cdef Py_ssize_t mask, i, at, n, n_slots = 8
        cdef uint64_t h
        encoded = [word.encode() for word in words]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self.words, self.text = words, b"".join(encoded)
        self.data = <const unsigned char*> PyBytes_AS_STRING(self.text)
        self.start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        while n_slots < 2 * len(words):
            n_slots *= 2
        self.slots = np.zeros(n_slots, dtype=np.uint64)
        mask = n_slots - 1
        with nogil:
            for i in range(self.start.shape[0] - 1):
                h = FNV_START
                for n in range(self.start[i], self.start[i + 1]):
                    h = (h ^ self.data[n]) * FNV_PRIME
                h = mixed(h)
                at = h & mask
                while self.slots[at] != 0:
                    at = (at + 1) & mask
                self.slots[at] = (h >> ID_BITS << ID_BITS) | <uint64_t> (i + 1)

    def __reduce__(self):
        return WordIds, (self.words,)

    cdef int find(
        self, const unsigned char* word, Py_ssize_t n, uint64_t h
    ) noexcept nogil:
        """Return the id of a word with this hash, or -1."""
        cdef Py_ssize_t mask = self.slots.shape[0] - 1
        cdef Py_ssize_t at = h & mask
        cdef uint64_t slot
        cdef int64_t begin, i
        while self.slots[at] != 0:
            slot = self.slots[at]
            if slot >> ID_BITS == h >> ID_BITS:
                i = <int64_t> <uint32_t> slot - 1
                begin = self.start[i]
                if self.start[i + 1] - begin == n and memcmp(
                    self.data + begin, word, n
                ) == 0:
                    return <int> i
            at = (at + 1) & mask
        return -1
