"""Encode words between blanks as ids, in the order of first occurrence."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from nplm._kernels.ngrams.decoding._word_ids cimport (
    end_of_word, is_blank, slot_of, tag_of,
)

# Reasons to stop.
ENDED, WORDS_FULL, TEXT_FULL, MARK_INSIDE = range(4)

# Entries of `state`.
cdef enum:
    N_WORDS
    N_LINES
    WORDS_IN_LINE
    HAS_BEGUN
    MARKED

# Values of `MARKED`: the ids of the marks of the ends of lines, from 2 down.
cdef enum:
    NO_MARK
    BEGIN_MARK
    END_MARK

cdef enum:
    LINE_END = -1


def encode_text(
    const unsigned char[::1] chunk,
    Py_ssize_t at,
    bint is_last,
    bint blank_lines,
    int n_marks,
    uint64_t[::1] slots,
    unsigned char[::1] text,
    int64_t[::1] start,
    int64_t[::1] counts,
    int64_t[::1] state,
    int[::1] ids,
    Py_ssize_t n,
):
    """Encode a chunk of UTF-8 as ids, from byte `at` on, into `ids` from `n` on.

    Words are separated by spaces, tabs, returns and line ends. New words get the next
    ids. A line with words ends with -1, and with `blank_lines` one without words does
    too. A word at the end of the chunk is left for the next call, unless the chunk
    `is_last`.

    The first `n_marks` words are marks: the last word of a line may be word 0 and its
    first one word 1, which are left out. Elsewhere they are a reason to stop, with
    their id in ``ids[n]``.

    `state` has the number of words known, of lines ended, and of words in the current
    line, whether the current line has begun, and its last mark. `text`, `start` and
    `slots` are a table as of ``WordIds``, with a line feed after each word. Word w
    occurred ``counts[w]`` times. `ids` has one more entry than the chunk has bytes.
    Returns the reason to stop, the byte reached, and the number of ids written. If
    `counts` or `text` is full, or `slots` half full, the caller must enlarge it.

    Equivalent to, for each line, ``[known.setdefault(word, len(known)) for word in
    BETWEEN_BLANKS.findall(line)] + [-1]``.

    No twin: it is tested against a regular expression and a dictionary.
    """
    cdef Py_ssize_t size = chunk.shape[0]
    cdef Py_ssize_t end, slot
    cdef uint64_t h
    cdef int64_t word
    cdef int reason = 0
    with nogil:
        while at < size:
            if is_blank(chunk[at]):
                state[HAS_BEGUN] = chunk[at] != 10
                if chunk[at] == 10:
                    state[N_LINES] += 1
                    state[MARKED] = NO_MARK
                    if blank_lines or state[WORDS_IN_LINE] > 0:
                        ids[n] = LINE_END
                        n += 1
                        state[WORDS_IN_LINE] = 0
                at += 1
                continue
            end = end_of_word(&chunk[0], size, at, &h)
            if end == size and not is_last:
                break
            slot = slot_of(slots, text, start, &chunk[at], end - at, h)
            if slots[slot] != 0:
                word = <int64_t> <uint32_t> slots[slot] - 1
            else:
                word = state[N_WORDS]
                if word == counts.shape[0] or 2 * word >= slots.shape[0]:
                    reason = 1
                    break
                if start[word] + end - at + 1 > text.shape[0]:
                    reason = 2
                    break
                memcpy(&text[start[word]], &chunk[at], end - at)
                start[word + 1] = start[word] + end - at + 1
                text[start[word + 1] - 1] = 10
                counts[word] = 0
                slots[slot] = tag_of(h) | <uint64_t> (word + 1)
                state[N_WORDS] += 1
            if word < n_marks or state[MARKED] == END_MARK:
                if state[MARKED] == END_MARK or (
                    word == 1 and (state[MARKED] or state[WORDS_IN_LINE] > 0)
                ):
                    ids[n] = 0 if state[MARKED] == END_MARK else 1
                    reason = 3
                    break
                state[MARKED] = END_MARK - word
                state[HAS_BEGUN] = 1
                at = end
                continue
            counts[word] += 1
            ids[n] = <int> word
            n += 1
            state[WORDS_IN_LINE] += 1
            state[HAS_BEGUN] = 1
            at = end
        if is_last and at == size and (
            state[WORDS_IN_LINE] > 0 or (blank_lines and state[HAS_BEGUN])
        ):
            ids[n] = LINE_END
            n += 1
            state[WORDS_IN_LINE] = state[HAS_BEGUN] = 0
            state[N_LINES] += 1
        if is_last and at == size:
            state[MARKED] = NO_MARK
    return reason, at, n
