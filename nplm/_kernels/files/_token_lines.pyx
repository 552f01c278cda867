"""Write lines of tokens and their scores, as KenLM's ``query`` does."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.math cimport fabs, floor, signbit
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, strlen

from nplm._kernels.files._digits cimport put_integer
from nplm._kernels.ngrams.decoding._word_ids cimport (
    Word, encodable, next_word, utf8_of,
)

cdef extern from "Python.h":
    char* PyOS_double_to_string(
        double value, char format, int precision, int flags, int* kind
    ) except NULL

cdef enum:
    UNIT = 10000  # of four decimals
    # Beside words: blanks, an order, a common number and a mark.
    COMMON_BYTES = 64


cdef class Lines:
    """Text that grows, and the scores of its tokens; `i` is that of the next one.

    No twin: see `format_tokens`.
    """

    cdef char* data
    cdef Py_ssize_t n, capacity, i
    cdef const double[::1] log10
    cdef const int[::1] order
    cdef const uint8_t[::1] unknown

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef inline int reserve(self, Py_ssize_t n) except -1:
        """Make room for `n` more bytes."""
        cdef Py_ssize_t capacity = 2 * self.capacity + n
        cdef void* data
        if self.n + n > self.capacity:
            data = PyMem_Realloc(self.data, capacity)
            if data == NULL:
                raise MemoryError
            self.data, self.capacity = <char*> data, capacity
        return 0

    cdef inline int put(self, const char* data, Py_ssize_t n) except -1:
        """Add bytes, and leave room for what is common beside words."""
        self.reserve(n + COMMON_BYTES)
        memcpy(self.data + self.n, data, n)
        self.n += n
        return 0

    cdef inline void put_char(self, char c) noexcept:
        self.data[self.n] = c
        self.n += 1

    cdef inline int put_number(self, double value) except -1:
        """Write a number with four decimals, as ``%.4f`` does."""
        cdef double scaled = fabs(value) * UNIT
        cdef double part = scaled - floor(scaled)
        cdef uint64_t whole, unit = UNIT // 10
        cdef char* digits
        # Products this close to a half may be rounded to the wrong side of it.
        if not (scaled < 1e9 and fabs(part - 0.5) > 1e-6):
            digits = PyOS_double_to_string(value, b"f", 4, 0, NULL)
            try:
                return self.put(digits, strlen(digits))
            finally:
                PyMem_Free(digits)
        whole = <uint64_t> scaled + (part > 0.5)
        if signbit(value):
            self.put_char(b"-")
        self.n += put_integer(self.data + self.n, whole // UNIT)
        self.put_char(b".")
        whole = whole % UNIT
        while unit > 0:
            self.put_char(<char> (48 + whole // unit))
            whole, unit = whole % unit, unit // 10
        return 0

    cdef inline int put_token(self, const char* word, Py_ssize_t n) except -1:
        """Write a token and its scores."""
        cdef Py_ssize_t i = self.i
        if i >= min(self.log10.shape[0], self.unknown.shape[0]) or (
            self.order is not None and i >= self.order.shape[0]
        ):
            raise ValueError(f"{self.log10.shape[0]} scores of more words")
        self.put(word, n)
        self.put_char(b" ")
        if self.order is not None:
            self.n += put_integer(self.data + self.n, self.order[i])
            self.put_char(b" ")
        self.put_number(self.log10[i])
        self.put(b" OOV\t" if self.unknown[i] else b"\t", 5 if self.unknown[i] else 1)
        self.i += 1
        return 0


def format_tokens(
    list documents not None,
    str end,
    const double[::1] log10 not None,
    const int[::1] order,
    const uint8_t[::1] unknown not None,
    const double[::1] totals not None,
):
    """Return the lines of documents with the scores of each word.

    A document is a list of words, or a string of words between blanks. `end` is the
    word after those of each document, or None. `log10`, `order` and `unknown` have an
    entry for each word and end; `order` may be None. `totals` has an entry for each
    document.

    No twin: it is tested against Python's formatting.
    """
    cdef Lines lines = Lines()
    cdef Py_ssize_t row, size, end_size = 0
    cdef const unsigned char* text
    cdef const char* end_text = NULL
    cdef Word word
    lines.log10, lines.order, lines.unknown = log10, order, unknown
    if end is not None:
        end_text = PyUnicode_AsUTF8AndSize(end, &end_size)
    if totals.shape[0] != len(documents):
        raise ValueError(f"{totals.shape[0]} totals of {len(documents)} documents")
    for row in range(totals.shape[0]):
        document = documents[row]
        if isinstance(document, str):
            document = encodable(document)
            text = utf8_of(document, &size)
            word.end = 0
            while next_word(text, size, &word):
                lines.put_token(<const char*> text + word.begin, word.end - word.begin)
        else:
            for token in document:
                text = <const unsigned char*> PyUnicode_AsUTF8AndSize(token, &size)
                lines.put_token(<const char*> text, size)
        if end is not None:
            lines.put_token(end_text, end_size)
        lines.put(b"total ", 6)
        lines.put_number(totals[row])
        lines.put_char(b"\n")
    return PyUnicode_DecodeUTF8(lines.data, lines.n, "strict")
