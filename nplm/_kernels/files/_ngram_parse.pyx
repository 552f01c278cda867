"""Parse the lines of ARPA files and count files into word ids and numbers."""

from libc.math cimport pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcpy

from nplm._kernels.ngrams.decoding._word_ids cimport WordIds, hash_of

# Reasons to stop before the end of the lines.
(
    MORE, SECTION, BAD_LENGTH, BAD_NUMBER, OUT_OF_RANGE, UNKNOWN_WORD, TOO_HEAVY
) = range(7)

cdef enum:
    # float64 represents whole numbers exactly up to this one, 2**53.
    MOST = 9007199254740992
    # Powers of ten up to this one are exact.
    EXACT_POWERS = 22

cdef double[EXACT_POWERS + 1] POWERS
for exponent in range(EXACT_POWERS + 1):
    POWERS[exponent] = 10.0**exponent


cdef inline int find_word(
    const unsigned char* token, Py_ssize_t n, WordIds words
) noexcept nogil:
    """Return the id of a word, -1 if it is not in the vocabulary."""
    return words.find(token, n, hash_of(token, n))


cdef inline double power_of_ten(int n) noexcept nogil:
    return POWERS[n] if n <= EXACT_POWERS else pow(10, n)


cdef inline bint is_blank(unsigned char c) noexcept nogil:
    """Whether a byte separates words; the end of the line is found before."""
    return c == 32 or c == 9 or c == 13


cdef inline bint read_number(
    const unsigned char* at, const unsigned char* end, double* value
) noexcept nogil:
    """Read a decimal number that fills its token; return False if NaN or infinite."""
    cdef bint negative = False
    cdef bint negative_exponent = False
    cdef uint64_t digits = 0
    cdef int n_digits = 0
    cdef int scale = 0
    cdef int exponent = 0
    cdef bint point = False
    if at < end and (at[0] == 45 or at[0] == 43):  # - +
        negative = at[0] == 45
        at += 1
    while at < end and (48 <= at[0] <= 57 or (at[0] == 46 and not point)):
        if at[0] == 46:
            point = True
        else:
            n_digits += 1
            # 18 digits fit in 64 bits; a double has no precision for more.
            if digits < 100000000000000000U:
                digits = 10 * digits + (at[0] - 48)
                scale -= point
            else:
                scale += not point
        at += 1
    if n_digits == 0:
        return False
    if at < end and (at[0] == 101 or at[0] == 69):  # e E
        at += 1
        if at < end and (at[0] == 45 or at[0] == 43):
            negative_exponent = at[0] == 45
            at += 1
        if at == end:
            return False
        while at < end and 48 <= at[0] <= 57 and exponent < 1000:
            exponent = 10 * exponent + (at[0] - 48)
            at += 1
        scale += -exponent if negative_exponent else exponent
    # Powers of ten up to 10**22 are exact, so the quotient is correctly rounded.
    if scale < 0:
        value[0] = digits / power_of_ten(-scale)
    else:
        value[0] = digits * power_of_ten(scale)
    if negative:
        value[0] = -value[0]
    return at == end and value[0] - value[0] == 0


cdef inline Py_ssize_t after_token(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    while at < end and not is_blank(data[at]):
        at += 1
    return at


cdef inline Py_ssize_t after_blanks(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    while at < end and is_blank(data[at]):
        at += 1
    return at


def parse_ngrams(
    const unsigned char[::1] lines,
    Py_ssize_t begin,
    WordIds words not None,
    bint weights,
    double highest,
    double heaviest,
    Py_ssize_t row,
    int[:, ::1] ids,
    double[::1] numbers,
    double[::1] weight,
):
    """Parse lines of an ARPA file into the rows of `ids` from `row` on.

    A line has a number, the words and, with `weights`, an optional second number (NaN
    if missing); without, it may only be 0. The first number is at most `highest`, the
    weight at most `heaviest`. Parses the complete lines of `lines` from byte `begin` on,
    until all rows are filled, and stops before a line that begins with a backslash or
    is invalid. Returns the reason (a constant of this module), the byte where it
    stopped, the number of lines read and the next row.

    No twin: the tests read files of ``_ngram_format`` and other tools, and invalid
    lines of every kind.
    """
    cdef const unsigned char* data = &lines[0]
    cdef Py_ssize_t at = begin
    cdef Py_ssize_t size = lines.shape[0]
    cdef const void* line_end
    cdef Py_ssize_t end, here, token
    cdef Py_ssize_t n_lines = 0
    cdef Py_ssize_t n_rows = ids.shape[0]
    cdef int n_words = <int> ids.shape[1]
    cdef int n_tokens, word
    cdef int reason = 0
    cdef double number
    cdef double nan = float("nan")
    with nogil:
        while row < n_rows and reason == 0:
            line_end = memchr(data + at, 10, size - at)
            if line_end == NULL:
                break
            end = <const unsigned char*> line_end - data
            here = at
            n_tokens = 0
            if here < end and data[here] == 92:  # a backslash
                reason = 1
                break
            weight[row] = nan
            while True:
                token = after_blanks(data, here, end)
                if token == end:
                    break
                here = after_token(data, token, end)
                word = n_tokens - 1
                if 0 <= word < n_words:
                    # The n-grams of a context are adjacent in most files.
                    if row > 0 and words.spells(
                        ids[row - 1, word], data + token, here - token
                    ):
                        ids[row, word] = ids[row - 1, word]
                    else:
                        ids[row, word] = find_word(data + token, here - token, words)
                    if ids[row, word] < 0:
                        reason = 5
                        break
                elif word > n_words:
                    reason = 2
                    break
                elif not read_number(data + token, data + here, &number):
                    reason = 3 if word < 0 or weights else 2
                    break
                elif n_tokens == 0:
                    numbers[row] = number
                    if number > highest:
                        reason = 4
                        break
                elif not weights:
                    if number != 0:
                        reason = 2
                        break
                else:
                    weight[row] = number
                    if number > heaviest:
                        reason = 6
                        break
                n_tokens += 1
            if reason == 0 and 0 < n_tokens < n_words + 1:
                reason = 2
            if reason == 0:
                at = end + 1
                n_lines += 1
                row += n_tokens > 0
    return reason, at, n_lines, row


def parse_unigrams(
    const unsigned char[::1] lines,
    double highest,
    double heaviest,
    unsigned char[::1] words,
    double[::1] numbers,
    double[::1] weight,
):
    """Parse lines of unigrams: a number, a word and perhaps a weight (NaN if missing).

    Parses the complete lines of `lines` until `numbers` is filled, and stops before a
    line that has another form or a number out of range, as in ``parse_ngrams``.
    `words`, as large as `lines`, gets the words, one a line. Returns the number of rows,
    the byte where it stopped, and the size of the words.

    No twin: see ``parse_ngrams``.
    """
    cdef const unsigned char* data = &lines[0]
    cdef Py_ssize_t at = 0, row = 0, n_bytes = 0
    cdef Py_ssize_t end, token, here, number
    cdef const void* line_end
    cdef double nan = float("nan")
    with nogil:
        while row < numbers.shape[0]:
            line_end = memchr(data + at, 10, lines.shape[0] - at)
            if line_end == NULL:
                break
            end = <const unsigned char*> line_end - data
            here = after_token(data, at, end)
            if not read_number(data + at, data + here, &numbers[row]):
                break
            token = after_blanks(data, here, end)
            here = after_token(data, token, end)
            number = after_blanks(data, here, end)
            weight[row] = nan
            if token == end or numbers[row] > highest:
                break
            if number < end:
                end = after_token(data, number, end)
                if not read_number(data + number, data + end, &weight[row]):
                    break
                end = after_blanks(data, end, <const unsigned char*> line_end - data)
            if data[end] != 10 or weight[row] > heaviest:
                break
            memcpy(&words[n_bytes], data + token, here - token)
            n_bytes += here - token + 1
            words[n_bytes - 1] = 10
            at = end + 1
            row += 1
    return row, at, n_bytes


def parse_counts(
    const unsigned char[::1] lines,
    WordIds words not None,
    int[:, ::1] ids,
    int[::1] length,
    int64_t[::1] counts,
):
    """Parse the lines of a count file: one word or more, and a whole number.

    Row i of `ids` gets the `length[i]` words of the i-th line that is not blank,
    right-aligned and padded with -1 on the left. Returns the reason to stop before the
    end (a constant of this module, MORE if there was none), the last line read, the
    byte where that line begins, and the number of rows filled.

    No twin: see ``parse_ngrams``.
    """
    cdef const unsigned char* data = &lines[0]
    cdef Py_ssize_t size = lines.shape[0]
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t end, token, i
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t row = 0
    cdef Py_ssize_t n_lines = 0
    cdef int most = <int> ids.shape[1]
    cdef int n_tokens, word
    cdef int reason = 0
    cdef int64_t number
    with nogil:
        while at < size and reason == 0:
            n_lines += 1
            begin = at
            end = at
            while end < size and data[end] != 10:
                end += 1
            n_tokens = 0
            while True:
                at = after_blanks(data, at, end)
                if at == end:
                    break
                if n_tokens > most:
                    reason = 2
                    break
                if n_tokens > 0:
                    # The previous token was a word, not the count.
                    word = find_word(data + token, i - token, words)
                    if word < 0:
                        reason = 5
                        break
                    ids[row, n_tokens - 1] = word
                token = at
                at = after_token(data, at, end)
                i = at
                n_tokens += 1
            if reason == 0 and n_tokens == 1:
                reason = 2
            if reason == 0 and n_tokens > 0:
                number = 0
                for at in range(token, i):
                    if not 48 <= data[at] <= 57:
                        reason = 3
                        break
                    number = 10 * number + (data[at] - 48)
                    if number >= MOST:
                        reason = 4
                        break
            if reason == 0 and n_tokens > 0:
                counts[row] = number
                length[row] = n_tokens - 1
                for i in range(length[row]):
                    ids[row, most - 1 - i] = ids[row, length[row] - 1 - i]
                for i in range(most - length[row]):
                    ids[row, i] = -1
                row += 1
            at = end + 1
    return reason, n_lines, begin, row
