"""Fill a hash table of n-grams, and read it back; see ``_hashed``."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from nplm._kernels.ngrams._bits cimport NPLM_PREFETCH
from nplm._kernels.ngrams._hashed cimport (
    BUCKET_SIZE, LONG_SLOTS, LOW_TAG, MULTIPLIER, PASSED, SLOTS, Bucket, LongBucket,
    Table, filter_bit, find_bucket, find_long, hash_word, home, home_number, long_tag,
    tag,
)
from nplm._kernels.ngrams._trie cimport Trie

BUCKET_BYTES = BUCKET_SIZE
BUCKET_SLOTS = SLOTS
LONG_BUCKET_SLOTS = LONG_SLOTS

cdef enum:
    # Number of n-grams inserted together.
    N_PUT = 64


cdef inline uint64_t ngram_key(int word, uint64_t context_key) noexcept nogil:
    return hash_word(word) + MULTIPLIER * context_key


def child_keys(
    Trie trie, int level, int first, int last, const uint64_t[::1] keys,
    uint64_t[::1] out,
):
    """Compute the keys of the children of contexts ``first <= c < last``.

    The children all have `level` words, and their parents' `keys` are filled already.

    Equivalent to ``out[i] = keys[parent[c]] + hash_word(context_word[c]) *
    M**(level - 1)`` modulo 2**64 for the i-th child c: the sum of ``hash_word(w) *
    M**i for i, w in enumerate(reversed(words_of(c)))``.

    No twin: the layout of the table is private to this module, and the probabilities
    found in it are tested against the twin of ``backoff_prob``.
    """
    cdef int _, context, child, begin = trie.child_start[first]
    cdef uint64_t power = 1
    if out.shape[0] != trie.child_start[last] - begin:
        raise ValueError("the arrays do not belong together")
    with nogil:
        for _ in range(level - 1):
            power *= MULTIPLIER
        for context in range(first, last):
            for child in range(trie.child_start[context], trie.child_start[context + 1]):
                out[child - begin] = (
                    keys[context] + hash_word(trie.context_word[child]) * power
                )


cdef class Window:
    """A contiguous range of the buckets of a level, or all of them.

    n-grams whose search begins before the window are not inserted, and neither are
    those that overflow its end. After the first bucket that stays not full, the buckets
    of the window are the same as in the whole level.

    Parameters
    ----------
    memory : ndarray of uint8
        Buckets of the window, as in `Table`; zeros.
    n_buckets : int
        Number of buckets of the level.
    first : int
        First bucket of the window.
    longest : bool
        Whether the n-grams of the level are the longest of the table.
    """

    cdef unsigned char[::1] memory
    cdef Bucket* buckets
    cdef uint64_t n_buckets, first, size
    cdef bint longest
    cdef readonly int64_t n_used

    def __cinit__(
        self, unsigned char[::1] memory, uint64_t n_buckets, uint64_t first,
        bint longest,
    ):
        self.memory = memory
        self.buckets = <Bucket*> &memory[0]
        self.n_buckets, self.first, self.longest = n_buckets, first, longest
        self.size = memory.shape[0] // BUCKET_SIZE
        self.n_used = 0

    cdef inline bint room(self) noexcept nogil:
        """Whether a tenth of the slots stays empty after one more block."""
        cdef int64_t n_slots = self.size * (LONG_SLOTS if self.longest else SLOTS)
        return self.n_used + N_PUT < n_slots - n_slots // 10

    cdef inline uint64_t place_of(self, uint64_t key) noexcept nogil:
        """Return where the search for a key begins; `size` or more is outside."""
        cdef uint64_t number = home_number(self.n_buckets, key)
        if number < self.first:
            number += self.n_buckets
        return number - self.first

    cdef inline uint64_t after(self, uint64_t place) noexcept nogil:
        """Return the place of the next bucket; `size` is outside."""
        place += 1
        return 0 if place == self.size == self.n_buckets else place

    cdef inline Bucket* put(self, uint64_t key, int* slot) noexcept nogil:
        """Return the bucket of a key, inserting it if needed; NULL outside the window.

        `slot` is set to its slot in the bucket.
        """
        cdef uint64_t place = self.place_of(key)
        cdef uint32_t high = tag(key) >> 32, low = <uint32_t> tag(key)
        cdef Bucket* own
        cdef int i
        while place < self.size:
            own = self.buckets + place
            # Buckets are filled from the first slot on.
            for i in range(SLOTS):
                slot[0] = i
                if own.high[i] == high and own.low[i] & LOW_TAG == low:
                    return own
                if own.high[i] == 0 and own.low[i] == 0:
                    own.high[i], own.low[i], own.prob[i], own.bow[i] = high, low, -1, 1
                    self.n_used += 1
                    return own
            own.low[key >> 62] |= PASSED
            place = self.after(place)
        return NULL

    cdef inline float* put_long(self, uint64_t key) noexcept nogil:
        """Return where the probability of one of the longest n-grams is, as `put`."""
        cdef uint64_t place = self.place_of(key)
        cdef uint64_t wanted = long_tag(key)
        cdef LongBucket* own
        cdef int i
        while place < self.size:
            own = <LongBucket*> (self.buckets + place)
            for i in range(LONG_SLOTS):
                if own.low[i] == 0 and own.high[i] == 0:
                    own.low[i] = <uint32_t> wanted
                    own.high[i] = <uint8_t> (wanted >> 32)
                    self.n_used += 1
                    return own.prob + i
                if (
                    own.low[i] == <uint32_t> wanted
                    and own.high[i] == <uint8_t> (wanted >> 32)
                ):
                    return own.prob + i
            own.passed |= <uint8_t> 1 << (key >> 61)
            place = self.after(place)
        return NULL


cdef struct Block:
    # n-grams inside the window, whose slots are prefetched together.
    int n
    uint64_t keys[N_PUT]
    int which[N_PUT]
    int context[N_PUT]
    uint32_t filters[N_PUT]


cdef inline void gather(
    Block* block, Window window, uint64_t key, int which, int context, uint32_t filters
) noexcept nogil:
    """Add an n-gram to a block if it is inside the window."""
    cdef uint64_t place = window.place_of(key)
    block.keys[block.n] = key
    block.which[block.n] = which
    block.context[block.n] = context
    block.filters[block.n] = filters
    if place < window.size:
        NPLM_PREFETCH(window.buckets + place)
        block.n += 1


cdef inline bint put_block(
    Block* block, const float[::1] prob, Window window
) noexcept nogil:
    """Insert the n-grams of a block; return whether the window has room for more."""
    cdef Bucket* at
    cdef float* own
    cdef int j, slot
    for j in range(block.n if window.longest else 0):
        own = window.put_long(block.keys[j])
        if own != NULL:
            own[0] = prob[block.which[j]]
    for j in range(0 if window.longest else block.n):
        at = window.put(block.keys[j], &slot)
        if at != NULL:
            at.prob[slot] = prob[block.which[j]]
            at.low[slot] |= block.filters[j]
    return window.size < window.n_buckets or window.room()


def put_ngrams(
    Trie trie,
    const uint64_t[::1] keys,
    const float[::1] prob,
    int first,
    int last,
    Window window,
    uint16_t[::1] filters,
    int[:, ::1] missing,
):
    """Insert the n-grams of the contexts ``first <= c < last``, all of one level.

    The filter of an n-gram has the bits of its extensions by one older word, (child of
    c, w). A pruned model may lack the suffix (c, w) of an extension: the context, word
    and filter of the suffix are written to `missing`, which needs space for all n-grams
    of the children. `filters` is scratch of ``n_words`` zeros, and is left zero.
    Returns the number of missing suffixes, or -1 if the window has all buckets of the
    level and they do not suffice.

    Equivalent to ``table[key(c, w)].prob = prob[...]`` and, for each child d of c,
    ``table[key(c, w)].key |= filter_bit(oldest word of d)`` where w follows d.

    No twin: see ``child_keys``.
    """
    cdef Block block
    cdef int context, child, i, word
    cdef int first_child, last_child
    cdef int n_missing = 0
    cdef int n_open  # suffixes in `filters`
    cdef uint16_t bit
    cdef bint enough = True
    block.n = 0
    with nogil:
        for context in range(first, last):
            n_open = 0
            first_child = trie.child_start[context]
            last_child = trie.child_start[context + 1]
            for child in range(first_child, last_child):
                bit = <uint16_t> filter_bit(hash_word(trie.context_word[child]))
                for i in range(trie.start[child], trie.start[child + 1]):
                    word = trie.words[i]
                    n_open += filters[word] == 0
                    filters[word] |= bit
            for i in range(trie.start[context], trie.start[context + 1]):
                word = trie.words[i]
                n_open -= filters[word] != 0
                gather(
                    &block, window, ngram_key(word, keys[context]), i, context,
                    filters[word],
                )
                filters[word] = 0
                if block.n == N_PUT:
                    enough = enough and put_block(&block, prob, window)
                    block.n = 0  # also without room, until all filters are zero
            if n_open > 0:
                for i in range(trie.start[first_child], trie.start[last_child]):
                    word = trie.words[i]
                    if filters[word] != 0:
                        missing[0, n_missing] = context
                        missing[1, n_missing] = word
                        missing[2, n_missing] = filters[word]
                        filters[word] = 0
                        n_missing += 1
            if not enough:
                break
        enough = enough and put_block(&block, prob, window)
    return n_missing if enough else -1


def put_contexts(
    Trie trie,
    const uint64_t[::1] keys,
    const float[::1] bow,
    int first,
    int last,
    Window window,
):
    """Insert the contexts ``first <= c < last``, all of one level.

    Returns False if the window has all buckets of the level and they do not suffice.

    Equivalent to ``table[key(c)].bow = bow[c]`` and, for each child d of c,
    ``table[key(c)].key |= filter_bit(oldest word of d)``.

    No twin: see ``child_keys``.
    """
    cdef Block block
    cdef Bucket* at
    cdef int context = first
    cdef int j, own, child, slot
    cdef bint enough = True
    with nogil:
        while context < last and enough:
            block.n = 0
            while context < last and block.n < N_PUT:
                gather(&block, window, keys[context], context, context, 0)
                context += 1
            for j in range(block.n):
                at = window.put(block.keys[j], &slot)
                if at == NULL:
                    continue
                at.bow[slot] = bow[block.which[j]]
                own = block.which[j]
                for child in range(trie.child_start[own], trie.child_start[own + 1]):
                    at.low[slot] |= filter_bit(hash_word(trie.context_word[child]))
            enough = window.size < window.n_buckets or window.room()
    return bool(enough)


def put_suffixes(
    Trie trie,
    const uint64_t[::1] keys,
    const int[:, ::1] missing,
    Window window,
    int[:, ::1] made,
):
    """Insert suffixes that the trie lacks, given by context, word and filter.

    A suffix that gets a new slot has a suffix in turn: its word and filter are written
    to `made`, which has the size of `missing`, after the context of which its own is
    the parent. Returns their number, or -1 if the window has all buckets of the level
    and they do not suffice.

    Equivalent to ``table[key(c, w)].key |= filters``.

    No twin: see ``child_keys``.
    """
    cdef Block block
    cdef Bucket* at
    cdef Py_ssize_t i
    cdef int context, slot
    cdef int64_t n_before
    cdef int n_made = 0
    cdef bint enough = True
    with nogil:
        for i in range(missing.shape[1]):
            context = missing[0, i]
            block.n = 0
            gather(
                &block, window, ngram_key(missing[1, i], keys[context]),
                missing[1, i], context, missing[2, i],
            )
            if block.n == 0:
                continue
            n_before = window.n_used
            at = window.put(block.keys[0], &slot)
            if at != NULL:
                at.low[slot] |= block.filters[0]
            if window.n_used > n_before:
                made[0, n_made] = context
                made[1, n_made] = missing[1, i]
                made[2, n_made] = <int> filter_bit(
                    hash_word(trie.context_word[context])
                )
                n_made += 1
            enough = window.size < window.n_buckets or n_made == 0 or window.room()
            if not enough:
                break
    return n_made if enough else -1


cdef inline bint is_in(
    int window, int n_windows, uint64_t n_buckets, uint64_t key
) noexcept nogil:
    """Whether the search for a key begins in a window of the buckets."""
    cdef uint64_t number
    if n_windows == 1:
        return True
    number = home_number(n_buckets, key)
    return (
        n_buckets * window // n_windows <= number < n_buckets * (window + 1) // n_windows
    )


def stored_values(
    Trie trie,
    Table table,
    const uint64_t[::1] keys,
    int level,
    int first,
    int last,
    int window,
    int n_windows,
    float[::1] prob,
    float[::1] bow,
):
    """Read back the values of the contexts ``first <= c < last``, all of `level` words.

    `prob` has an entry for each n-gram, `bow` one for each context. An n-gram that the
    table lacks gets -1, and a context 1. Only those whose search begins in one of
    `n_windows` equal parts of the buckets of their length get a value.

    Equivalent to ``prob[i] = table[key(c, w)].prob`` and ``bow[c] = table[key(c)].bow``.

    No twin: see ``child_keys``.
    """
    cdef Bucket* own = table.buckets + table.bucket_start[level]
    cdef Bucket* shorter = table.buckets + table.bucket_start[max(level - 1, 0)]
    cdef int64_t n_own = table.bucket_start[level + 1] - table.bucket_start[level]
    cdef int64_t n_shorter = (
        table.bucket_start[level] - table.bucket_start[max(level - 1, 0)]
    )
    cdef bint longest = level == table.n_context
    cdef uint64_t found[N_PUT]
    cdef int which[N_PUT]
    cdef const Bucket* at
    cdef int context, i, j, n, slot
    with nogil:
        for context in range(first, last):
            if level == 1:
                bow[context] = table.bow[trie.context_word[context]]
            elif level > 1 and is_in(window, n_windows, n_shorter, keys[context]):
                at = find_bucket(shorter, n_shorter, keys[context], &slot)
                bow[context] = at.bow[slot]
            i = trie.start[context]
            while i < trie.start[context + 1]:
                n = 0
                while n < N_PUT and i < trie.start[context + 1]:
                    found[n] = ngram_key(trie.words[i], keys[context])
                    which[n] = i
                    if level == 0:
                        prob[i] = table.prob[trie.words[i]]
                    elif is_in(window, n_windows, n_own, found[n]):
                        NPLM_PREFETCH(home(own, n_own, found[n]))
                        n += 1
                    i += 1
                for j in range(n):
                    if longest:
                        prob[which[j]] = find_long(own, n_own, found[j])
                    else:
                        at = find_bucket(own, n_own, found[j], &slot)
                        prob[which[j]] = at.prob[slot]
