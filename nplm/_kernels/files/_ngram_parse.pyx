"""Parse the lines of ARPA files and count files into word ids and numbers."""

from libc.math cimport INFINITY, NAN, pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcpy

from nplm._kernels.ngrams.decoding._word_ids cimport (
    FNV_START, WordIds, expect, expect_text, guess_id, hash_of, mixed,
    with_byte,
)

# Reasons to stop before the end of the lines.
(
    MORE, SECTION, BAD_LENGTH, BAD_NUMBER, OUT_OF_RANGE, UNKNOWN_WORD, TOO_HEAVY
) = range(7)

cdef extern from *:
    """
    #define NPLM_LN10 2.302585092994045684
    #define NPLM_LOG2_10 3.321928094887362348
    /* log10(2) / 64: the first has 33 bits, so that its multiples are exact. */
    #define NPLM_STEP_HIGH 0x1.3441350900000p-8
    #define NPLM_STEP_LOW 0x1.ef3fde623e256p-41
    #define NPLM_MARGIN 0x1p-48
    """
    const double LN10 "NPLM_LN10"
    const double LOG2_10 "NPLM_LOG2_10"
    const double STEP_HIGH "NPLM_STEP_HIGH"
    const double STEP_LOW "NPLM_STEP_LOW"
    const double MARGIN "NPLM_MARGIN"
    int trailing_zeros "__builtin_ctzll" (uint64_t value) nogil


cdef enum:
    # float64 represents whole numbers exactly up to this one, 2**53.
    MOST = 9007199254740992
    # Powers of ten up to this one are exact.
    EXACT_POWERS = 22
    # Powers of two are tabulated in steps of 1 / STEPS.
    STEPS = 64
    # Digits read at once: the bytes of a number.
    N_AT_ONCE = 8
    # Longest n-gram of an ARPA file.
    MAX_WORDS = 255
    # Lines whose words are looked up together, so that memory is read ahead, and about
    # how many words they have that differ from those above them.
    N_LINES = 64
    N_SOUGHT = 128


cdef struct Sought:
    # A word of a line, and its id.
    const unsigned char* text
    Py_ssize_t n
    uint64_t hashed
    int id


cdef double[EXACT_POWERS + 1] POWERS
for exponent in range(EXACT_POWERS + 1):
    POWERS[exponent] = 10.0**exponent

cdef uint64_t[N_AT_ONCE + 1] WHOLE_POWERS
for exponent in range(N_AT_ONCE + 1):
    WHOLE_POWERS[exponent] = 10**exponent

cdef double[STEPS] ROOTS
for exponent in range(STEPS):
    ROOTS[exponent] = 2.0 ** (exponent / <double> STEPS)


cdef inline int find_word(
    const unsigned char* token, Py_ssize_t n, WordIds words
) noexcept nogil:
    """Return the id of a word, -1 if it is not in the vocabulary."""
    return words.find(token, n, hash_of(token, n))


cdef inline double power_of_ten(int n) noexcept nogil:
    return POWERS[n] if n <= EXACT_POWERS else pow(10, n)


cdef inline float power_below(double log10, double lowest) noexcept nogil:
    """Return ten to a power, rounded as that of ``pow`` is; 0 below the lowest."""
    cdef double steps, rest, power
    cdef int64_t n
    cdef uint64_t bits
    cdef float rounded
    if log10 < lowest:
        return 0
    if -300 < log10 < 300:
        # 10**x = 2**(n / STEPS) * e**r, where |r| is at most log(2) / STEPS / 2.
        steps = log10 * (STEPS * LOG2_10)
        n = <int64_t> (steps + 0.5 if steps > 0 else steps - 0.5)
        rest = (log10 - n * STEP_HIGH - n * STEP_LOW) * LN10
        bits = <uint64_t> ((n >> 6) + 1023) << 52
        memcpy(&power, &bits, sizeof(double))
        power *= ROOTS[n & (STEPS - 1)]
        power += power * (
            rest * (1 + rest * (1 / 2.0 + rest * (1 / 6.0 + rest * (1 / 24.0 + rest / 120))))
        )
        # The error is below 2**-50: if float32 rounds up and down from it alike, this is
        # how it rounds the power. The power of 1 tells which weights are 1 in float64.
        rounded = <float> (power * (1 + MARGIN))
        if rounded == <float> (power * (1 - MARGIN)) and rounded != 1:
            return rounded
    return <float> pow(10, log10)


cdef inline bint is_blank(unsigned char c) noexcept nogil:
    """Whether a byte separates the words of a line."""
    return c == 32 or c == 9 or c == 13


cdef inline bint ends_token(unsigned char c) noexcept nogil:
    """Whether a byte is a blank or ends the line."""
    return c <= 32 and (c == 10 or is_blank(c))


cdef inline int read_digits(
    const unsigned char* at, uint64_t* digits
) noexcept nogil:
    """Append the digits that eight bytes begin with to a number; return how many."""
    cdef uint64_t bytes, others
    cdef int n = N_AT_ONCE
    memcpy(&bytes, at, N_AT_ONCE)
    bytes ^= <uint64_t> 0x3030303030303030
    # The highest bit of the first byte that is no digit is set, of those before it not.
    others = ((bytes + <uint64_t> 0x7676767676767676) | bytes)
    others &= <uint64_t> 0x8080808080808080
    if others != 0:
        n = trailing_zeros(others) >> 3
        if n == 0:
            return 0
    # The last digit is in the highest byte, and zeros come before the first one.
    bytes <<= 8 * (N_AT_ONCE - n)
    # Numbers of two digits, then of four, then of eight.
    bytes = (bytes * 10 + (bytes >> 8)) & <uint64_t> 0x00FF00FF00FF00FF
    bytes = (bytes * 100 + (bytes >> 16)) & <uint64_t> 0x0000FFFF0000FFFF
    bytes = (bytes * 10000 + (bytes >> 32)) & <uint64_t> 0xFFFFFFFF
    digits[0] = digits[0] * WHOLE_POWERS[n] + bytes
    return n


cdef inline bint is_digit(unsigned char c) noexcept nogil:
    return <unsigned char> (c - 48) < 10


cdef inline const unsigned char* after_number(
    const unsigned char* at, const unsigned char* end, double* value
) noexcept nogil:
    """Read a decimal number; return its end, NULL if it is invalid or infinite.

    The number is a whole token. `end`: where the line ends, or the last one.
    """
    cdef bint negative = False
    cdef bint negative_exponent = False
    cdef uint64_t digits = 0
    cdef int scale = 0
    cdef int exponent = 0
    cdef int n_at_once
    cdef const unsigned char* begin
    cdef Py_ssize_t n_digits
    if at < end and (at[0] == 45 or at[0] == 43):  # - +
        negative = at[0] == 45
        at += 1
    # 18 digits fit in 64 bits; a double has no precision for more.
    begin = at
    while at < end and is_digit(at[0]):
        if digits < 100000000000000000U:
            digits = 10 * digits + (at[0] - 48)
        else:
            scale += 1
        at += 1
    n_digits = at - begin
    if at < end and at[0] == 46:
        at += 1
        begin = at
        if end - at >= N_AT_ONCE and digits < 1000000000U:
            n_at_once = read_digits(at, &digits)
            at += n_at_once
            scale = -n_at_once
        while at < end and is_digit(at[0]):
            if digits < 100000000000000000U:
                digits = 10 * digits + (at[0] - 48)
                scale -= 1
            at += 1
        n_digits += at - begin
    if n_digits == 0:
        return NULL
    if at < end and (at[0] == 101 or at[0] == 69):  # e E
        at += 1
        if at < end and (at[0] == 45 or at[0] == 43):
            negative_exponent = at[0] == 45
            at += 1
        begin = at
        while at < end and is_digit(at[0]) and exponent < 1000:
            exponent = 10 * exponent + (at[0] - 48)
            at += 1
        if at == begin:
            return NULL
        scale += -exponent if negative_exponent else exponent
    # Powers of ten up to 10**22 are exact, so the quotient is correctly rounded.
    if scale < 0:
        value[0] = digits / power_of_ten(-scale)
    else:
        value[0] = digits * power_of_ten(scale)
    if negative:
        value[0] = -value[0]
    if value[0] - value[0] != 0 or (at < end and not ends_token(at[0])):
        return NULL
    return at


cdef inline Py_ssize_t after_token(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    while at < end and not ends_token(data[at]):
        at += 1
    return at


cdef inline Py_ssize_t after_blanks(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    while at < end and is_blank(data[at]):
        at += 1
    return at


cdef inline bint begins_with(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end, const Sought* word
) noexcept nogil:
    """Whether the token at a byte is a word."""
    cdef Py_ssize_t i
    if word.n >= end - at or not ends_token(data[at + word.n]):
        return False
    for i in range(word.n):  # a call of memcmp takes longer
        if data[at + i] != word.text[i]:
            return False
    return True


cdef inline Py_ssize_t hash_token(
    const unsigned char* data, Py_ssize_t at, Sought* word
) noexcept nogil:
    """Set a word to the token at a byte, which a line end follows; return its end."""
    cdef uint64_t h = FNV_START
    word.text = data + at
    while not ends_token(data[at]):
        h = with_byte(h, data[at])
        at += 1
    word.n, word.hashed = data + at - word.text, mixed(h)
    return at


cdef inline void find_all(Sought* sought, int n, WordIds words) noexcept nogil:
    """Set the ids of words, -1 if they are not in the vocabulary."""
    cdef int i
    for i in range(n):
        sought[i].id = guess_id(words, sought[i].hashed)
    for i in range(n):
        expect_text(words, sought[i].id)
    for i in range(n):
        sought[i].id = words.find_guessed(
            sought[i].text, sought[i].n, sought[i].hashed, sought[i].id
        )


def parse_ngrams(
    const unsigned char[::1] lines,
    Py_ssize_t begin,
    WordIds words not None,
    bint weights,
    double lowest,
    double highest,
    double heaviest,
    Py_ssize_t row,
    int[:, ::1] ids,
    float[::1] prob,
    float[::1] bow,
):
    """Parse lines of an ARPA file into the rows of `ids` from `row` on.

    A line has a number, the words and, with `weights`, an optional second number (0 if
    missing); without, it may only be 0. They are the log10 of a probability, which is
    at most `highest`, and of a weight, at most `heaviest`; those below `lowest` are
    minus infinity. A weight of 1 becomes NaN. Parses the
    complete lines of `lines` from byte `begin` on, until all rows are filled, and stops
    before a line that begins with a backslash or is invalid. Returns the reason (a
    constant of this module), the byte where it stopped, the number of lines read and
    the next row.

    No twin: the tests read files of ``_ngram_format`` and other tools, and invalid
    lines of every kind.
    """
    cdef const unsigned char* data = &lines[0]
    cdef const unsigned char* after
    cdef Py_ssize_t at = begin
    cdef Py_ssize_t size = lines.shape[0]  # of complete lines
    cdef Py_ssize_t here, first, i
    cdef Py_ssize_t n_lines = 0
    cdef Py_ssize_t n_rows = ids.shape[0]
    cdef int n_words = <int> ids.shape[1]
    cdef int word, n_sought
    cdef int reason = 0
    cdef double number, weight
    cdef float power
    # The words of the line above come first.
    cdef Sought[N_SOUGHT + 2 * MAX_WORDS] sought
    cdef int[MAX_WORDS] above
    cdef int* row_ids
    # Where each line begins, and the lines before it.
    cdef Py_ssize_t[N_LINES + 1] begins, n_before
    if n_words > MAX_WORDS:
        raise ValueError(f"n-grams of {n_words} words are too long")
    with nogil:
        while size > at and data[size - 1] != 10:
            size -= 1
        for word in range(n_words):
            sought[word].n = size  # no word
        while reason == 0 and row < n_rows and at < size:
            first, n_sought = row, n_words
            for word in range(n_words):
                above[word] = word
            word = 0
            while (
                row < min(n_rows, first + N_LINES)
                and n_sought < N_SOUGHT + n_words
                and at < size
            ):
                begins[row - first], n_before[row - first] = at, n_lines
                word = 0
                if data[at] == 92:  # a backslash
                    reason = 1
                    break
                here = after_blanks(data, at, size)
                if data[here] == 10:
                    at = here + 1
                    n_lines += 1
                    continue
                after = after_number(data + here, data + size, &number)
                if after == NULL:
                    reason = 3
                    break
                if number > highest:
                    reason = 4
                    break
                prob[row] = power_below(number, lowest)
                here = after_blanks(data, after - data, size)
                while word < n_words and data[here] != 10:
                    # The n-grams of a context are adjacent in most files.
                    if begins_with(data, here, size, &sought[above[word]]):
                        here += sought[above[word]].n
                    else:
                        here = hash_token(data, here, &sought[n_sought])
                        expect(words, sought[n_sought].hashed)
                        above[word] = n_sought
                        n_sought += 1
                    ids[row, word] = above[word]
                    word += 1
                    here = after_blanks(data, here, size)
                if word < n_words:
                    reason = 2
                    break
                weight = 0
                if data[here] != 10:
                    after = after_number(data + here, data + size, &weight)
                    if after == NULL:
                        reason = 3 if weights else 2
                        break
                    here = after_blanks(data, after - data, size)
                    if weights and weight > heaviest:
                        reason = 6
                        break
                    if data[here] != 10 or (not weights and weight != 0):
                        reason = 2
                        break
                bow[row] = NAN
                if weight != 0:
                    power = power_below(weight, lowest)
                    # A weight may be 1 in float32 alone.
                    if power != 1 or pow(10, weight) != 1:
                        bow[row] = power
                at = here + 1
                n_lines += 1
                row += 1
            find_all(sought + n_words, n_sought - n_words, words)
            # Up to the line that is invalid, and its words, if there is one.
            row_ids = &ids[first, 0]
            for i in range((row - first) * n_words + (word if reason else 0)):
                row_ids[i] = sought[row_ids[i]].id
                if row_ids[i] < 0:
                    reason = 5
                    row = first + i // n_words
                    at, n_lines = begins[row - first], n_before[row - first]
                    break
            for word in range(n_words):
                sought[word] = sought[above[word]]
    return reason, at, n_lines, row


def parse_unigrams(
    const unsigned char[::1] lines,
    double lowest,
    double highest,
    double heaviest,
    unsigned char[::1] words,
    double[::1] numbers,
    double[::1] weight,
):
    """Parse lines of unigrams: a number, a word and perhaps a weight (0 if missing).

    Parses the complete lines of `lines` until `numbers` is filled, and stops before a
    line that has another form or a number out of range, as in ``parse_ngrams``. Numbers
    stay as they are, but those below `lowest` become minus infinity.
    `words`, as large as `lines`, gets the words, one a line. Returns the number of rows,
    the byte where it stopped, and the size of the words.

    No twin: see ``parse_ngrams``.
    """
    cdef const unsigned char* data = &lines[0]
    cdef Py_ssize_t at = 0, row = 0, n_bytes = 0
    cdef Py_ssize_t end, token, here, number
    cdef const void* line_end
    cdef const unsigned char* after
    with nogil:
        while row < numbers.shape[0]:
            line_end = memchr(data + at, 10, lines.shape[0] - at)
            if line_end == NULL:
                break
            end = <const unsigned char*> line_end - data
            after = after_number(data + at, data + end, &numbers[row])
            if after == NULL:
                break
            token = after_blanks(data, after - data, end)
            here = after_token(data, token, end)
            number = after_blanks(data, here, end)
            weight[row] = 0
            if token == end or numbers[row] > highest:
                break
            if number < end:
                after = after_number(data + number, data + end, &weight[row])
                if after == NULL:
                    break
                number = after_blanks(data, after - data, end)
            if number < end or weight[row] > heaviest:
                break
            if numbers[row] < lowest:
                numbers[row] = -INFINITY
            if weight[row] < lowest:
                weight[row] = -INFINITY
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
