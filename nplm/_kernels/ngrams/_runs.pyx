"""Sorted runs of n-grams: pack, sort, count and merge rows of fixed width.

A row stores the words of an n-gram in the order of the trie: the context from the
nearest word to the oldest, then the next word. Each word takes `n_bits`, the first one
in the highest bits. Words do not span two 64-bit numbers, so rows compare like their
numbers. The last number of a counted row is its count.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    # A digit of 11 bits: its 2048 write positions stay in the cache.
    MAX_DIGIT_BITS = 11
    MAX_DIGITS = 1 << MAX_DIGIT_BITS
    # Number of digits in a 64-bit number.
    MAX_PASSES = 6
    # Number of rows prefetched together.
    MAX_COLUMNS = 32


cdef inline void pack_row(
    const int* next_word, int n_context, int boundary, int n_bits, uint64_t* row
) noexcept nogil:
    """Pack a word and the `n_context` words before it."""
    cdef int per_number = 64 // n_bits
    cdef int column = 0
    cdef int place = 0
    cdef int word = -1
    cdef int k
    row[0] = 0
    for k in range(1, n_context + 2):
        if k > n_context:
            word = next_word[0]
        elif word != boundary:
            word = next_word[-k]
        if place == per_number:
            place = 0
            column += 1
            row[column] = 0
        row[column] = (row[column] << n_bits) | <uint64_t> word
        place += 1


def pack_windows(
    const int[::1] stream,
    int n_context,
    int boundary,
    int n_bits,
    uint64_t[:, ::1] rows,
):
    """Pack the row of each word of a stream that has `n_context` words before it.

    Words before the nearest boundary are replaced by the boundary.

    Equivalent to ``X, y = windows(stream[n_context:], n_context,
    history=stream[:n_context], boundary=boundary); rows[:] = packed(X, y)``.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(rows.shape[0]):
            pack_row(&stream[i + n_context], n_context, boundary, n_bits, &rows[i, 0])


def pack_counted(
    const int[:, ::1] ngrams,
    const int64_t[::1] counts,
    int boundary,
    int n_bits,
    uint64_t[:, ::1] rows,
):
    """Pack the row of each n-gram of a table, with its count unless `counts` is None.

    Words before the nearest boundary of a context are replaced by the boundary.

    Equivalent to ``pack_windows(ngram, n_context, boundary, n_bits, row[:-1])`` and
    ``row[-1] = count`` for each.
    """
    cdef int n_context = <int> ngrams.shape[1] - 1
    cdef Py_ssize_t last = rows.shape[1] - 1
    cdef bint counted = counts is not None
    cdef Py_ssize_t i
    with nogil:
        for i in range(rows.shape[0]):
            pack_row(&ngrams[i, n_context], n_context, boundary, n_bits, &rows[i, 0])
            if counted:
                rows[i, last] = counts[i]


cdef bint sort_column(
    uint64_t* rows, uint64_t* spare, Py_ssize_t n, const int width, int column, int bits
) noexcept nogil:
    """Radix sort rows by one number; return whether the result is in `spare`."""
    cdef Py_ssize_t place[MAX_PASSES][MAX_DIGITS]
    cdef Py_ssize_t i, total, size, to
    cdef int n_passes = (bits + MAX_DIGIT_BITS - 1) // MAX_DIGIT_BITS
    cdef int digit_bits = (bits + n_passes - 1) // n_passes
    cdef uint64_t mask = (<uint64_t> 1 << digit_bits) - 1
    cdef uint64_t key, digit
    cdef int step, k
    cdef bint swapped = False
    cdef uint64_t* tmp
    memset(place, 0, sizeof(place))
    for i in range(n):
        key = rows[i * width + column]
        for step in range(n_passes):
            place[step][(key >> (step * digit_bits)) & mask] += 1
    for step in range(n_passes):
        # Skip a digit that is the same in all rows.
        digit = (rows[column] >> (step * digit_bits)) & mask
        if place[step][digit] == n:
            continue
        total = 0
        for digit in range(mask + 1):
            size = place[step][digit]
            place[step][digit] = total
            total += size
        for i in range(n):
            key = rows[i * width + column]
            digit = (key >> (step * digit_bits)) & mask
            to = place[step][digit]
            place[step][digit] = to + 1
            for k in range(width):
                spare[to * width + k] = rows[i * width + k]
        tmp = rows
        rows = spare
        spare = tmp
        swapped = not swapped
    return swapped


def sort_rows(
    uint64_t[:, ::1] rows, uint64_t[:, ::1] spare, int n_words, int n_bits
):
    """Sort rows of `n_words` words; return whether the result is in `spare`.

    A count after the words moves with them. The sort is stable.

    Equivalent to ``rows[:] = rows[np.lexsort(words_of(rows).T[::-1])]``.
    """
    cdef int width = <int> rows.shape[1]
    cdef int per_number = 64 // n_bits
    cdef int n_columns = (n_words + per_number - 1) // per_number
    cdef int column, n_in_column
    cdef bint swapped = False
    cdef uint64_t* own = &rows[0, 0]
    cdef uint64_t* other = &spare[0, 0]
    cdef uint64_t* tmp
    cdef Py_ssize_t n = rows.shape[0]
    cdef bint moved
    with nogil:
        for column in range(n_columns - 1, -1, -1):
            n_in_column = per_number
            if column == n_columns - 1:
                n_in_column = n_words - column * per_number
            # With a constant width, the compiler moves a row as a whole.
            if width == 1:
                moved = sort_column(own, other, n, 1, column, n_in_column * n_bits)
            elif width == 2:
                moved = sort_column(own, other, n, 2, column, n_in_column * n_bits)
            elif width == 3:
                moved = sort_column(own, other, n, 3, column, n_in_column * n_bits)
            else:
                moved = sort_column(own, other, n, width, column, n_in_column * n_bits)
            if moved:
                tmp = own
                own = other
                other = tmp
                swapped = not swapped
    return bool(swapped)


cdef inline bint equal(
    const uint64_t* a, const uint64_t* b, int width
) noexcept nogil:
    cdef int k
    for k in range(width):
        if a[k] != b[k]:
            return False
    return True


def count_rows(
    const uint64_t[:, ::1] rows, Py_ssize_t at, uint64_t[:, ::1] out
):
    """Write each distinct row once, with its count, from the sorted row `at` on.

    Stops when `out` is full or the rows end. Returns the next row to process and the
    number of rows written.

    Equivalent to ``np.unique(rows, axis=0, return_counts=True)``.
    """
    cdef int width = <int> rows.shape[1]
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t first
    with nogil:
        while at < rows.shape[0] and n < out.shape[0]:
            first = at
            at += 1
            while at < rows.shape[0] and equal(&rows[at, 0], &rows[first, 0], width):
                at += 1
            memcpy(&out[n, 0], &rows[first, 0], width * sizeof(uint64_t))
            out[n, width] = at - first
            n += 1
    return at, n


cdef inline bint before(
    const uint64_t* a, const uint64_t* b, int width
) noexcept nogil:
    cdef int k
    for k in range(width - 1):
        if a[k] != b[k]:
            return a[k] < b[k]
    return a[width - 1] < b[width - 1]


cdef void sift_down(
    const uint64_t[:, :, ::1] buffers, const int64_t[::1] at, int[::1] heap, int n,
    int place, int width,
) noexcept nogil:
    """Move the run at a position of the heap down to restore the heap order."""
    cdef int run = heap[place]
    cdef const uint64_t* row = &buffers[run, at[run], 0]
    cdef int child
    while True:
        child = 2 * place + 1
        if child >= n:
            break
        if child + 1 < n and before(
            &buffers[heap[child + 1], at[heap[child + 1]], 0],
            &buffers[heap[child], at[heap[child]], 0], width,
        ):
            child += 1
        if not before(&buffers[heap[child], at[heap[child]], 0], row, width):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = run


def make_heap(
    const uint64_t[:, :, ::1] buffers, const int64_t[::1] at, int[::1] heap
):
    """Arrange the runs in a heap by their first rows, for ``merge_runs``.

    No twin: only ``merge_runs`` uses the heap.
    """
    cdef int n = <int> heap.shape[0]
    cdef int width = <int> buffers.shape[2] - 1
    cdef int place
    with nogil:
        for place in range(n // 2 - 1, -1, -1):
            sift_down(buffers, at, heap, n, place, width)


def merge_runs(
    const uint64_t[:, :, ::1] buffers,
    int64_t[::1] at,
    const int64_t[::1] end,
    int[::1] heap,
    int n_live,
    uint64_t[:, ::1] out,
    Py_ssize_t n,
):
    """Merge sorted runs, adding up the counts of equal rows.

    The remaining rows of run r are ``buffers[r, at[r]:end[r]]``. `heap` contains the
    `n_live` runs that have rows left, arranged by ``make_heap``. `out` already has `n`
    rows; the count of the last one may still grow.

    Returns the number of rows in `out`, the number of live runs, and the run whose
    buffer is exhausted, or -1 if `out` is full. The exhausted run is at the top of the
    heap: refill its buffer before the next call, or leave ``at[r] == end[r]`` if the
    run has no more rows.

    Equivalent to ``np.unique`` of all the rows of the buffers, their counts summed.
    """
    cdef int width = <int> buffers.shape[2] - 1
    cdef Py_ssize_t capacity = out.shape[0]
    cdef const uint64_t* row
    cdef int run
    cdef int ended = -1
    with nogil:
        if n_live > 0 and at[heap[0]] == end[heap[0]]:
            n_live -= 1
            heap[0] = heap[n_live]
        if n_live > 0:
            sift_down(buffers, at, heap, n_live, 0, width)
        while n_live > 0:
            run = heap[0]
            row = &buffers[run, at[run], 0]
            if n > 0 and equal(&out[n - 1, 0], row, width):
                out[n - 1, width] += row[width]
            elif n < capacity:
                memcpy(&out[n, 0], row, (width + 1) * sizeof(uint64_t))
                n += 1
            else:
                break
            at[run] += 1
            if at[run] == end[run]:
                ended = run
                break
            sift_down(buffers, at, heap, n_live, 0, width)
    return n, n_live, ended
