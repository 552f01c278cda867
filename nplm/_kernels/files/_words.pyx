"""The words of a vocabulary in one array of bytes, in the form that kernels take."""

from libc.stdint cimport int64_t


cdef class Words:
    """The words of a vocabulary.

    Parameters
    ----------
    text : ndarray of uint8
        All words, concatenated.
    start : ndarray of int64, shape (n_words + 1,)
        The word of id w is ``text[start[w]:start[w + 1]]``.
    """

    def __cinit__(self, const unsigned char[::1] text, const int64_t[::1] start):
        self.text = text
        self.start = start
