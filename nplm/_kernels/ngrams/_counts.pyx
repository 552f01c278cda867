"""Rank pairs of numbers by radix sort, pack n-grams, and count the words before them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from nplm._kernels._ids cimport id_below
from nplm._kernels.ngrams._trie cimport Trie

# A digit of 11 bits: its 2048 write positions stay in the cache.
cdef enum:
    MAX_DIGIT_BITS = 11
    MAX_DIGITS = 1 << MAX_DIGIT_BITS


cdef int bit_length(uint64_t value) noexcept nogil:
    cdef int bits = 0
    while value:
        value >>= 1
        bits += 1
    return bits


cdef struct Pairs:
    # Pairs packed into keys, and the row of each: in the lowest bits of its key if
    # there is room, which halves what is moved, and else in `rows`.
    uint64_t* keys
    int* rows
    uint64_t* spare_keys
    int* spare_rows
    Py_ssize_t n
    int lowest, highest  # left numbers
    int row_bits
    int right_bits
    int bits
    int sorted_bits  # the lowest bits of pairs, by which they are sorted already


cdef void measure(
    Pairs* pairs, const int[:] left, int n_left, int n_right
) noexcept nogil:
    """Find the bits that pairs take."""
    cdef Py_ssize_t i
    cdef int left_id
    pairs.n = left.shape[0]
    pairs.lowest, pairs.highest = n_left - 1, 0
    for i in range(pairs.n):
        left_id = id_below(&left[i], n_left)
        pairs.lowest, pairs.highest = min(pairs.lowest, left_id), max(pairs.highest, left_id)
    pairs.right_bits = bit_length(n_right - 1)
    pairs.bits = pairs.right_bits
    if pairs.n > 0:
        pairs.bits += bit_length(pairs.highest - pairs.lowest)
    pairs.row_bits = bit_length(max(pairs.n - 1, 1))
    if pairs.bits + pairs.row_bits > 64:
        pairs.row_bits = 0


cdef bint allocate(Pairs* pairs) noexcept nogil:
    """Allocate memory; return False if out of memory. Call `release` in any case."""
    pairs.keys = <uint64_t*> malloc(pairs.n * sizeof(uint64_t))
    pairs.spare_keys = <uint64_t*> malloc(pairs.n * sizeof(uint64_t))
    pairs.rows = pairs.spare_rows = NULL
    if pairs.row_bits == 0:
        pairs.rows = <int*> malloc(pairs.n * sizeof(int))
        pairs.spare_rows = <int*> malloc(pairs.n * sizeof(int))
    return (
        pairs.keys != NULL and pairs.spare_keys != NULL
        and (
            pairs.row_bits > 0
            or (pairs.rows != NULL and pairs.spare_rows != NULL)
        )
    )


cdef void release(Pairs* pairs) noexcept nogil:
    free(pairs.keys)
    free(pairs.spare_keys)
    free(pairs.rows)
    free(pairs.spare_rows)


cdef bint pack(
    Pairs* pairs, const int[:] left, const int[:] right, int n_right, int[::1] rank
) noexcept nogil:
    """Fill the keys; return whether they are in order, as in many files.

    In other files, KenLM's among them, the right numbers of each left one are. A pair
    that is equal to the one before it has no key, and its `rank` becomes -1.
    """
    cdef Py_ssize_t i, n = pairs.n
    cdef int64_t left_id, highest = -1
    # Right numbers begin again after left ones that are not higher than this one.
    cdef int64_t bound = -1
    cdef uint64_t key, last = 0, right_id, last_right = 0
    cdef bint in_order = True, right_in_order = True
    pairs.n = 0
    for i in range(n):
        left_id = max(id_below(&left[i], pairs.highest + 1), pairs.lowest) - pairs.lowest
        right_id = <uint64_t> id_below(&right[i], n_right)
        key = <uint64_t> left_id << pairs.right_bits | right_id
        if i > 0 and key == last:
            rank[i] = -1
            continue
        if right_id < last_right:
            bound = highest
        highest = max(highest, left_id)
        right_in_order &= left_id > bound
        last_right = right_id
        in_order &= last <= key
        last = key
        if pairs.row_bits > 0:
            pairs.keys[pairs.n] = key << pairs.row_bits | <uint64_t> i
        else:
            pairs.keys[pairs.n], pairs.rows[pairs.n] = key, <int> i
        pairs.n += 1
    pairs.sorted_bits = pairs.right_bits if right_in_order else 0
    return in_order


cdef void radix_sort(Pairs* pairs) noexcept nogil:
    """Sort by key, least significant digit first; equal keys keep their order."""
    cdef Py_ssize_t place[MAX_DIGITS]
    cdef Py_ssize_t i, total, size, to
    cdef uint64_t digit, mask
    cdef int bits = pairs.bits - pairs.sorted_bits
    cdef int n_passes = (bits + MAX_DIGIT_BITS - 1) // MAX_DIGIT_BITS
    cdef int digit_bits, shift
    cdef int step
    if n_passes == 0:
        return
    digit_bits = (bits + n_passes - 1) // n_passes
    mask = (1 << digit_bits) - 1
    for step in range(n_passes):
        shift = pairs.row_bits + pairs.sorted_bits + step * digit_bits
        memset(place, 0, sizeof(place))
        for i in range(pairs.n):
            place[(pairs.keys[i] >> shift) & mask] += 1
        total = 0
        for digit in range(mask + 1):
            size = place[digit]
            place[digit] = total
            total += size
        for i in range(pairs.n):
            digit = (pairs.keys[i] >> shift) & mask
            to = place[digit]
            place[digit] = to + 1
            pairs.spare_keys[to] = pairs.keys[i]
            if pairs.row_bits == 0:
                pairs.spare_rows[to] = pairs.rows[i]
        pairs.keys, pairs.spare_keys = pairs.spare_keys, pairs.keys
        pairs.rows, pairs.spare_rows = pairs.spare_rows, pairs.rows


def rank_pairs(
    const int[:] left,
    const int[:] right,
    int n_right,
    int[::1] start,
    int[::1] words,
    int[::1] rank,
):
    """Number the distinct pairs (left, right) in sorted order.

    Fills ``words[start[l]:start[l + 1]]`` with the sorted distinct values of `right`
    for ``left == l``, and ``rank[i]`` with the index in `words` of the pair of row i.
    Returns the number of distinct pairs.

    Equivalent to ``pairs, rank[:] = np.unique(left * n_right + right,
    return_inverse=True); words[:len(pairs)] = pairs % n_right;
    start[:] = np.searchsorted(pairs // n_right, np.arange(len(start)))``.
    """
    cdef Pairs pairs
    cdef Py_ssize_t i
    cdef int n_left = <int> start.shape[0] - 1
    cdef int n_distinct = 0
    cdef int left_done = 0
    cdef int row_left
    cdef uint64_t mask, row_mask, key, last = 0
    cdef bint enough
    with nogil:
        measure(&pairs, left, n_left, n_right)
        enough = allocate(&pairs)
        if enough:
            if not pack(&pairs, left, right, n_right, rank):
                radix_sort(&pairs)
            mask = (<uint64_t> 1 << pairs.right_bits) - 1
            row_mask = (<uint64_t> 1 << pairs.row_bits) - 1
            for i in range(pairs.n):
                key = pairs.keys[i] >> pairs.row_bits
                if i == 0 or key != last:
                    last = key
                    row_left = pairs.lowest + <int> (key >> pairs.right_bits)
                    while left_done <= row_left:
                        start[left_done] = n_distinct
                        left_done += 1
                    words[n_distinct] = <int> (key & mask)
                    n_distinct += 1
                if pairs.row_bits > 0:
                    rank[pairs.keys[i] & row_mask] = n_distinct - 1
                else:
                    rank[pairs.rows[i]] = n_distinct - 1
            while left_done <= n_left:
                start[left_done] = n_distinct
                left_done += 1
            if pairs.n < left.shape[0]:
                for i in range(1, left.shape[0]):
                    if rank[i] < 0:
                        rank[i] = rank[i - 1]
        release(&pairs)
    if not enough:
        raise MemoryError(f"no memory to sort {left.shape[0]} pairs")
    return n_distinct


def continuation_counts(
    Trie trie, const int64_t[::1] counts, int[::1] slot, int64_t[::1] out
):
    """Count the distinct words before each n-gram, N1+(. c w).

    See Chen and Goodman (1999). The children of a context c are its extensions by an
    older word, so the count of a follower w is the number of children that w follows
    too. An n-gram whose context is never extended keeps its raw count: n-grams of the
    highest order, those whose context begins at a boundary, and all n-grams of a text
    of single words. `slot` is scratch of ``n_words`` entries.

    Equivalent to, for each context c with children that have followers,
    ``out[start[c]:start[c + 1]] = np.bincount(words[start[child_start[c]]:
    start[child_start[c + 1]]], minlength=n_words)[words[start[c]:start[c + 1]]]``.
    """
    cdef int context, first, last, i
    with nogil:
        for context in range(<int> trie.child_start.shape[0] - 1):
            # Children are contiguous, and so are their followers.
            first = trie.start[trie.child_start[context]]
            last = trie.start[trie.child_start[context + 1]]
            # The children of the root may have no followers.
            if first == last:
                for i in range(trie.start[context], trie.start[context + 1]):
                    out[i] = counts[i]
                continue
            for i in range(trie.start[context], trie.start[context + 1]):
                out[i] = 0
                slot[trie.words[i]] = i
            for i in range(first, last):
                out[slot[trie.words[i]]] += 1


def rename(const int[::1] words, const int[::1] new_ids, int[::1] out):
    """Give words their new ids.

    Equivalent to ``out[:] = new_ids[words]``.
    """
    cdef Py_ssize_t i
    cdef int n_ids = <int> new_ids.shape[0]
    if n_ids < 1 or out.shape[0] != words.shape[0]:
        raise ValueError("the arrays do not belong together")
    with nogil:
        for i in range(words.shape[0]):
            out[i] = new_ids[id_below(&words[i], n_ids)]


cdef inline Py_ssize_t n_record_bytes(int n_columns, int n_bits) noexcept nogil:
    return (n_columns * n_bits + 32 + 7) // 8


def record_bytes(int n_columns, int n_bits):
    """Return the size of a record of ``pack_by_range``.

    Equivalent to ``-(-(n_columns * n_bits + 32) // 8)``.
    """
    return n_record_bytes(n_columns, n_bits)


cdef inline void pack_record(
    const int* words, int n_columns, int n_bits, float value, unsigned char* out
) noexcept nogil:
    cdef uint64_t bits = 0, mask = (<uint64_t> 1 << n_bits) - 1
    cdef uint32_t low
    cdef int n = 0, i
    for i in range(n_columns + 1):
        if i < n_columns:
            bits |= (<uint64_t> words[i] & mask) << n
            n += n_bits
        else:
            memcpy(&low, &value, 4)
            bits |= <uint64_t> low << n
            n += 32
        if n >= 32:
            low = <uint32_t> bits
            memcpy(out, &low, 4)
            out += 4
            bits >>= 32
            n -= 32
    while n > 0:
        out[0] = <unsigned char> bits
        out += 1
        bits >>= 8
        n -= 8


cdef inline void unpack_record(
    const unsigned char* record, int n_columns, int n_bits, int* words, float* value
) noexcept nogil:
    cdef const unsigned char* end = record + n_record_bytes(n_columns, n_bits)
    cdef uint64_t bits = 0, mask = (<uint64_t> 1 << n_bits) - 1
    cdef uint32_t low
    cdef int n = 0, i, wanted
    for i in range(n_columns + 1):
        wanted = n_bits if i < n_columns else 32
        while n < wanted:
            if end - record >= 4:
                memcpy(&low, record, 4)
                bits |= <uint64_t> low << n
                record += 4
                n += 32
            else:
                bits |= <uint64_t> record[0] << n
                record += 1
                n += 8
        if i < n_columns:
            words[i] = <int> (bits & mask)
        else:
            low = <uint32_t> bits
            memcpy(value, &low, 4)
        bits >>= wanted
        n -= wanted


def pack_by_range(
    const int[:, ::1] ngrams,
    const float[::1] values,
    int column,
    const int[::1] range_of_word,
    int n_bits,
    int64_t[::1] starts,
    unsigned char[::1] records,
):
    """Pack the n-grams that have a value, not NaN, by the range of one of their words.

    Those of a range keep their order. A record has words of `n_bits` bits, at most 31,
    the lowest bits first, then the value, and ends at a byte; see ``record_bytes``.
    `starts` gets the first record of each range and the number of records.

    Equivalent to ``rows = np.flatnonzero(~np.isnan(values))``, ``rows =
    rows[np.argsort(range_of_word[ngrams[rows, column]], kind="stable")]``, and the bits
    of ``ngrams[row]`` and ``values[row]`` for each.
    """
    cdef Py_ssize_t n_ranges = starts.shape[0] - 1
    cdef Py_ssize_t n = values.shape[0], size, i
    cdef int n_columns = <int> ngrams.shape[1]
    cdef int word
    cdef int* places
    cdef int64_t n_before = 0, n_in_range
    if not 1 <= n_bits <= 31:
        raise ValueError(f"words of {n_bits} bits do not fit in 1 to 31")
    size = n_record_bytes(n_columns, n_bits)
    if (
        ngrams.shape[0] < n
        or records.shape[0] < n * size
        or not 0 <= column < n_columns
        or min(n_ranges, range_of_word.shape[0]) < 1
    ):
        raise ValueError("the arrays do not belong together")
    places = <int*> malloc(max(n, 1) * sizeof(int))
    if places == NULL:
        raise MemoryError(f"no memory to sort {n} n-grams")
    with nogil:
        starts[:] = 0
        for i in range(n):
            places[i] = -1
            if values[i] == values[i]:
                word = id_below(&ngrams[i, column], <int> range_of_word.shape[0])
                places[i] = id_below(&range_of_word[word], <int> n_ranges)
                starts[places[i]] += 1
        for i in range(n_ranges):
            n_in_range = starts[i]
            starts[i] = n_before
            n_before += n_in_range
        for i in range(n):
            if places[i] >= 0:
                pack_record(
                    &ngrams[i, 0], n_columns, n_bits, values[i],
                    &records[starts[places[i]] * size],
                )
                starts[places[i]] += 1
        # Each start is that of the next range now.
        for i in range(n_ranges, 0, -1):
            starts[i] = starts[i - 1]
        starts[0] = 0
        free(places)


def unpack_rows(
    const unsigned char[::1] records,
    int n_bits,
    const int64_t[:, ::1] places,
    int[:, ::1] ngrams,
    float[::1] values,
):
    """Unpack the records of ``pack_by_range``, words of `n_bits` bits and values.

    `places` has the first row of each part of the records, and the number of its rows.

    Equivalent to the reverse for ``rows``, and ``ngrams[first : first + n] = rows[:n]``
    for each part, after those of the parts before.
    """
    cdef Py_ssize_t part, i, size, n_read = 0
    cdef int n_columns = <int> ngrams.shape[1]
    if not 1 <= n_bits <= 31:
        raise ValueError(f"words of {n_bits} bits do not fit in 1 to 31")
    size = n_record_bytes(n_columns, n_bits)
    for part in range(places.shape[0]):
        if (
            min(places[part, 0], places[part, 1]) < 0
            or places[part, 0] > values.shape[0] - places[part, 1]
        ):
            raise ValueError("the arrays do not belong together")
        n_read += places[part, 1]
    if ngrams.shape[0] != values.shape[0] or records.shape[0] != size * n_read:
        raise ValueError("the arrays do not belong together")
    n_read = 0
    with nogil:
        for part in range(places.shape[0]):
            for i in range(places[part, 0], places[part, 0] + places[part, 1]):
                unpack_record(
                    &records[n_read * size], n_columns, n_bits, &ngrams[i, 0],
                    &values[i],
                )
                n_read += 1
